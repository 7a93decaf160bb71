"""The host that a command is about: this machine's, or the one that `sndr --host NAME` names."""

import click

from engine_host.client.host_command import for_host
from engine_host.protocol.errors import Problem

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
    if not host or problem.fix is None:
        return problem
    fix = problem.fix
    command = for_host(fix.command, host) if fix.command else fix.command
    changed = fix.model_copy(update={"text": for_host(fix.text, host), "command": command})
    return problem.model_copy(update={"fix": changed})
