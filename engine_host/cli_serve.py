"""`sndr serve` and `sndr quit`: the host itself."""

import asyncio
import time

import click

from engine_host._errors import HostError
from engine_host.cli_output import Exit, Output, command
from engine_host.control_client import connected
from engine_host.folders import Folders
from engine_host.protocol.errors import Reason


@click.command()
@click.option(
    "--host", metavar="ADDRESS", help="Address of the endpoint, for this run (default: the setting)."
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the endpoint, for this run.")
@click.option(
    "--owner-stdin", is_flag=True, help="End when standard input closes: for a program that starts the host."
)
@command
def serve(_out: Output, host: str | None, port: int | None, owner_stdin: bool) -> Exit | None:
    """Run the engine host in the foreground until Ctrl+C.

    It serves the control socket for the window and for these commands, and the OpenAI endpoint for everyone
    else. Engines that are not kept end with it.
    """
    from engine_host.service import ServeOptions, serve  # The host's own parts; other commands do without.

    code = asyncio.run(serve(ServeOptions(host=host, port=port, owner_stdin=owner_stdin)))
    return Exit(code) if code in set(Exit) else Exit.FAILED


@click.command("quit")
@click.option(
    "--wait", "seconds", type=click.FloatRange(0), default=30.0, show_default=True, help="Seconds to wait."
)
@command
def quit_host(out: Output, seconds: float) -> Exit | None:
    """End the host, and with it every engine that is not kept."""
    folders = Folders.resolve()
    with connected(folders) as client:
        client.quit()
    end = time.monotonic() + seconds
    while folders.socket.exists():
        if time.monotonic() > end:
            raise HostError(
                Reason.HOST_GONE,
                f"The host was asked to end, and is still ending after {seconds:.0f} s.",
                cause="An engine takes its time, or the host hangs.",
                fix="Look again with `sndr status`.",
            )
        time.sleep(0.05)
    out.result({"ended": True}, "The host has ended.")
    return None
