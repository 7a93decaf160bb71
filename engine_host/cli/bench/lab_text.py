"""Runs of the bench lab, and comparisons of them, for a terminal."""

from engine_host.cli.output import table
from engine_host.client.bench_reports import comparison as words
from engine_host.client.bench_reports.figures import (
    DRIFT_HEADINGS,
    HEADINGS,
    RUNG_HEADINGS,
    about,
    decode_text,
    drift_rows,
    figure_row,
    heading,
    knee_text,
    rung_rows,
    server_text,
    state_text,
    title,
)
from engine_host.protocol.bench.comparison import LabComparison
from engine_host.protocol.bench.lab import LabPage, LabRun


def report_lines(run: LabRun) -> list[str]:
    """Return a run for a terminal."""
    lines = [title(run), *about(run)]
    for part in run.parts:
        lines += ["", heading(part), *table(HEADINGS, [figure_row(figure) for figure in part.figures])]
    if run.drifts:
        lines += ["", "From its first half to its second:", *table(DRIFT_HEADINGS, drift_rows(run))]
    if run.rungs:
        lines += ["", "How much of its context it takes:", *table(RUNG_HEADINGS, rung_rows(run))]
    return [*lines, *(["", knee_text(run)] if run.knee else [])]


def comparison_lines(found: LabComparison) -> list[str]:
    """Return a comparison for a terminal."""
    lines = [words.headline(found), *words.sides(found), *words.doubts(found), ""]
    if found.differing:
        lines += [f"{words.DIFFERING}:", *table(("differs", "A", "B"), words.differing_rows(found))]
    else:
        lines.append(words.NOTHING_DIFFERS)
    for part, rows in words.figure_rows(found).items():
        lines += ["", part, *table(words.HEADINGS, rows)]
    return [*lines, "", words.OF_CHANCE]


def list_lines(page: LabPage) -> list[str]:
    """Return the runs, newest first."""
    if not page.runs and not page.unreadable:
        return ["Nothing was measured here yet. `sndr bench run quick` measures the engine that runs."]
    rows = [
        [run.id, run.engine.model, server_text(run), decode_text(run), state_text(run)] for run in page.runs
    ]
    lines = table(["RUN", "MODEL", "SERVER", "DECODE", "STATE"], rows) if rows else []
    return [*lines, *(f"{name} cannot be read." for name in page.unreadable)]
