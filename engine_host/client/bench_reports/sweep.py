"""Sweeps in words: a row for each value, and each value against the first."""

import statistics
import time
from collections.abc import Callable

from engine_host.client.bench_reports.figures import (
    Strike,
    asked_text,
    hardware_text,
    marked,
    median_text,
    name_of,
    server_text,
)
from engine_host.core.sizes import duration, size_text
from engine_host.protocol.bench.lab import LabRun, Quantity, Standing
from engine_host.protocol.bench.sweeps import LabSweep, SweepArm, SweepKind, SweepReport
from engine_host.protocol.errors import Problem
from engine_host.protocol.language import tr, written

_SHOWN = (Quantity.DECODE, Quantity.TTFT, Quantity.TPOT)
STARTS = "Each start"
CHANGES = "Each value against the first"
CHANGE_HEADINGS = ("value", "part", "", "against the first")
CHANGED = {
    SweepKind.SPECULATION: "draft tokens a step",
    SweepKind.KV: "type of the KV cache",
    SweepKind.PATCH: "patch",
}
"""The thing that a sweep changes, as a person calls it."""
MEMORY = "Memory of each start: predicted by fit, told by the engine's log, held by its processes"
_MEMORY: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("KV cache, predicted", "predicted_kv_cache_bytes", size_text),
    ("KV cache, told", "told_kv_cache_bytes", size_text),
    ("KV tokens, predicted", "predicted_kv_cache_tokens", lambda count: written(f"{count:,}")),
    ("KV tokens, told", "told_kv_cache_tokens", lambda count: written(f"{count:,}")),
    ("whole start, predicted", "predicted_bytes", size_text),
    ("GPU memory, held", "held_gpu_bytes", size_text),
    ("main memory, held", "held_main_memory_bytes", size_text),
)
LIST_HEADINGS = ("sweep", "engine", "values", "state")


def headline(sweep: LabSweep) -> str:
    """Return what was swept, of which engine, and how it ended."""
    changed = CHANGED[sweep.kind]
    return f"sweep: {changed}, {sweep.engine}: {state_text(sweep)}, {duration(sweep.seconds)}"


def state_text(sweep: LabSweep) -> str:
    """Return the worth of a sweep in a word or two."""
    if sweep.measuring:
        return "running"
    if sweep.ended_by:
        return f"partial ({sweep.ended_by})"
    if sweep.complete:
        return "complete"
    of = len(sweep.arms)
    refused = sum(arm.refused for arm in sweep.arms)
    failed = sum(arm.problem is not None for arm in sweep.arms) - refused
    told = [f"{refused} of {of} refused before a start"] if refused else []
    if failed:
        told.append(f"{failed} of {of - refused} starts failed")
    # One that was killed with its host said no word of its end.
    return ", ".join(told) or "partial"


def about(report: SweepReport) -> list[str]:
    """Return the conditions of a sweep, a line each; what was measured with is that of its first run."""
    sweep = report.sweep
    at = time.strftime("%Y-%m-%d %H:%M", time.localtime(sweep.started_at))
    lines = [f"{sweep.id}, {at}", sweep.command, restored_text(sweep)]
    for run in report.runs[:1]:
        told = [f"{run.engine.model} ({server_text(run)})", hardware_text(run.machine)]
        lines.insert(1, ", ".join([*filter(None, told), f"sndr {run.machine.program}"]))
        # The tables are of the first part alone.
        asked = [f"{run.parts[0].name}: {asked_text(run, run.parts[0])}"] if run.parts else []
        lines.insert(2, f"each start: {'; '.join([run.workload.value, *asked])}")
    return lines


def restored_text(sweep: LabSweep) -> str:
    """Return whether the engine runs again as it was."""
    if sweep.restored:
        return "The engine runs again as it did before."
    why = sweep.not_restored.message if sweep.not_restored is not None else "the sweep has not ended"
    return f"The engine was NOT restored: {why}"


def arm_table(report: SweepReport, strike: Strike = marked) -> tuple[list[str], list[list[str]]]:
    """Return headings and a row for each start, in the order they were made."""
    runs = {run.id: run for run in report.runs}
    headings = ["value", *map(name_of, _SHOWN), "tokens a step", "run", ""]
    rows = [_row(arm, runs.get(arm.run), strike) for arm in report.sweep.arms]
    if all(arm.acceptance_length is None for arm in report.sweep.arms):
        place = headings.index("tokens a step")
        for row in (headings, *rows):
            del row[place]
    return headings, rows


def memory_table(report: SweepReport) -> tuple[list[str], list[list[str]]]:
    """Return headings and the memory of each start; no rows where none was read, no columns of nothing."""
    arms = [(arm.value, arm.memory) for arm in report.sweep.arms if arm.memory is not None]
    shown = [
        (heading, name, telling)
        for heading, name, telling in _MEMORY
        if any(getattr(memory, name) is not None for _, memory in arms)
    ]
    rows = [
        [value, *(_told(getattr(memory, name), telling) for _, name, telling in shown)]
        for value, memory in arms
    ]
    return ["value", *(heading for heading, _, _ in shown)], rows if shown else []


def _told(value: int | None, telling: Callable[[float], str]) -> str:
    return tr("n/a") if value is None else telling(value)


def quantities(report: SweepReport) -> list[Quantity]:
    """Return those that its tables show."""
    return [*_SHOWN, *(one.quantity for one in report.changes)]


def change_rows(report: SweepReport) -> list[list[str]]:
    """Return each verdict against the first value."""
    return [[one.value, one.part, name_of(one.quantity), one.words] for one in report.changes]


def list_rows(sweeps: tuple[LabSweep, ...]) -> list[list[str]]:
    """Return a row for each sweep."""
    return [[one.id, one.engine, " ".join(one.values), state_text(one)] for one in sweeps]


def medians(report: SweepReport, quantity: Quantity) -> dict[str, float]:
    """Return the median of a quantity for each value: of the first part, over all its runs."""
    runs = {run.id: run for run in report.runs}
    found: dict[str, list[float]] = {}
    for arm in report.sweep.arms:
        run = runs.get(arm.run)
        if run is None or run.struck or not run.parts:
            continue
        for figure in run.parts[0].figures:
            if figure.quantity is quantity and figure.value is not None:
                found.setdefault(arm.value, []).append(figure.value)
    return {value: statistics.median(values) for value, values in found.items()}


def _why_none(problem: Problem, *, refused: bool) -> str:
    return f"{'refused' if refused else 'failed'}: {problem.message}"


def _row(arm: SweepArm, run: LabRun | None, strike: Strike) -> list[str]:
    if arm.problem is not None:
        return [
            arm.value,
            tr("n/a"),
            tr("n/a"),
            tr("n/a"),
            "",
            "",
            _why_none(arm.problem, refused=arm.refused),
        ]
    if run is None or not run.parts:
        return [arm.value, tr("n/a"), tr("n/a"), tr("n/a"), "", arm.run, "nothing was kept"]
    figures = {figure.quantity: median_text(figure, strike) for figure in run.parts[0].figures}
    told = tr("n/a") if arm.acceptance_length is None else f"{arm.acceptance_length:.2f}"
    return [
        arm.value,
        *(figures.get(one, tr("n/a")) for one in _SHOWN),
        told,
        run.id,
        "; ".join(["PARTIAL"] * (not arm.complete) + _struck_for(run)),
    ]


def _struck_for(run: LabRun) -> list[str]:
    """Return why figures of the first part of a run are struck, each reason once."""
    struck = (one.why for one in run.parts[0].figures if one.standing is Standing.STRUCK)
    return [tr("struck: {why}", why=why) for why in dict.fromkeys(struck)]
