"""The host's one exception.

Everything that can go wrong with a cause a person can act on is raised as `HostError`; the control API
turns it into `{"error": …}`, the endpoint into OpenAI's form, a job into its `error`.
"""

from typing import Any

from engine_host.core.bounds.cut_text import cut_text, cut_texts
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.consents import ConsentNeeded

_LONGEST = 2_000
_LONGEST_EVIDENCE = 16_000


class HostError(Exception):
    """A failure with a reason code, a sentence, a likely cause, a next action and evidence."""

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        cause: str = "",
        fix: Fix | str | None = None,
        evidence: dict[str, Any] | None = None,
    ) -> None:
        # A wrong value stands in it, and may be of any length.
        message = cut_text(message, _LONGEST)
        super().__init__(message)
        self.problem = Problem(
            reason=reason,
            message=message,
            cause=cut_text(cause, _LONGEST),
            fix=Fix(text=cut_text(fix, _LONGEST)) if isinstance(fix, str) else fix,
            evidence=cut_texts(evidence or {}, _LONGEST_EVIDENCE),
        )

    @property
    def reason(self) -> Reason:
        """The reason code."""
        return self.problem.reason

    @property
    def lost(self) -> bool:
        """Tell that no host answered: nothing was refused, and the same may work in a moment."""
        return self.reason in {Reason.HOST_GONE, Reason.HOST_UNREACHABLE}

    @classmethod
    def from_problem(cls, problem: Problem) -> "HostError":
        """The exception that carries this problem."""
        error = cls(problem.reason, problem.message)
        error.problem = problem
        return error


def defect(error: Exception) -> Problem:
    """The problem that a mistake of ours becomes, where it must not end anything else."""
    return Problem(
        reason=Reason.INTERNAL,
        message=tr(
            "Unexpected error in the engine host: {kind}: {error}", kind=type(error).__name__, error=error
        ),
        cause="This is a defect of the program; the host's log has the details.",
    )


def consent_needed(needed: ConsentNeeded, doing: str, command: str | None) -> HostError:
    """The refusal of what a file from somebody else asks for, until a person consents to these contents."""
    first, *others = needed.demands
    more = "" if not others else tr(", and {count} more", count=len(others))
    return HostError(
        Reason.CONSENT_NEEDED,
        tr(
            "{files} asks for what can do harm; {doing} needs your consent.",
            files=", ".join(needed.files),
            doing=doing,
        ),
        cause=tr("It asks for {what}{more}. {does}", what=first.what[:200], more=more, does=first.does),
        fix=Fix(text="Look at each thing that it asks for, and consent if you want them.", command=command),
        evidence=needed.model_dump(mode="json"),
    )
