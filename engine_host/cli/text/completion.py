"""Completion in a shell: commands and options as click knows them, and names that the running host has."""

import re
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    _resolve_context,
    _resolve_incomplete,
    get_completion_class,
)

from engine_host.cli.output import echo
from engine_host.client.address import RemoteAddress
from engine_host.client.sync import ControlClient, connected
from engine_host.core.errors import HostError
from engine_host.protocol.operations import bench as bench_ops
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import remote_hosts as host_ops
from engine_host.protocol.operations import table as ops

_SECONDS = 1.0
"""For which a shell waits at most for the names of a host."""
# A shell puts them into the line as they are: a name from outside must be a word there, and no command.
_PLAIN = re.compile(r"[\w.][\w./:@+-]*")
Names = Callable[[ControlClient], Iterable[str]]


def _presets(client: ControlClient) -> Iterable[str]:
    return (one.preset.id for one in client.call(ops.PRESETS).presets)


def _models(client: ControlClient) -> Iterable[str]:
    return [*(one.id for one in client.call(ops.MODELS).models), *_presets(client)]


def _engines(client: ControlClient) -> Iterable[str]:
    return (one.name for one in client.call(ops.ENGINES).engines)


def _hosts(client: ControlClient) -> Iterable[str]:
    return (one.name for one in client.call(host_ops.HOSTS).hosts)


def _patches(client: ControlClient) -> Iterable[str]:
    return (one.id for one in client.call(ops.PATCHES).patches)


def _routes(client: ControlClient) -> Iterable[str]:
    return (one.route.id for one in client.call(endpoint_ops.ROUTES).routes)


def _runs(client: ControlClient) -> Iterable[str]:
    return (one.id for one in client.call(bench_ops.BENCH_RUNS).runs)


def _settings(client: ControlClient) -> Iterable[str]:
    return (one.name for one in client.call(ops.SETTINGS).settings)


_NAMES: dict[str, Names] = {
    "model": _models,
    "preset": _presets,
    "engine": _engines,
    "engines": _engines,
    "instead_of": _engines,
    "patch": _patches,
    "route": _routes,
    "run": _runs,
    "host": _hosts,
    "machine": _hosts,
}
"""What a parameter of this name takes, in whichever command."""
_NAME_IN: dict[str, Names] = {"sndr host": _hosts, "sndr services": _hosts, "sndr settings": _settings}
"""What a parameter called `name` takes in the commands of a group."""


def names_for(context: click.Context, parameter: click.Parameter) -> Names | None:
    """Return where the names that a parameter takes come from; None where nothing is known."""
    if parameter.name == "name":
        return next((of for group, of in _NAME_IN.items() if context.command_path.startswith(group)), None)
    return _NAMES.get(parameter.name or "")


def _asked(names: Names, machine: str) -> list[str]:
    """Return the names that a host tells within a second; none where none runs, or where it fails."""
    found: list[str] = []

    def ask() -> None:
        # Whatever goes wrong, a line that somebody types is no place to say so.
        with suppress(HostError), connected() as here:
            if not machine:
                found.extend(names(here))
                return
            # One that is not connected is left so.
            there = here.call(host_ops.REMOTE_HOST, name=machine)
            if there.control_socket and there.control_token:
                address = RemoteAddress(machine, Path(there.control_socket), Path(there.control_token))
                with ControlClient(address) as client:
                    found.extend(names(client))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    return list(dict.fromkeys(found))


class _Named(ShellComplete):
    """The completion of one shell, with the names of the host."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return what may stand here."""
        context = _resolve_context(self.cli, self.ctx_args, self.prog_name, args)
        wanted, begun = _resolve_incomplete(context, args, incomplete)
        known = wanted.shell_complete(context, begun)
        names = names_for(context, wanted) if isinstance(wanted, click.Parameter) else None
        if names is None:
            return known
        # Which other hosts there are says the one of this machine.
        machine = "" if names is _hosts else str(context.find_root().params.get("host") or "")
        told = _asked(names, machine)
        found = (name for name in told if name.startswith(begun) and _PLAIN.fullmatch(name))
        return [*map(CompletionItem, found), *known]


def complete(root: click.Command, variable: str, instruction: str) -> int:
    """Do what a shell's script asks: print itself, or what may stand at a place; return the exit code."""
    shell, _, action = instruction.partition("_")
    made = get_completion_class(shell)
    if made is None:
        return 1
    completion = type("Completion", (_Named, made), {})(root, {}, "sndr", variable)
    if action not in ("source", "complete"):
        return 1
    echo(completion.source() if action == "source" else completion.complete())
    return 0
