"""`sndr bench profile`: where the time of a step of vLLM goes, by its own profiler."""

import gzip
import shutil
from pathlib import Path

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.follow import signals
from engine_host.cli.start.host import connected_for_model
from engine_host.cli.text.chosen_host import chosen_host
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.tables import table
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import unwritable_folder
from engine_host.protocol.bench.profiles import USUAL_STEPS, ProfileEngine, ProfileReport
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import formed, tr
from engine_host.protocol.operations import bench as ops

_NAME = 90


@click.command("profile")
@click.argument("engine", required=False)
@click.option(
    "--steps",
    type=click.IntRange(1, 512),
    default=USUAL_STEPS,
    show_default=True,
    help="Decode steps that are recorded.",
)
@click.option("--trace", metavar="FILE", type=click.Path(path_type=Path), help="Copy the Chrome trace there.")
@command("sndr bench profile", "sndr bench profile qwen3-8b --steps 50")
def lab_profile(out: Output, engine: str | None, steps: int, trace: Path | None) -> Exit | None:
    """Record steps of ENGINE, or of the only one that runs, and say which kernels take how long.

    For engines of vLLM whose start names its profiler; without, the command that starts it so is told. The
    trace is a Chrome trace: Perfetto and chrome://tracing open it. Recording slows steps down: shares count.
    """
    if trace is not None and (host := chosen_host()):
        raise click.UsageError(f"--trace copies a file of this machine, without --host {host}.")
    asked = ProfileEngine(engine=engine, steps=steps)
    with signals(), connected_for_model() as client:
        found = begin(client, lambda: client.call(ops.PROFILE_ENGINE, asked), out).result
    report = ProfileReport.model_validate(found)
    if trace is not None:
        try:
            if report.trace.endswith(".gz") and trace.suffix != ".gz":
                with gzip.open(report.trace) as file, trace.open("wb") as copy:
                    shutil.copyfileobj(file, copy)
            else:
                shutil.copyfile(report.trace, trace)
        except OSError as error:
            raise HostError(
                Reason.NOT_WRITABLE,
                tr("{trace} cannot be written: {error}.", trace=trace, error=error.strerror or error),
                cause=unwritable_folder(),
                fix="Choose a folder that is yours.",
                evidence={"trace": report.trace},
            ) from error
    out.result(report, profile_lines(report))
    return None


def profile_lines(report: ProfileReport) -> list[str]:
    """Return a profile for a terminal."""
    rows = [
        [formed(one.share, ".1%"), f"{one.ms:.3f}", f"{one.calls:.1f}", one.name[:_NAME]]
        for one in report.kernels
    ]
    return [
        f"{report.name}: {report.steps} steps, {report.of}, {report.busy_ms:.3f} ms of each (while recorded)",
        f"trace: {report.trace}",
        "",
        *table(("share", "ms a step", "calls", "kernel"), rows),
    ]
