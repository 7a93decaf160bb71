"""Consent on the command line: what a file from somebody else asks for is shown, and asked about."""

import shlex
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import click
from pydantic import ValidationError

from engine_host.cli.output import Output
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.consents import ConsentNeeded

T = TypeVar("T")

accept_option = click.option(
    "--accept",
    metavar="DIGEST",
    help="Consent to what a preset from somebody else asks for; the digest is printed with it.",
)


def with_consent(
    out: Output,
    given: str | None,
    command: Sequence[str] | str,
    act: Callable[[str | None], T],
    *,
    shown: bool = False,
) -> T:
    """Do something that may need consent, with the one that was given or, at a terminal, is given now.

    `command` does the same; `shown`: the person has seen what is asked for. Raises HostError(consent_needed),
    after saying what is asked for, where there is nobody to ask or they say no.
    """
    try:
        return act(given)
    except HostError as error:
        needed = _needed(error)
        if needed is None:
            raise
        for line in () if shown else demand_lines(needed):
            out.note(line)
        if _can_ask(out) and click.confirm("Do you want all of this?", default=False, err=True):
            return act(needed.digest)
        raise _naming(error, command if isinstance(command, str) else shlex.join(command), needed) from error


def demand_lines(needed: ConsentNeeded) -> list[str]:
    """Return what is asked for, thing by thing, with what it can do."""
    lines = []
    for file in needed.files:
        lines.append(f"{file} asks for:")
        for demand in needed.demands:
            if demand.file == file:
                place = demand.key if demand.line is None else f"line {demand.line}, {demand.key}"
                lines += [f"  {demand.what}  ({place})", f"      {demand.does}"]
    return [*lines, f"These contents are {needed.digest}."]


def _needed(error: HostError) -> ConsentNeeded | None:
    if error.reason is not Reason.CONSENT_NEEDED:
        return None
    try:
        return ConsentNeeded.model_validate(error.problem.evidence)
    except ValidationError:
        return None


def _can_ask(out: Output) -> bool:
    return not out.as_json and sys.stdin.isatty() and sys.stderr.isatty()


def _naming(error: HostError, command: str, needed: ConsentNeeded) -> HostError:
    """The same refusal with the command as it was given here."""
    problem = error.problem
    if problem.fix is None:
        return error
    fix = problem.fix.model_copy(update={"command": f"{command} --accept {needed.digest}"})
    return HostError.from_problem(problem.model_copy(update={"fix": fix}))
