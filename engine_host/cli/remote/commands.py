"""The commands of `sndr host`."""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.param_types import NewHostName
from engine_host.cli.remote.connecting import connect as connected
from engine_host.cli.remote.connecting import looked_for
from engine_host.cli.remote.fact_lines import fact_lines
from engine_host.cli.start.host import find_or_start
from engine_host.cli.text.plan import finding_lines
from engine_host.cli.text.tables import table
from engine_host.cli.text.waiting import told_if_interrupted
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.core.errors import HostError
from engine_host.core.sizes import duration
from engine_host.protocol.errors import Problem
from engine_host.protocol.operations import remote_hosts as ops
from engine_host.protocol.operations.endpoint import ROUTES
from engine_host.protocol.remote.hosts import (
    NEVER_CONNECTED,
    AddRemoteHost,
    ChangeRemoteHost,
    HostRole,
    RemoteHost,
    RemoteHostPage,
    RemoteHostState,
    RemoteMode,
)

STATES = {
    RemoteHostState.DISCONNECTED: "not connected",
    RemoteHostState.CONNECTING: "connecting",
    RemoteHostState.ASKING: "waits for an answer",
    RemoteHostState.CONNECTED: "connected",
    RemoteHostState.RECONNECTING: "reconnecting",
    RemoteHostState.FAILED: "failed",
}
_MODES = {RemoteMode.AGENTLESS: "agentless", RemoteMode.ENGINE_HOST: "engine host"}

_FACTS = {
    "model_root": "Models in",
    "address_command": "Address by",
    "role": "Role",
    "rejected": "Not to be done",
    "tasks": "Left to do",
    "notes": "Notes",
}
"""What `change` tells of where it is another now."""
_KEPT = (
    click.option("--notes", help="What is to be remembered about it."),
    click.option("--tasks", help="What is left to do there; one a line, or with semicolons between."),
    click.option(
        "--rejected", help="What is not to be done there, and why; one a line, or with semicolons between."
    ),
    click.option(
        "--role",
        type=click.Choice([*(one.value for one in HostRole), ""]),
        metavar="ROLE",
        help="control, ingress or gpu-worker.",
    ),
)


def _kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of what a person keeps about a host."""
    for option in _KEPT:
        function = option(function)
    return function


@click.group(cls=WholeHelp)
def host() -> None:
    """Work with other machines over the system's ssh: its configuration, keys, agent and jump hosts."""


@host.command("list")
@command("sndr host list")
def show(out: Output) -> Exit | None:
    """Print the hosts that were added, and the state of each connection."""
    with find_or_start() as hold:
        page = hold.client.call(ops.HOSTS)
    out.result(page, _lines(page))
    return None


@host.command("candidates")
@command("sndr host candidates")
def candidates(out: Output) -> Exit | None:
    """Print the hosts that your ssh configuration names."""
    with find_or_start() as hold:
        page = hold.client.call(ops.HOST_CANDIDATES)
    rows = [
        (
            one.destination,
            one.address or "",
            one.user or "",
            f"added as {one.kept_as}"
            if one.kept_as
            else f"sndr host add {one.suggested_name} {one.destination}",
        )
        for one in page.candidates
    ]
    lines = table(("host", "address", "user", "add it with"), rows)
    out.result(page, lines if rows else f"{page.source} names no host: sndr host add NAME USER@HOST")
    return None


@host.command("add")
@click.argument("name", type=NewHostName())
@click.argument("destination", required=False)
@click.option("--agentless", is_flag=True, help="Install nothing there: facts and engines that run already.")
@click.option("--model-root", help="The folder of its models.")
@click.option(
    "--address-command", help="A command of this machine that prints its address; asked at each connection."
)
@_kept
@command("sndr host add gpu", "sndr host add gpu me@192.0.2.7 --model-root /srv/models")
def add(
    out: Output,
    /,
    name: str,
    destination: str | None,
    agentless: bool,
    model_root: str | None,
    address_command: str | None,
    **said: Any,
) -> Exit | None:
    """Keep a host as NAME; DESTINATION is what ssh takes, NAME itself where it is left out."""
    asked = AddRemoteHost(
        name=name,
        destination=destination or name,
        mode=RemoteMode.AGENTLESS if agentless else RemoteMode.ENGINE_HOST,
        model_root=model_root,
        address_command=address_command,
        **{fact: text or None for fact, text in said.items()},
    )
    with find_or_start() as hold:
        added = hold.client.call(ops.ADD_HOST, asked)
    out.result(added, [f"{added.name} leads to {added.destination}.", f"Connect: sndr host connect {name}"])
    return None


@host.command("change")
@click.argument("name")
@click.argument("destination", required=False)
@click.option("--agentless/--engine-host", default=None, help="The way to work with it from now on.")
@click.option("--model-root", help="The folder of its models.")
@click.option("--address-command", help="A command of this machine that prints its address.")
@_kept
@command("sndr host change gpu --notes 'Back in the rack.'")
def change(
    out: Output, /, name: str, destination: str | None, agentless: bool | None, **said: str | None
) -> Exit | None:
    """Keep other facts about NAME; what is not said stays, and an empty text ("") removes one.

    Another destination or way ends its connection.
    """
    with find_or_start() as hold:
        old = hold.client.call(ops.REMOTE_HOST, name=name)
        kept = {fact: getattr(old, fact) for fact in said}
        mode = old.mode
        if agentless is not None:
            mode = RemoteMode.AGENTLESS if agentless else RemoteMode.ENGINE_HOST
        asked = ChangeRemoteHost(
            destination=destination or old.destination,
            mode=mode,
            **{fact: kept[fact] if text is None else text or None for fact, text in said.items()},
        )
        changed = hold.client.call(ops.CHANGE_HOST, asked, name=name)
    told = [
        f"{label}: {getattr(changed, fact) or 'none'}"
        for fact, label in _FACTS.items()
        if getattr(old, fact) != getattr(changed, fact)
    ]
    if not told and (old.destination, old.mode) == (changed.destination, changed.mode):
        told = ["Nothing changed."]
    leads = f"{changed.name} leads to {changed.destination} ({_MODES[changed.mode]})."
    out.result(changed, [leads, *told])
    return None


@host.command("remove")
@click.argument("name")
@command("sndr host remove gpu")
def remove(out: Output, name: str) -> Exit | None:
    """Disconnect and forget NAME; nothing changes on that machine."""
    with find_or_start() as hold:
        routes = hold.client.call(ROUTES).routes
        page = hold.client.call(ops.REMOVE_HOST, name=name)
    led = [
        one.route.id
        for one in routes
        if any(engine.startswith(f"{name}/") for engine in one.route.targets.engines)
    ]
    broken = [f"These routes led there and answer no more: {', '.join(led)}"] if led else []
    out.result(page, [f"{name} is forgotten.", *broken, *_lines(page)])
    return None


@host.command("connect")
@click.argument("name")
@command("sndr host connect gpu")
def connect(out: Output, name: str) -> Exit | None:
    """Connect to NAME and stay connected; what ssh asks is asked here.

    The connection is the engine host's: it stays until `sndr host disconnect`, or until the engine host ends.
    """
    with find_or_start(daemon=True) as hold:
        goes_on = f"The engine host here goes on connecting: `sndr host disconnect {name}` ends that."
        with hold.ending_if_not_found(), told_if_interrupted(goes_on):
            try:
                shown = connected(hold.client, name, out)
            except HostError as error:
                if error.problem.evidence.get(NEVER_CONNECTED) and not _kept_all_the_same(error, name, out):
                    hold.client.call(ops.REMOVE_HOST, name=name)
                    out.result({"removed": name}, f"{name} is forgotten.")
                    return Exit.NO_HOST
                raise
        shown = looked_for(hold.client, shown)
    missing = shown.engine_host_problem
    out.result(shown, [shown.sentence, *([_engine_host_note(missing)] if missing is not None else [])])
    return None


@host.command("disconnect")
@click.argument("name")
@command("sndr host disconnect gpu")
def disconnect(out: Output, name: str) -> Exit | None:
    """End the connection to NAME; what runs there goes on."""
    with find_or_start() as hold:
        shown = hold.client.call(ops.DISCONNECT_HOST, name=name)
    out.result(shown, f"{name} is not connected any more.")
    return None


@host.command("probe")
@click.argument("name")
@command("sndr host probe gpu")
def probe(out: Output, name: str) -> Exit | None:
    """Read the facts of NAME anew; it is connected for it."""
    with find_or_start() as hold:
        connected(hold.client, name, out)
        facts = hold.client.call(ops.PROBE_HOST, name=name)
    out.result(facts, fact_lines(facts, time.time()))
    return None


@host.command("shell")
@click.argument("name")
@command("sndr host shell gpu")
def shell(out: Output, name: str) -> Exit | None:
    """Open a shell on NAME over the connection that stands; nothing is asked again."""
    with find_or_start(daemon=True) as hold, hold.ending_if_not_found():
        shown = connected(hold.client, name, out)
    if out.as_json:
        out.result({"command": list(shown.shell)}, "")
        return None
    # This program becomes ssh: keys, size and signals of the terminal are its own from here on.
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TERM") if name in os.environ}
    os.execve(shown.shell[0], shown.shell, {**kept, "LC_ALL": "C"})


@host.command("facts")
@click.argument("name")
@command("sndr host facts gpu")
def facts(out: Output, name: str) -> Exit | None:
    """Print what was last read of NAME, each part with its age."""
    with find_or_start() as hold:
        found = hold.client.call(ops.HOST_FACTS, name=name)
    out.result(found, fact_lines(found, time.time()))
    return None


def _lines(page: RemoteHostPage) -> list[str]:
    if not page.hosts:
        return ["No host was added. Your ssh configuration may name some: sndr host candidates"]
    rows = [
        (one.name, one.destination, _MODES[one.mode], STATES[one.state], _speed(one), _note(one))
        for one in page.hosts
    ]
    lines = table(("host", "ssh to", "way", "state", "tokens/s", "note"), rows)
    for said in (said for one in page.hosts for said in one.findings):
        lines += finding_lines(said)
    return lines


def _speed(one: RemoteHost) -> str:
    if one.state is not RemoteHostState.CONNECTED:
        return ""
    return "not measured" if one.tokens_per_second is None else f"{one.tokens_per_second:.1f}"


def _note(one: RemoteHost) -> str:
    if one.problem is not None:
        again = f" Again in {max(0.0, one.next_try_at - time.time()):.0f} s." if one.next_try_at else ""
        return f"{one.problem.message}{again}"
    if one.engine_host_problem is not None:
        return f"{one.sentence} {_engine_host_note(one.engine_host_problem)}"
    happened = ""
    if one.last_event is not None and one.last_event_at is not None:
        happened = f"{one.last_event}, {duration(time.time() - one.last_event_at)} ago"
    said = one.sentence if one.state is not RemoteHostState.DISCONNECTED else ""
    return f"{said} Last: {happened}." if happened and said else said


def _kept_all_the_same(error: HostError, name: str, out: Output) -> bool:
    """Return True unless a person at a terminal lets go of a host whose name nobody knows."""
    if out.as_json or not sys.stdin.isatty():
        return True
    return click.confirm(f"{error.problem.message} Keep {name}, to connect it later?", default=True, err=True)


def _engine_host_note(problem: Problem) -> str:
    """Return why the engine host there does not answer, and the command that helps."""
    command = problem.fix.command if problem.fix is not None else None
    return f"{problem.message} Next: {command}" if command else problem.message
