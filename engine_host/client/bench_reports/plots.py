"""The plots of runs, comparisons and sweeps as numbers; documents and the window draw the same ones.

A figure that is struck is not drawn, and one that was not measured leaves a gap.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine_host.client.bench_reports.figures import between, name_of
from engine_host.client.bench_reports.sweep import CHANGED
from engine_host.protocol.bench.comparison import LabComparison
from engine_host.protocol.bench.lab import (
    Figure,
    LabRun,
    PartResult,
    Quantity,
    Sample,
    Standing,
    WorkloadName,
)
from engine_host.protocol.bench.sweeps import SweepReport
from engine_host.protocol.language import ntr, tr, unit, written

_RATES = {Quantity.DECODE, Quantity.AGGREGATE, Quantity.PREFILL}
_SPREAD = (Quantity.TTFT, Quantity.DECODE, Quantity.TPOT)
_READING = (Quantity.PREFILL, Quantity.TTFT)
_READS = {WorkloadName.PREFILL, WorkloadName.PREFILL_10K, WorkloadName.PREFILL_90K}
_MOST_DOTS = 400
_LABEL = 24
_LEAST_SHARE, _MOST_SHARE = -0.5, 1.0
"""The changes that are drawn in per cent; what is more is drawn as a factor."""


def spread_note(points: Sequence["Point"]) -> str:
    """Return what the boxes and lines of these are; empty where none of them has any."""
    notes = [
        tr("boxes: quartiles") if any(point.q1 is not None for point in points) else "",
        tr("lines: 95 % interval of the median (94 % of five values)")
        if any(point.low is not None for point in points)
        else "",
    ]
    return ", ".join(filter(None, notes))


@dataclass(frozen=True)
class Point:
    """A value at a place, with what is known of its spread; the box are the quartiles."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    q1: float | None = None
    q3: float | None = None


@dataclass(frozen=True)
class Series:
    """Values that belong together; joined by a line, or single ones."""

    name: str
    points: tuple[Point, ...]
    joined: bool = False
    dots: bool = False


@dataclass(frozen=True)
class Plot:
    """A picture: `ticks` name places, `marks` are lines across it. `across` has its values go right."""

    title: str
    x_title: str
    y_title: str
    series: tuple[Series, ...]
    ticks: tuple[tuple[float, str], ...] = ()
    marks: tuple[tuple[float, str], ...] = ()
    across: bool = False
    note: str = ""

    def said(self) -> str:
        """Return the plot for somebody who does not see it."""
        values = [point.y for one in self.series if not one.dots for point in one.points]
        if not values:
            return tr("{title}: nothing to draw", title=self.title)
        marks = "".join(f"; {label}" for _, label in self.marks if label)
        ends = between(*(written(f"{end:.4g}") for end in (min(values), max(values))))
        said = ntr("{title}: {n} value", "{title}: {n} values", len(values), title=self.title)
        return f"{said}, {ends} {self.y_title}{marks}"

    def shown(self) -> tuple[float, float]:
        """Return the range of values that is drawn: from 0, and what goes beyond is cut off at its end."""
        points = [point for one in self.series for point in one.points]
        values = [
            value
            for point in points
            for value in (point.y, point.low, point.high, point.q1, point.q3)
            if value is not None and math.isfinite(value)
        ]
        low, high = min(0.0, *values, 0.0), max(0.0, *values, 0.0)
        if self.across:
            # A wide interval of one row must not hide all others.
            middle = sorted(abs(point.y) for point in points)[len(points) // 2]
            most = max(20.0, 8 * middle, *(abs(point.y) * 1.2 for point in points))
            low, high = max(low, -most), min(high, most)
        return low, high * (1.0 if self.across else 1.08) or 1.0

    def places(self) -> tuple[float, float]:
        """Return the range of places that is drawn: with room around those that have names, else from 0."""
        named = [place for place, _ in self.ticks]
        found = [*named, *(point.x for one in self.series for point in one.points)]
        first, last = min(found, default=0.0), max(found, default=0.0)
        return (first - 0.5, last + 0.7) if self.ticks else (min(0.0, first), last * 1.02 or 1.0)


def run_plots(run: LabRun) -> list[Plot]:
    """Return the plots of a run: curves where its parts are steps, else how each quantity is spread."""
    if run.workload is WorkloadName.CONCURRENCY:
        ticks = tuple((float(place), str(part.streams)) for place, part in enumerate(run.parts))
        knee = [
            (float(place), tr("knee at {streams}", streams=part.streams))
            for place, part in enumerate(run.parts)
            if run.knee is not None and part.streams == run.knee.streams
        ]
        made = [
            _curve(run, Quantity.AGGREGATE, tr("requests at once"), ticks, tuple(knee)),
            _curve(run, Quantity.TTFT, tr("requests at once"), ticks, tuple(knee)),
        ]
    elif run.workload in {WorkloadName.SOAK, WorkloadName.SOAK_CONTINUOUS}:
        made = _over_time(run)
    elif run.workload is WorkloadName.AGENTIC:
        ticks = tuple((float(place), part.name.removeprefix("turn ")) for place, part in enumerate(run.parts))
        made = [_curve(run, Quantity.TTFT, tr("turn"), ticks)]
    elif run.workload is WorkloadName.CONTEXT:
        ticks = tuple(
            (float(place), part.name.removesuffix(" tokens")) for place, part in enumerate(run.parts)
        )
        made = [
            _curve(run, quantity, tr("tokens of the prompt"), ticks)
            for quantity in (Quantity.TTFT, Quantity.PREFILL)
        ]
    else:
        made = [_spread(run, quantity) for quantity in (_READING if run.workload in _READS else _SPREAD)]
    return [plot for plot in made if any(one.points for one in plot.series)]


def comparison_plots(found: LabComparison) -> list[Plot]:
    """Return by how much B is faster, part by part, with its interval."""
    made = []
    for name in dict.fromkeys(one.part for one in found.figures):
        judged = [one for one in found.figures if one.part == name and one.change is not None]
        # Read from the top.
        rows = [(float(len(judged) - place), one) for place, one in enumerate(judged, 1)]
        # As the words beside it: per cents of three digits tell nobody anything.
        factors = any(
            not _LEAST_SHARE <= one.change <= _MOST_SHARE for one in judged if one.change is not None
        )
        first, scale = (1.0, 1.0) if factors else (0.0, 100.0)
        ends = [(row, one.change, one.low, one.high) for row, one in rows]
        points = tuple(
            Point(
                row,
                first + scale * change,
                *(None if end is None else first + scale * end for end in (low, high)),
            )
            for row, change, low, high in ends
            if change is not None
        )
        if points:
            ticks = tuple((row, name_of(one.quantity)) for row, one in rows)
            made.append(
                Plot(
                    tr("{part}: B against A", part=_short(name)),
                    "",
                    tr("times as fast") if factors else tr("% faster"),
                    (Series("B", points),),
                    ticks,
                    ((first, ""),),
                    across=True,
                    note=tr("lines: 98 % interval of the change"),
                )
            )
    return made


def sweep_plots(report: SweepReport) -> list[Plot]:
    """Return decode and time to first token at each value of a sweep, a mark for each of its runs."""
    runs = {run.id: run for run in report.runs}
    places = {value: float(place) for place, value in enumerate(report.sweep.values)}
    ticks = tuple((place, _short(value)) for value, place in places.items())
    made = []
    for quantity in (Quantity.DECODE, Quantity.TTFT):
        points = [
            point
            for arm in report.sweep.arms
            if arm.value in places and (run := runs.get(arm.run)) is not None and run.parts
            for point in _points(run.parts[0], quantity, places[arm.value])
        ]
        if points:
            changed = CHANGED[report.sweep.kind]
            title = f"{name_of(quantity)} by {changed}"
            joined = len({point.x for point in points}) == len(points)
            series = Series(name_of(quantity), tuple(points), joined=joined)
            unit = _unit(quantity)
            made.append(Plot(title, changed, unit, (series,), ticks, note=spread_note(points)))
    return made


def _over_time(run: LabRun) -> list[Plot]:
    """Return the memory of an engine, and the time to the first token of its requests, over a soak."""
    minutes = tr("minutes")
    held = [
        Series(name, tuple(Point(one.at / 60, value / (1 << 20)) for one, value in known), joined=True)
        for name, known in (
            (tr("main memory"), [(one, one.resident) for one in run.memory]),
            (tr("GPU memory"), [(one, one.gpu) for one in run.memory if one.gpu is not None]),
        )
        if known
    ]
    waits = [
        Point((one.started + one.first) / 60, 1000 * one.first)
        for one in run.samples
        if one.first is not None and not one.error
    ]
    made = [
        Plot(tr("{name} over the soak", name=series.name), minutes, unit("MiB"), (series,)) for series in held
    ]
    if waits:
        made.append(
            Plot(
                tr("{name} over the soak", name="TTFT"),
                minutes,
                unit("ms"),
                (Series("TTFT", tuple(waits[:_MOST_DOTS]), dots=True),),
            )
        )
    return made


def _curve(
    run: LabRun,
    quantity: Quantity,
    x_title: str,
    ticks: tuple[tuple[float, str], ...],
    marks: tuple[tuple[float, str], ...] = (),
) -> Plot:
    points = [
        point for place, part in enumerate(run.parts) for point in _points(part, quantity, float(place))
    ]
    series = Series(name_of(quantity), tuple(points), joined=True)
    note = spread_note(points)
    return Plot(name_of(quantity), x_title, _unit(quantity), (series,), ticks, marks, note=note)


def _spread(run: LabRun, quantity: Quantity) -> Plot:
    points: list[Point] = []
    dots: list[Point] = []
    for place, part in enumerate(run.parts):
        own = _points(part, quantity, float(place))
        points += own
        if own:
            dots += _dots(part, quantity, float(place), run.samples)
    ticks = tuple((float(place), _short(part.name)) for place, part in enumerate(run.parts))
    series = (
        *([Series(tr("requests"), tuple(dots), dots=True)] if dots else []),
        Series(tr("median"), tuple(points)),
    )
    notes = [
        spread_note(points),
        tr("dots: each request") if dots else "",
    ]
    note = ", ".join(filter(None, notes))
    return Plot(name_of(quantity), "", _unit(quantity), series, ticks, note=note)


def _points(part: PartResult, quantity: Quantity, place: float) -> list[Point]:
    """Return the published figure of a quantity as one point, or none."""
    figure = next((one for one in part.figures if one.quantity is quantity), None)
    if figure is None or figure.value is None or figure.standing is not Standing.PUBLISHED:
        return []
    shown = [
        None if value is None else _shown(quantity, value)
        for value in (figure.low, figure.high, *_box(figure))
    ]
    return [Point(place, _shown(quantity, figure.value), *shown)]


def _box(figure: Figure) -> tuple[float | None, float | None]:
    # The quartiles of one value are no spread.
    return (figure.q1, figure.q3) if figure.samples > 1 else (None, None)


def _dots(part: PartResult, quantity: Quantity, place: float, samples: Sequence[Sample]) -> list[Point]:
    """Return a dot for each measured request, side by side in the order they came."""
    own = [one for one in samples if one.part == part.name and not one.warm and not one.error]
    values = [value for one in own if (value := _value(one, quantity)) is not None][:_MOST_DOTS]
    width = 0.5 / max(1, len(values))
    return [
        Point(place + 0.12 + number * width, _shown(quantity, value)) for number, value in enumerate(values)
    ]


def _value(sample: Sample, quantity: Quantity) -> float | None:
    """Return what one request tells of a quantity."""
    if quantity is Quantity.TTFT:
        return sample.first
    if quantity is Quantity.PREFILL:
        read = (sample.prompt_tokens or 0) - (sample.cached_tokens or 0)
        return read / sample.first if sample.first and read > 0 else None
    if sample.first is None or sample.last is None or (sample.tokens or 0) < 2:
        return None
    each = (sample.last - sample.first) / ((sample.tokens or 2) - 1)
    if each <= 0:
        return None
    return each if quantity is Quantity.TPOT else 1 / each


def _shown(quantity: Quantity, value: float) -> float:
    return value if quantity in _RATES else 1000 * value


def _unit(quantity: Quantity) -> str:
    return unit("tok/s" if quantity in _RATES else "ms")


def _short(name: str) -> str:
    return name if len(name) <= _LABEL else f"{name[: _LABEL - 1]}…"
