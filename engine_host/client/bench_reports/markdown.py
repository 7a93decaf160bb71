"""Runs and comparisons as Markdown, for reports of one's own; what a server says of itself is no markup."""

import re
from collections.abc import Iterable, Sequence

from engine_host.client.bench_reports import comparison as words
from engine_host.client.bench_reports import sweep as swept
from engine_host.client.bench_reports.figures import (
    about,
    drift_headings,
    drift_rows,
    figure_headings,
    figure_row,
    heading,
    knee_text,
    rung_headings,
    rung_rows,
    title,
)
from engine_host.client.bench_reports.for_others import (
    comparison_for_others,
    run_for_others,
    sweep_for_others,
)
from engine_host.client.bench_reports.terms import HEADING, terms
from engine_host.protocol.bench.comparison import LabComparison
from engine_host.protocol.bench.lab import LabRun, Quantity
from engine_host.protocol.bench.sweeps import SweepReport
from engine_host.protocol.language import english

# Begins no text of a server: these are taken out of what is shown.
_STRUCK = "\ue000"
# A backslash first of all: before a sign of ours it would take that one's away. Within a word `_` is plain.
_MARKUP = re.compile(r"[\\|`*~\[\]!]|(?<!\w)_|_(?!\w)")


@english()
def run_markdown(run: LabRun) -> list[str]:
    """Return a run with its conditions and all figures, to be shared."""
    run = run_for_others(run)
    lines = [f"## {_plain(title(run))}", "", *(f"* {_plain(line)}" for line in about(run))]
    for part in run.parts:
        lines += ["", f"### {_plain(heading(run, part))}", ""]
        lines += _table(figure_headings(), [figure_row(figure, _struck) for figure in part.figures])
    if run.drifts:
        lines += ["", "### From its first half to its second", "", *_table(drift_headings(), drift_rows(run))]
    if run.rungs:
        lines += ["", "### How much of its context it takes", "", *_table(rung_headings(), rung_rows(run))]
    lines += ["", _plain(knee_text(run))] if run.knee else []
    return lines + _terms(figure.quantity for part in run.parts for figure in part.figures)


@english()
def comparison_markdown(found: LabComparison) -> list[str]:
    """Return a comparison with its doubts, what differs, and a table for each part, to be shared."""
    found = comparison_for_others(found)
    lines = [f"## {_plain(words.headline(found))}", "", *(f"* {_plain(line)}" for line in words.sides(found))]
    lines += [f"* **{_plain(line)}**" for line in words.doubts(found)]
    lines += ["", f"### {words.differing()}", ""]
    if found.differing:
        lines += _table(("", "A", "B"), words.differing_rows(found))
    else:
        lines.append(words.nothing_differs())
    for part, rows in words.figure_rows(found, _struck).items():
        lines += ["", f"### {_plain(part)}", "", *_table(words.headings(), rows)]
    return [*lines, "", words.of_chance(found), *_terms(one.quantity for one in found.figures)]


@english()
def sweep_markdown(report: SweepReport) -> list[str]:
    """Return a sweep with a row for each start, and each value against the first, to be shared."""
    report = sweep_for_others(report)
    lines = [
        f"## {_plain(swept.headline(report.sweep))}",
        "",
        *(f"* {_plain(one)}" for one in swept.about(report)),
    ]
    lines += ["", f"### {swept.STARTS}", "", *_table(*swept.arm_table(report, _struck))]
    headings, rows = swept.memory_table(report)
    if rows:
        lines += ["", f"### {swept.MEMORY}", "", *_table(headings, rows)]
    if report.changes:
        lines += ["", f"### {swept.CHANGES}", ""]
        lines += _table(swept.CHANGE_HEADINGS, swept.change_rows(report))
    return lines + _terms(swept.quantities(report))


def _terms(shown: Iterable[Quantity]) -> list[str]:
    said = terms(shown)
    return ["", f"### {HEADING}", "", *(f"* {_plain(line)}" for line in said)] if said else []


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    head = [_cells(headings), _cells(["---"] * len(headings))]
    return head + [_cells([_cell(cell) for cell in row]) for row in rows]


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _struck(text: str) -> str:
    return f"{_STRUCK}{text}"


def _cell(content: str) -> str:
    shown = _plain(content)
    return f"~~{shown}~~" if content.startswith(_STRUCK) else shown


def _plain(text: str) -> str:
    """Keep what a server said of itself from being read as markup, or from holding control signs."""
    text = "".join(one if one.isprintable() else " " for one in text.replace(_STRUCK, ""))
    text = _MARKUP.sub(r"\\\g<0>", text.replace("&", "&amp;").replace("<", "&lt;"))
    return " ".join(text.split())
