"""`sndr bench sweep` and `sweeps`: one thing is changed step by step, and the engine is left as it was."""

import click
from pydantic import ValidationError

from engine_host.cli.bench.lab import (
    at_address,
    carried_out,
    exit_of,
    kept,
    measured_by_host,
    read,
    refuse_two_forms,
)
from engine_host.cli.bench.lab_text import report_lines
from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.follow import signals
from engine_host.cli.start.host import connected
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.tables import table
from engine_host.client.bench_reports import sweep as words
from engine_host.client.bench_reports.for_others import sweep_for_others
from engine_host.client.bench_reports.html import sweep_html
from engine_host.client.bench_reports.markdown import sweep_markdown
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.protocol.bench.lab import MOST_STREAMS, LabRun, RunBench, WorkloadName
from engine_host.protocol.bench.sweeps import RunSweep, SweepKind, SweepPage, SweepReport
from engine_host.protocol.operations import bench as ops

_RUNNING = {"concurrency": WorkloadName.CONCURRENCY, "context": WorkloadName.CONTEXT}
_CHOICES = [*_RUNNING, *(kind.value for kind in SweepKind)]


@click.command("sweep")
@click.argument("what", type=click.Choice(_CHOICES), metavar="|".join(_CHOICES))
@click.argument("values", nargs=-1)
@click.option("--engine", metavar="ENGINE", help="Of several that run: its name or id.")
@click.option("--url", metavar="URL", help="concurrency: any server that speaks OpenAI's interface.")
@click.option("--model", metavar="ID", help="The model's id at --url.")
@click.option("--speculation", metavar="KIND", help="speculation: the kind, where the engine has none.")
@click.option(
    "--workload",
    metavar="WORKLOAD",
    type=click.Choice([name.value for name in WorkloadName]),
    help="What is measured at each start; `quick` if not given.",
)
@click.option("--rounds", type=click.IntRange(1, 1000), help="Measured rounds of each step, not its own.")
@click.option("--passes", type=click.IntRange(1, 10), help="Starts of each value: forth, and back, …")
@click.option("--seed", type=click.IntRange(0, (1 << 53) - 1), help="Repeats the prompts of another time.")
@command(
    "sndr bench sweep concurrency 1 4 16",
    "sndr bench sweep kv fp8 turboquant_k8v4",
    "sndr bench sweep patch turboquant-grouped-attention",
)
def lab_sweep(
    out: Output,
    what: str,
    values: tuple[str, ...],
    engine: str | None,
    url: str | None,
    model: str | None,
    speculation: str | None,
    workload: str | None,
    rounds: int | None,
    passes: int | None,
    seed: int | None,
) -> Exit | None:
    """Change one thing step by step, and measure each.

    \b
    concurrency [N …]  so many at once (1 2 4 8 16), and the knee; asks the
                       engine that runs
    context            texts up to 0.92 of its context: taken or not, the fact
                       found or not, TTFT, prefill
    speculation [N …]  draft tokens a step, 0 to those of its start; 0: without
    kv [TYPE …]        types of the KV cache
    patch PATCH        with the patch and without: off, on, on, off

    The last three stop the engine, start it with each value, and start it again as it was, also after Ctrl+C
    and where a start fails. What was measured is kept (`sndr bench sweeps`), marked as partial where it was
    cut short. Each value is judged against the first.
    """
    if (url is None) != (model is None):
        raise click.UsageError("--url and --model go together.")
    with signals():
        if what in _RUNNING:
            if speculation or workload or passes:
                raise click.UsageError(f"{what} has no --speculation, --workload and --passes.")
            asked = RunBench(
                workload=_RUNNING[what],
                engine=engine,
                rounds=rounds,
                seed=seed,
                streams=_counts(what, values),
            )
            return _asked(out, asked, url, model)
        if url is not None:
            raise click.UsageError(f"{what} starts an engine anew, which an address has no way to.")
        try:
            sweep = RunSweep(
                kind=SweepKind(what),
                values=values,
                engine=engine,
                speculation=speculation,
                workload=WorkloadName(workload or WorkloadName.QUICK),
                rounds=rounds,
                passes=passes,
                seed=seed,
            )
        except ValueError as error:
            raise click.UsageError(_first(error)) from error
        with connected() as client:
            return _swept(out, client, sweep)


_NO_SWEEPS = (
    "No sweep of speculation, kv or patch was kept here yet. Those of concurrency and context are runs: "
    "`sndr bench list`."
)


@click.command("sweeps")
@click.argument("sweep", required=False)
@click.option("--md", is_flag=True, help="SWEEP as Markdown.")
@click.option("--html", is_flag=True, help="SWEEP as one HTML file that loads nothing.")
@command("sndr bench sweeps", "sndr bench sweeps latest --html > sweep.html")
def lab_sweeps(out: Output, sweep: str | None, md: bool, html: bool) -> Exit | None:
    """List the sweeps that started an engine anew for each step, or show SWEEP, such as `latest`."""
    if (md or html) and sweep is None:
        raise click.UsageError("--md and --html are for one SWEEP.")
    refuse_two_forms(out, md, html)
    if sweep is not None:
        report = kept(
            lambda client: client.call(ops.BENCH_SWEEP, id=sweep),
            lambda folder: SweepReport.model_validate(read(["sweep", "--", folder, sweep])["sweep"]),
        )
        told = sweep_html if html else sweep_markdown if md else sweep_lines
        out.result(sweep_for_others(report) if out.as_json else report, told(report))
        return None
    page = kept(
        lambda client: client.call(ops.BENCH_SWEEPS),
        lambda folder: SweepPage.model_validate(read(["sweeps", folder])["page"]),
    )
    rows = words.list_rows(page.sweeps)
    lines = table(words.LIST_HEADINGS, rows) if rows else [_NO_SWEEPS]
    out.result(page, [*lines, *(f"{name} cannot be read." for name in page.unreadable)])
    return None


def sweep_lines(report: SweepReport) -> list[str]:
    """Return a sweep for a terminal."""
    lines = [words.headline(report.sweep), *words.about(report), ""]
    lines += table(*words.arm_table(report))
    headings, rows = words.memory_table(report)
    if rows:
        lines += ["", f"{words.MEMORY}:", *table(headings, rows)]
    if report.changes:
        lines += ["", *table(words.CHANGE_HEADINGS, words.change_rows(report))]
    return lines


def _asked(out: Output, asked: RunBench, url: str | None, model: str | None) -> Exit | None:
    if url is not None and model is not None:
        found, interrupted = carried_out(at_address(out, asked, url, model))
        run = LabRun.model_validate(found["run"])
    else:
        with connected() as client:
            names, interrupted = measured_by_host(out, client, asked)
            run = client.call(ops.BENCH_RUN, id=names[0])
    out.result(run, report_lines(run))
    return Exit.INTERRUPTED if interrupted else exit_of([run])


def _swept(out: Output, client: ControlClient, asked: RunSweep) -> Exit | None:
    begun = f"sweeping in the background (sndr jobs): {asked.command}"
    interrupted = False
    try:
        result = begin(client, lambda: client.call(ops.RUN_SWEEP, asked), out, begun).result
    except HostError as error:
        result, interrupted = error.problem.evidence, True
        if "sweep" not in result:
            raise
    report = client.call(ops.BENCH_SWEEP, id=str(result["sweep"]))
    out.result(report, sweep_lines(report))
    if interrupted:
        return Exit.INTERRUPTED
    whole = report.sweep.complete and report.sweep.restored
    return Exit.FAILED if not whole or any(run.struck for run in report.runs) else None


def _counts(what: str, values: tuple[str, ...]) -> tuple[int, ...]:
    if what != "concurrency" and values:
        raise click.UsageError(f"{what} takes no values.")
    if any(not value.isdecimal() or not 1 <= int(value) <= MOST_STREAMS for value in values):
        raise click.UsageError(f"Streams are whole numbers from 1 to {MOST_STREAMS}.")
    return tuple(int(value) for value in values)


def _first(error: ValueError) -> str:
    """Return the first complaint of a model's check as a sentence, without its frame."""
    said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
    said = said.removeprefix("Value error, ")
    return f"{said[:1].upper()}{said[1:]}."
