"""`sndr host sheet` and `sndr host profile`: what to know about a host, and how its engines should run."""

from pathlib import Path

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.host import find_or_start
from engine_host.core import atomic_file
from engine_host.protocol.operations import remote_hosts as ops


@click.command("sheet")
@click.argument("name")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="The file to write it to.")
@command
def sheet(out: Output, name: str, output: Path | None) -> Exit | None:
    """Print one page about NAME in Markdown: decided, measured, what runs, what is left to do."""
    with find_or_start() as hold:
        found = hold.client.call(ops.HOST_SHEET, name=name)
    if output is not None:
        atomic_file.write(output, found.markdown)
    out.result(found, found.markdown.rstrip() if output is None else f"{output} is written.")
    return None


@click.command("profile")
@click.argument("name")
@click.option("--keep", is_flag=True, help="Keep the engines as they were last read as right.")
@command
def profile(out: Output, name: str, keep: bool) -> Exit | None:
    """Print how the engines of NAME should run; what differs is in its sheet."""
    with find_or_start() as hold:
        found = hold.client.call(ops.KEEP_PROFILE if keep else ops.HOST_PROFILE, name=name)
    lines = [f"{engine.kind}: {' '.join(engine.arguments)}" for engine in found.engines]
    out.result(found, lines or f"Nothing was kept for {name}: sndr host profile {name} --keep")
    return None
