"""`sndr open`: the window, and links into it."""

import importlib.util
import os

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.core.errors import HostError
from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.protocol.errors import Reason


@click.command("open")
@click.argument("link", required=False)
@click.option("--another", is_flag=True, help="Start another window, also where one runs.")
@command("sndr open", "sndr open sndr://host/gpu")
def open_window(_out: Output, link: str | None, another: bool) -> Exit | None:
    """Open the window, or bring the one that runs to the front; with LINK at what it leads to.

    \b
    sndr://page/NAME              a page: launch, logs, settings, …
    sndr://page/launch?preset=ID  Launch, with a preset chosen; also page/fit
    sndr://chat                   Chat
    sndr://preset/ID              a preset
    sndr://host/NAME              all that is known of another machine's host

    A link only leads somewhere: it starts, stops, connects and saves nothing. Where no window runs, this
    command lasts as long as the one that it opens.
    """
    if link is not None and not link.startswith("sndr://"):
        raise click.UsageError("a link begins with sndr://")
    if importlib.util.find_spec("sndr_gui") is None or importlib.util.find_spec("PySide6") is None:
        raise HostError(
            Reason.NOT_FOUND,
            "The window is not installed here.",
            cause="This is the program for machines without a desktop.",
            fix="Install it with its window: pip install 'sndr-control-center[window]'.",
        )
    words = [*command_of(OwnProgram.WINDOW), *(["--another"] if another else []), *([link] if link else [])]
    # Signals and the exit code are those of the window.
    os.execv(words[0], words)
