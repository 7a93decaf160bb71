"""`sndr host sheet` and `sndr host profile`: what to know about a host, and how its engines should run."""

from pathlib import Path

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.host import find_or_start
from engine_host.core import atomic_file
from engine_host.protocol.operations import remote_hosts as ops
from engine_host.protocol.remote.hosts import KeepProfile


@click.command("sheet")
@click.argument("name")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="The file to write it to.")
@command("sndr host sheet gpu", "sndr host sheet gpu --output gpu.md")
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
@click.option("--keep", is_flag=True, help="Keep your engines as they were last read as right.")
@click.option(
    "--engine", "engines", multiple=True, metavar="WHICH", help="Keep this one: a process, a port or a kind."
)
@click.option("--all", "all_engines", is_flag=True, help="Keep everybody's engines.")
@command("sndr host profile gpu --keep")
def profile(out: Output, name: str, keep: bool, engines: tuple[str, ...], all_engines: bool) -> Exit | None:
    """Print how the engines of NAME should run; what differs is in its sheet.

    Without --engine or --all, --keep means those of the user that ssh logs in as.
    """
    if (engines or all_engines) and not keep:
        raise click.UsageError("--engine and --all choose what --keep keeps.")
    if engines and all_engines:
        raise click.UsageError("--engine and --all exclude each other.")
    with find_or_start() as hold:
        if keep:
            asked = KeepProfile(engines=engines, all_engines=all_engines)
            found = hold.client.call(ops.KEEP_PROFILE, asked, name=name)
        else:
            found = hold.client.call(ops.HOST_PROFILE, name=name)
    lines = [f"{engine.kind}: {' '.join(engine.arguments)}" for engine in found.engines]
    lines += [f"not kept: {one.kind} of {one.user}, process {one.pid}" for one in found.others]
    out.result(found, lines or f"Nothing was kept for {name}: sndr host profile {name} --keep")
    return None
