"""`sndr bench verify`: are the answers of an engine right, and the patches of its plan live."""

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.follow import signals
from engine_host.cli.start.host import connected_for_model
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.tables import table
from engine_host.client.bench_reports.checks import check_rows, headings
from engine_host.core.errors import HostError
from engine_host.protocol.bench.checks import VerifyEngine, VerifyLevel, VerifyReport
from engine_host.protocol.errors import Reason
from engine_host.protocol.operations import bench as ops


@click.command("verify")
@click.argument("engine", required=False)
@click.option(
    "--level",
    type=click.Choice([level.value for level in VerifyLevel]),
    default=VerifyLevel.SMOKE.value,
    show_default=True,
    help="How much is checked.",
)
@click.option("--seed", type=click.IntRange(0, (1 << 53) - 1), help="Repeats the texts of another time.")
@command("sndr bench verify", "sndr bench verify qwen3-8b --level full")
def lab_verify(out: Output, engine: str | None, level: str, seed: int | None) -> Exit | None:
    """Check what ENGINE answers, or the only one that runs.

    \b
    smoke   4 checks: it answers, it knows a simple answer, it calls
            tools, and with vLLM its patches are live
    full    9: also streams, tool calls in streams with thinking on and off,
            thoughts kept apart, a long answer, what speculation gains
    stress  8: facts in long texts, long results and lists of tools, many
            turns, long code and thoughts, and 0.92 of the context

    Exit code 1 when a check fails. What cannot be judged here is skipped with its reason, and fails nothing.
    Ctrl+C keeps what was checked.
    """
    asked = VerifyEngine(engine=engine, level=VerifyLevel(level), seed=seed)
    with signals(), connected_for_model() as client:
        try:
            found = begin(client, lambda: client.call(ops.VERIFY_ENGINE, asked), out).result
        except HostError as error:
            found = error.problem.evidence.get("report", {})
            if error.reason is not Reason.CANCELLED or not found:
                raise
    report = VerifyReport.model_validate(found)
    out.result(report, _lines(report))
    if not report.complete:
        return Exit.INTERRUPTED
    return Exit.FAILED if report.failed else None


def _lines(report: VerifyReport) -> list[str]:
    rows = check_rows(report.checks)
    return [
        f"{report.name}, {report.level.value}: {report.summary}, in {report.seconds:.1f} s",
        *(table(headings(), rows) if rows else []),
    ]
