"""The host that a command is about: this machine's, or the one that `sndr --host NAME` names."""

import shlex

import click

from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.remote.host_command import for_host

_NAME = "sndr.host"


def choose_host(context: click.Context, name: str) -> None:
    """Let the commands of this call be about another machine."""
    context.meta[_NAME] = name


def chosen_host() -> str:
    """Return the name of the other machine; empty for this one."""
    context = click.get_current_context(silent=True)
    return str(context.meta.get(_NAME, "")) if context is not None else ""


def typed(text: str) -> str:
    """Return a text with its commands as they have to be typed for the chosen host."""
    return for_host(text, chosen_host())


def typed_problem(problem: Problem) -> Problem:
    """Return a problem with the commands of its next action as they have to be typed."""
    host = chosen_host()
    if not host:
        return problem
    fix = problem.fix or Fix(text="")
    if problem.reason is Reason.MODEL_FILE_MISSING:
        return problem.model_copy(update={"fix": _sent_from_here(problem, fix, host)})
    if problem.fix is None:
        return problem
    command = for_host(fix.command, host) if fix.command else fix.command
    changed = fix.model_copy(update={"text": for_host(fix.text, host), "command": command})
    return problem.model_copy(update={"fix": changed})


def _sent_from_here(problem: Problem, fix: Fix, host: str) -> Fix:
    """Return the next action of a model that is not on the chosen host: this machine may have it."""
    wanted = problem.evidence.get("wanted")
    model = wanted if isinstance(wanted, str) else "MODEL"
    text = for_host(fix.text, host)
    text = f"{text.rstrip('.')}. Or send it there, if this machine has it." if text else "Send it there."
    return fix.model_copy(update={"text": text, "command": shlex.join(["sndr", "host", "send", host, model])})
