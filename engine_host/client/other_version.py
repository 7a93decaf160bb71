"""The refusals of a host of another version, told by its version and its reason codes."""

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr

LOOK_UP = "OPTIONS"
"""The method that no operation has: a host answers 405 for a path that it serves, and 404 for another."""
_SAID_BY_CODE = "0.3.0.dev0"


def is_unknown(problem: Problem, status: int, program: str) -> bool:
    """True for an operation that the host does not know, or a field: this program had checked its own.

    `program` is what the host told of its version.
    """
    if status == 405 or (status == 404 and problem.reason is Reason.UNSUPPORTED):
        return True
    if problem.evidence.get("type") != "extra_forbidden":
        return False
    from engine_host.core.outside.program_version import HERE, version_of

    return version_of(program) != HERE


def is_open(problem: Problem, status: int, program: str) -> bool:
    """True where a host from before 0.3 refuses a path that it does not serve as it refuses a missing thing.

    Whether it serves the path tells a `LOOK_UP`.
    """
    if status != 404 or problem.reason is not Reason.NOT_FOUND or problem.evidence:
        return False
    from packaging.version import Version

    from engine_host.core.outside.program_version import version_of

    there = version_of(program)
    return there is not None and there < Version(_SAID_BY_CODE)


def unknown_there(problem: Problem, host: str) -> HostError:
    """Return what such a refusal means; `host` is the name of a host on another machine."""
    where = f" on {host}" if host else ""
    return HostError(
        Reason.UNSUPPORTED,
        tr("The engine host{where} is of another version and cannot do this.", where=where),
        cause=problem.message,
        fix=Fix(text=tr("Update it there; its settings and models stay."), command=f"sndr host update {host}")
        if host
        else Fix(text="End it where it was started, then try again.", command="sndr quit"),
        evidence={"host": host} if host else {},
    )
