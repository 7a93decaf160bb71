"""`sndr bench reproduce`: the run of somebody else, asked again here, and both side by side."""

import click

from engine_host.cli.bench.lab import FILE, compare_kept, exit_of, measured_by_host, read
from engine_host.cli.bench.lab_text import comparison_lines
from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.follow import signals
from engine_host.cli.start.host import connected_for_model
from engine_host.client.bench_reports.html import comparison_html
from engine_host.client.bench_reports.reproducing import request_of
from engine_host.core.errors import HostError
from engine_host.protocol.bench.lab import LabRun
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr


@click.command("reproduce")
@click.argument("file", metavar="FILE")
@click.option("--engine", metavar="ENGINE", help="Of several that run: its name or id.")
@click.option("--html", is_flag=True, help="As one HTML file that loads nothing.")
@command("sndr bench reproduce run.json --engine qwen3-8b")
def lab_reproduce(out: Output, file: str, engine: str | None, html: bool) -> Exit | None:
    """Ask an engine here what the run in FILE asked, with its seed, and compare both.

    FILE is what `sndr bench report RUN --json` wrote, here or elsewhere; nothing in it is carried out: of it
    come the workload, the rounds and the seed, and the figures of side A. What differs between both machines
    and engines is listed. `sndr bench compare FILE RUN` does the same for a run that is there already.
    """
    if html and out.as_json:
        raise click.UsageError("Give one of --html and --json.")
    if not file.endswith(FILE):
        raise click.UsageError(f"FILE is a name that ends in {FILE}.")
    run = LabRun.model_validate(read(["read", "--", "", file])["run"])
    if not run.parts:
        raise HostError(
            Reason.BAD_REQUEST,
            tr("{file} holds no part that could be asked again.", file=file),
            fix="Give another file.",
        )
    asked = request_of(run, engine)
    with signals(), connected_for_model() as client:
        names, interrupted = measured_by_host(out, client, asked)
    found = compare_kept(file, names[0])
    out.result(found, comparison_html(found) if html else comparison_lines(found))
    return Exit.INTERRUPTED if interrupted else exit_of([found.b])
