"""`sndr bench baseline` and `check`: hold later runs to one, and end with an exit code for CI."""

import click

from engine_host.cli.bench.lab import FILE, compare_kept, kept, read
from engine_host.cli.bench.lab_text import list_lines
from engine_host.cli.output import Exit, Output, command
from engine_host.cli.param_types import FiniteRange
from engine_host.client.bench_reports.for_others import comparison_for_others
from engine_host.client.bench_reports.regression import ALLOWED, baseline_of, judged, regression_lines
from engine_host.core.errors import HostError
from engine_host.protocol.bench.lab import LabPage, LabRun, MarkBaseline, RunBench
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import bench as ops


@click.command("baseline")
@click.argument("run", default="latest")
@click.option("--off", is_flag=True, help="Hold nothing to it any more.")
@command("sndr bench baseline latest", "sndr bench baseline --off")
def lab_baseline(out: Output, run: str, off: bool) -> Exit | None:
    """Hold later runs to RUN, or the latest: those of its workload, model and engine (`sndr bench check`)."""
    page = kept(
        lambda client: client.call(ops.MARK_BASELINE, MarkBaseline(on=not off), id=run),
        lambda folder: LabPage.model_validate(
            read(["mark", "--", folder, run, "off" if off else "on"])["page"]
        ),
    )
    out.result(page, list_lines(page))
    return None


@click.command("check")
@click.argument("run", default="latest")
@click.option("--against", metavar="RUN", help="Another run than the baseline, or a file of one.")
@click.option(
    "--slower",
    type=FiniteRange(0, 90),
    default=ALLOWED,
    show_default=True,
    help="Per cent that it may be slower.",
)
@command("sndr bench check", "sndr bench check latest --slower 5")
def lab_check(out: Output, run: str, against: str | None, slower: float) -> Exit | None:
    """Say whether RUN, or the latest, is slower than its baseline; for CI.

    Exit code 0 where no figure is slower for certain by more than is allowed, and one is for certain not;
    1 where one is slower, or where nothing could be judged (struck, partial, n/a, too few rounds or too much
    noise, another machine or model); 4 without a baseline; 6 where RUN is the baseline itself.
    """
    if against is None:
        asked = kept(
            lambda client: client.call(ops.BENCH_RUN, id=run),
            lambda folder: LabRun.model_validate(read(["show", "--", folder, run])["run"]),
        )
        page = kept(
            lambda client: client.call(ops.BENCH_RUNS),
            lambda folder: LabPage.model_validate(read(["list", folder])["page"]),
        )
        found = baseline_of(page, asked)
        if asked.baseline:
            raise HostError(
                Reason.CONFLICT,
                tr(
                    "{run} is the baseline itself, and no later run is named to compare with it.",
                    run=asked.id,
                ),
                fix=Fix(text="Measure again, then check.", command=RunBench(workload=asked.workload).command),
            )
        if found is None:
            server = asked.engine.engine or asked.engine.address
            raise HostError(
                Reason.NOT_FOUND,
                tr(
                    "No baseline of {workload} with {model} ({server}) is here.",
                    workload=asked.workload,
                    model=asked.engine.model,
                    server=server,
                ),
                fix=Fix(text="Choose a run.", command=f"sndr bench baseline {asked.id}")
                if asked.complete and not asked.struck
                else Fix(text="Measure again.", command=RunBench(workload=asked.workload).command)
                if asked.complete
                else Fix(
                    text="Measure it to its end, and choose that run.",
                    command=RunBench(workload=asked.workload).command,
                ),
            )
        run, against = asked.id, found.id
    elif against.endswith(FILE) and run == "latest":
        raise click.UsageError("Name the run that is held to a file.")
    compared = compare_kept(against, run)
    # The log of a CI run is read by others.
    judgement = judged(comparison_for_others(compared) if out.as_json else compared, slower)
    out.result(judgement, regression_lines(judgement))
    return None if judgement.passed else Exit.FAILED
