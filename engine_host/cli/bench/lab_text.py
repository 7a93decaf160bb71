"""Runs of the bench lab, and comparisons of them, for a terminal."""

from engine_host.cli.text.tables import table
from engine_host.client.bench_reports import comparison as words
from engine_host.client.bench_reports.figures import (
    about,
    decode_text,
    drift_headings,
    drift_rows,
    figure_headings,
    figure_row,
    heading,
    knee_text,
    rung_headings,
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
        lines += [
            "",
            heading(run, part),
            *table(figure_headings(), [figure_row(figure) for figure in part.figures]),
        ]
    if run.drifts:
        lines += ["", "From its first half to its second:", *table(drift_headings(), drift_rows(run))]
    if run.rungs:
        lines += ["", "How much of its context it takes:", *table(rung_headings(), rung_rows(run))]
    return [*lines, *(["", knee_text(run)] if run.knee else [])]


def comparison_lines(found: LabComparison) -> list[str]:
    """Return a comparison for a terminal."""
    lines = [words.headline(found), *words.sides(found), *words.doubts(found), ""]
    if found.differing:
        lines += [f"{words.differing()}:", *table(("differs", "A", "B"), words.differing_rows(found))]
    else:
        lines.append(words.nothing_differs())
    for part, rows in words.figure_rows(found).items():
        lines += ["", part, *table(words.headings(), rows)]
    return [*lines, "", words.of_chance(found)]


def list_lines(page: LabPage) -> list[str]:
    """Return the runs, newest first."""
    if not page.runs and not page.unreadable:
        return ["Nothing was measured here yet. `sndr bench run quick` measures the engine that runs."]
    rows = [
        [run.id, run.engine.model, server_text(run), decode_text(run), state_text(run)] for run in page.runs
    ]
    lines = table(("run", "model", "server", "decode", "state"), rows) if rows else []
    return [*lines, *(f"{name} cannot be read." for name in page.unreadable)]
