"""Runs and comparisons as one HTML file that loads nothing: to be kept, sent or opened anywhere."""

import re
from collections.abc import Iterable, Sequence
from html import escape

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
from engine_host.client.bench_reports.plots import comparison_plots, run_plots, sweep_plots
from engine_host.client.bench_reports.svg import STYLE, svg
from engine_host.client.bench_reports.terms import HEADING, terms
from engine_host.protocol.bench.comparison import LabComparison
from engine_host.protocol.bench.lab import LabRun, Quantity
from engine_host.protocol.bench.sweeps import SweepReport
from engine_host.protocol.language import english

# Begins no text of a server: these are taken out of what is shown.
_STRUCK = "\ue000"
_SHORT = 28
"""Signs that stay in one line of a table: a figure with its unit, two ends of an interval."""
_WORD = 12
"""The same of a heading, which may not make its column wider than its figures."""
_CODE = re.compile("`([^`]+)`")
# No script, no picture, no address: not even one that a text could smuggle in would be asked.
_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>
STYLE_OF_PLOTS
body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;overflow-wrap:break-word}
h1{font-size:1.5em}h2{font-size:1.15em;margin:1.5em 0 .25em}code{font-size:.9em}
.table{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:.25em .9em .25em 0;border-bottom:1px solid #8884}
.short{white-space:nowrap}
@media print{body{font-size:11px;max-width:none;margin:0;padding:0}h1,h2,figcaption{break-after:avoid}
figure,tr{break-inside:avoid}.table{overflow:visible}}
</style>""".replace("STYLE_OF_PLOTS", STYLE)


@english()
def run_html(run: LabRun) -> list[str]:
    """Return a run with its conditions and all figures, to be shared."""
    run = run_for_others(run)
    lines = [_list(about(run))]
    lines += [line for plot in run_plots(run) for line in svg(plot)]
    for part in run.parts:
        lines.append(f"<h2>{_text(heading(run, part))}</h2>")
        lines += _table(figure_headings(), [figure_row(figure, _struck) for figure in part.figures])
    if run.drifts:
        lines += ["<h2>From its first half to its second</h2>", *_table(drift_headings(), drift_rows(run))]
    if run.rungs:
        lines += ["<h2>How much of its context it takes</h2>", *_table(rung_headings(), rung_rows(run))]
    if run.knee is not None:
        lines.append(f"<p>{_text(knee_text(run))}</p>")
    return _page(title(run), lines, [figure.quantity for part in run.parts for figure in part.figures])


@english()
def comparison_html(found: LabComparison) -> list[str]:
    """Return a comparison with its doubts, what differs, and a table for each part, to be shared."""
    found = comparison_for_others(found)
    lines = [_list(words.sides(found))]
    lines += [f"<p><strong>{_text(line)}</strong></p>" for line in words.doubts(found)]
    lines += [line for plot in comparison_plots(found) for line in svg(plot)]
    lines.append(f"<h2>{_text(words.differing())}</h2>")
    if found.differing:
        lines += _table(("", "A", "B"), words.differing_rows(found))
    else:
        lines.append(f"<p>{_text(words.nothing_differs())}</p>")
    for part, rows in words.figure_rows(found, _struck).items():
        lines += [f"<h2>{_text(part)}</h2>", *_table(words.headings(), rows)]
    lines.append(f"<p>{_text(words.of_chance(found))}</p>")
    return _page(words.headline(found), lines, [one.quantity for one in found.figures])


@english()
def sweep_html(report: SweepReport) -> list[str]:
    """Return a sweep with its plots, a row for each start, and each value against the first."""
    report = sweep_for_others(report)
    lines = [_list(swept.about(report))]
    lines += [line for plot in sweep_plots(report) for line in svg(plot)]
    lines += [f"<h2>{swept.STARTS}</h2>"]
    lines += _table(*swept.arm_table(report, _struck))
    headings, rows = swept.memory_table(report)
    if rows:
        lines += [f"<h2>{swept.MEMORY}</h2>", *_table(headings, rows)]
    if report.changes:
        lines += [f"<h2>{swept.CHANGES}</h2>"]
        lines += _table(swept.CHANGE_HEADINGS, swept.change_rows(report))
    return _page(swept.headline(report.sweep), lines, swept.quantities(report))


def _page(heading_text: str, lines: Sequence[str], shown: Iterable[Quantity]) -> list[str]:
    name = _text(heading_text)
    said = terms(shown)
    ends = [f"<h2>{HEADING}</h2>", _list(said)] if said else []
    return [_HEAD, f"<title>{name}</title></head><body>", f"<h1>{name}</h1>", *lines, *ends, "</body></html>"]


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in lines)}</ul>"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    head = "".join(f'<th scope="col"{_kept(one, _WORD)}>{_text(one)}</th>' for one in headings)
    body = [f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows]
    opened = f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>'
    return [opened, *body, "</tbody></table></div>"]


def _struck(figure: str) -> str:
    return _STRUCK + figure


def _cell(content: str) -> str:
    shown = _CODE.sub(r"<code>\1</code>", _text(content))
    shown = f"<s>{shown}</s>" if content.startswith(_STRUCK) else shown
    return f"<td{_kept(content)}>{shown}</td>"


def _kept(content: str, most: int = _SHORT) -> str:
    return ' class="short"' if len(content) <= most else ""


def _text(content: str) -> str:
    """Keep what a server said of itself from being read as markup, or from holding control signs."""
    plain = "".join(one if one.isprintable() else " " for one in content.replace(_STRUCK, ""))
    return escape(" ".join(plain.split()))
