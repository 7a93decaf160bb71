"""Runs of the bench lab as text and as Markdown: a struck figure is crossed out, one that is missing n/a."""

import time
from collections.abc import Callable, Sequence

from engine_host.cli.output import table
from engine_host.core.sizes import duration
from engine_host.protocol.bench.lab import (
    Figure,
    LabPage,
    LabRun,
    PartResult,
    Quantity,
    Standing,
)

_RATES = {Quantity.DECODE, Quantity.AGGREGATE, Quantity.PREFILL}
_NAMES = {
    Quantity.DECODE: "decode, one stream",
    Quantity.AGGREGATE: "wall clock, all streams",
    Quantity.PREFILL: "prefill",
    Quantity.TTFT: "TTFT",
    Quantity.ITL: "ITL",
    Quantity.TPOT: "TPOT",
    Quantity.TOTAL: "end to end",
}
_HEADINGS = ("", "median", "95 % interval", "quartiles", "p95", "p99", "n", "")
_LISTED_PARTS = 2

Strike = Callable[[str], str]


def report_lines(run: LabRun) -> list[str]:
    """Return a run for a terminal."""
    lines = [_title(run), *_about(run)]
    for part in run.parts:
        lines += ["", _heading(part), *table(_HEADINGS, [_row(figure, _struck) for figure in part.figures])]
    return [*lines, *_knee(run)]


def report_markdown(run: LabRun) -> list[str]:
    """Return a run as Markdown, for a report of one's own."""
    lines = [f"## {_plain(_title(run))}", "", *(f"* {_plain(line)}" for line in _about(run))]
    for part in run.parts:
        lines += ["", f"### {_plain(_heading(part))}", ""]
        rows = [_row(figure, lambda text: f"~~{text}~~") for figure in part.figures]
        lines += [_cells(_HEADINGS), _cells(["---"] * len(_HEADINGS))]
        lines += [_cells([_plain(cell) for cell in row]) for row in rows]
    return [*lines, *_knee(run)]


def list_lines(page: LabPage) -> list[str]:
    """Return the runs, newest first."""
    if not page.runs and not page.unreadable:
        return ["Nothing was measured here yet. `sndr bench run quick` measures the engine that runs."]
    rows = [[run.id, run.engine.model, _server(run), _decode(run), _state(run)] for run in page.runs]
    lines = table(["RUN", "MODEL", "SERVER", "DECODE", "STATE"], rows) if rows else []
    return [*lines, *(f"{name} cannot be read." for name in page.unreadable)]


def _decode(run: LabRun) -> str:
    """Return the speed of the first parts; a sweep has more than a line holds."""
    shown = []
    for part in run.parts[:_LISTED_PARTS]:
        figure = next((one for one in part.figures if one.quantity is Quantity.DECODE), None)
        if figure is not None:
            shown.append(f"{part.name}: {_median(figure, _struck)}")
    return ", ".join(shown + ["…"] * (len(run.parts) > _LISTED_PARTS))


def _state(run: LabRun) -> str:
    if not run.complete:
        return f"partial ({run.ended_by})" if run.ended_by else "partial"
    return "struck" if run.struck else "complete"


def _title(run: LabRun) -> str:
    return f"{run.workload}: {run.engine.model} ({_server(run)})"


def _server(run: LabRun) -> str:
    one = run.engine
    return f"{one.engine} {one.version}".strip() or one.address


def _about(run: LabRun) -> list[str]:
    machine = run.machine
    at = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at))
    lines = [f"{run.id}, {at}, {duration(run.seconds)}, seed {run.seed}, sndr {machine.program}"]
    if machine.processor:
        driver = f", driver {machine.driver}" if machine.driver else ""
        lines.append(", ".join([*machine.gpus, machine.processor]) + driver)
    if run.engine.command:
        lines.append(f"started by: {run.engine.command}")
    if not run.complete:
        lines.append(f"PARTIAL: {run.ended_by or 'it did not come to its end'}")
    return lines


def _heading(part: PartResult) -> str:
    each = f"{part.streams} at once"
    streams = f"{each}, " if part.streams > 1 and part.name != each else ""
    warm = f"{part.warm} warm-up{'' if part.warm == 1 else 's'}"
    return (
        f"{part.name}: {streams}{part.done} of {part.measured} measured after {warm}, "
        f"at most {part.max_tokens} tokens each"
    )


def _knee(run: LabRun) -> list[str]:
    if run.knee is None:
        return []
    where = "none" if run.knee.streams is None else f"at {run.knee.streams} streams"
    return ["", f"Knee: {where}; {run.knee.why}"]


def _row(figure: Figure, strike: Strike) -> list[str]:
    name = _NAMES[figure.quantity]
    if figure.value is None:
        return [name, "n/a", "", "", "", "", "", figure.why]
    struck = figure.standing is Standing.STRUCK

    def shown(*values: float | None) -> str:
        known = [value for value in values if value is not None]
        text = " to ".join(_amount(figure, value) for value in known)
        return strike(text) if struck and text else text

    return [
        name,
        _median(figure, strike),
        shown(figure.low, figure.high),
        shown(figure.q1, figure.q3),
        shown(figure.p95),
        shown(figure.p99),
        str(figure.samples),
        f"struck: {figure.why}" if struck else figure.why,
    ]


def _median(figure: Figure, strike: Strike) -> str:
    if figure.value is None:
        return "n/a"
    text = f"{_amount(figure, figure.value)} {'tok/s' if figure.quantity in _RATES else 'ms'}"
    return strike(text) if figure.standing is Standing.STRUCK else text


def _amount(figure: Figure, value: float) -> str:
    if figure.quantity in _RATES:
        return f"{value:.1f}"
    milliseconds = value * 1000
    return f"{milliseconds:.2f}" if milliseconds < 100 else f"{milliseconds:.0f}"


def _struck(text: str) -> str:
    return f"[struck {text}]"


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Keep what a server said of itself from being read as Markdown or HTML."""
    for sign, instead in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        ("|", "\\|"),
        ("`", "\\`"),
        ("[", "\\["),
        ("!", "\\!"),
    ):
        text = text.replace(sign, instead)
    return " ".join(text.split())
