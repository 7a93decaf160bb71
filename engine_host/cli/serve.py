"""`sndr serve` and `sndr quit`: the host itself."""

import asyncio
import contextlib
import gc
import sys
import time
from typing import Any

import click

from engine_host.cli.output import Exit, Output, command, echo
from engine_host.cli.param_types import FiniteRange
from engine_host.cli.start.host import connected_or_none
from engine_host.cli.text.waiting import told_if_interrupted
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.processes.loading import loading
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops

_GONE = {EngineState.UNLOADED, EngineState.FAILED}


@click.command()
@click.option(
    "--host", metavar="ADDRESS", help="Address of the endpoint, for this run (default: the setting)."
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the endpoint, for this run.")
@click.option(
    "--owner-stdin", is_flag=True, help="End when standard input closes: for a program that starts the host."
)
@click.option(
    "--owner",
    metavar="NAME",
    default="the program that started it",
    help="Who that program is, for `status`.",
)
@click.option(
    "--connect-hosts",
    is_flag=True,
    help="Connect the hosts that were connected last, and load what comes with the host (on-demand add "
    "--at-start), also with --owner-stdin; else it is always done.",
)
@command("sndr serve", "sndr serve --port 8001")
def serve(
    out: Output, host: str | None, port: int | None, owner_stdin: bool, owner: str, connect_hosts: bool
) -> Exit | None:
    """Run the engine host in the foreground until Ctrl+C.

    It serves the control socket for the window and for these commands, and the OpenAI endpoint for everyone
    else. Engines that are not kept end with it. Says that it serves: at a terminal as a sentence, else, and
    with --json, as one line of JSON.
    """
    with loading():
        # The host's own parts; other commands do without.
        from engine_host.daemon.main import ServeOptions, serve

    # A program that starts the host reads the line of JSON, and is no terminal.
    announce = _announce if sys.stdout.isatty() and not out.as_json else None
    options = ServeOptions(
        host=host,
        port=port,
        owner_stdin=owner_stdin,
        owner=owner,
        connect_hosts=connect_hosts,
        announce=announce,
    )
    # What was imported stays: looked through for garbage again and again, it took a part of each request.
    gc.freeze()
    code = asyncio.run(serve(options))
    return Exit(code) if code in set(Exit) else Exit.FAILED


def _announce(report: dict[str, Any]) -> None:
    """Print the addresses for a person; a terminal that is gone is no reason to end."""
    with contextlib.suppress(OSError):
        echo(f"The engine host serves (pid {report['pid']}). Ctrl+C ends it.")
        echo(f"Endpoint: {report['endpoint']}")
        if (wrong := report["settings"]) is not None:
            echo(f"warning: {wrong['message']} The rest of the file is used.", err=True)
        for finding in report["findings"]:
            echo(f"{finding['severity']}: {finding['message']}", err=True)


@click.command("quit")
@click.option(
    "--wait", "seconds", type=FiniteRange(0), default=30.0, show_default=True, help="Seconds to wait."
)
@command("sndr quit")
def quit_host(out: Output, seconds: float) -> Exit | None:
    """End the host, and with it every engine that is not kept.

    A window that is open says so, and starts another one when somebody clicks "Start again" there.
    """
    found = connected_or_none()
    if found is None:
        out.result(
            {"ended": False, "kept": [], "window": False}, "No engine host runs; there was nothing to end."
        )
        return None
    with found as client:
        name = client.host
        alive = [one for one in client.call(ops.ENGINES).engines if one.state not in _GONE]
        kept = [one for one in alive if one.keep]
        client.call(ops.QUIT_HOST)
    end = time.monotonic() + seconds
    with told_if_interrupted("The host goes on ending: `sndr status` says when it has."):
        _wait_for_end(client, end, seconds)
    lines = [f"The host{f' on {name}' if name else ''} has ended."]
    if kept:
        names = ", ".join(f"{one.name} (pid {one.pid})" for one in kept)
        lines.append(f"Kept, and still running: {names}. The next host takes them up: `sndr serve`.")
    # A host that ends removes the locks of windows that were killed.
    window = not name and bool(client.folders.window_locks())
    if window:
        lines.append("The open window starts another one when you click “Start again” there.")
    out.result({"ended": True, "kept": [one.id for one in kept], "window": window}, lines)
    return None


def _wait_for_end(client: ControlClient, end: float, seconds: float) -> None:
    while _serves(client):
        if time.monotonic() > end:
            raise HostError(
                Reason.HOST_GONE,
                tr("The host was asked to end, and is still ending after {seconds:.0f} s.", seconds=seconds),
                cause="An engine takes its time, or the host hangs.",
                fix="Look again with `sndr status`.",
            )
        time.sleep(0.05)


def _serves(client: ControlClient) -> bool:
    """Return True while the host that was asked to end is there."""
    if not client.host:
        return client.folders.socket.exists()
    # The forwarded socket of one on another machine stays; whether anybody answers has to be asked.
    try:
        with client.again() as fresh:
            fresh.connect()
    except HostError:
        return False
    return True
