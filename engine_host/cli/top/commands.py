"""`sndr top`: GPUs, engines and requests as they are now, again and again."""

import contextlib
import sys

import click

from engine_host.cli.output import Exit, Output, command, writes_to_terminal
from engine_host.cli.param_types import FiniteRange
from engine_host.cli.start.host import connected
from engine_host.cli.top.reading import readings

_WIDEST = 240


@click.command()
@click.option(
    "--interval",
    type=FiniteRange(0.2, 3600),
    default=1.0,
    show_default=True,
    help="Seconds between two readings.",
)
@click.option("--once", is_flag=True, help="Print what is now, and end; as where there is no terminal.")
@command("sndr top", "sndr top --once")
def top(out: Output, interval: float, once: bool) -> Exit | None:
    """Watch GPUs, engines and requests until Ctrl+C; with --json one value for each reading.

    Of an engine: prefill/s as it timed the prompts since the last reading, decode/s of all streams together,
    0 while none is written; KV the share of the cache that is filled; RAM that of its processes, with the
    files they map. What a GPU holds of it stands under held by.
    """
    # Ctrl+C is how it ends.
    with connected() as client, contextlib.suppress(KeyboardInterrupt):
        client.only_watch()
        if out.as_json:
            for reading in readings(client, interval):
                out.record(reading)
                sys.stdout.flush()
                if once:
                    break
            return None
        # They take a moment to load, and no other command draws.
        from rich.live import Live

        from engine_host.cli.top.screen import Terminal, screen

        seen = writes_to_terminal()
        # A file or a pipe has no end of a line.
        console = Terminal(highlight=False, markup=False, emoji=False, width=None if seen else _WIDEST)
        if once or not seen:
            console.print(screen(next(readings(client, interval)), console.width))
            return None
        with Live(console=console, screen=True, auto_refresh=False) as live:
            for reading in readings(client, interval):
                live.update(
                    screen(reading, console.width, f"Ctrl+C ends  ·  each {interval:g} s"), refresh=True
                )
    return None
