"""A plot as inline SVG: no script, no address, in the colours of the page."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from engine_host.client.bench_reports.plots import Plot

_WIDTH, _HEIGHT = 640, 274
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 32, 48
_WIDE_LEFT = 170
_STEPS = 5
STYLE = (
    # On a telephone a picture is moved sideways like a table: shrunk to it, its words were 7 pixels high.
    "figure{margin:.5em 0 1.5em;overflow-x:auto}figcaption{font-weight:600;position:sticky;left:0}"
    "svg{max-width:100%;min-width:560px;height:auto}"
    "svg text{font:12px system-ui,sans-serif;fill:currentColor}"
    "svg .axis{stroke:#888;stroke-opacity:.4;fill:none}"
    "svg .line{stroke:#3b82c4;fill:none;stroke-width:2}svg .ci{stroke:#3b82c4;stroke-width:2}"
    "svg .box{fill:#3b82c4;fill-opacity:.2;stroke:#3b82c4}svg .mid{fill:#3b82c4}"
    "svg .dot{fill:#888;fill-opacity:.8}svg .mark{stroke:#c4703b;stroke-dasharray:5 4}small{opacity:.75}"
)
"""The rules for the pictures of a document."""


@dataclass(frozen=True)
class _Frame:
    """Places in a picture: `along` places a place, `up` a value, each in the picture's own units."""

    along: Callable[[float], float]
    up: Callable[[float], float]
    across: bool

    def at(self, x: float, y: float) -> tuple[float, float]:
        return (self.up(y), self.along(x)) if self.across else (self.along(x), self.up(y))


def svg(plot: Plot) -> list[str]:
    """Return a plot as a figure with its title and what it is read as."""
    points = [point for one in plot.series for point in one.points]
    if not points:
        return []
    low, high, step = _range(plot)
    ticks = plot.ticks or _ticks(max(point.x for point in points))
    first, last = plot.places()
    left = _WIDE_LEFT if plot.across else _LEFT
    ends = (_HEIGHT - _BOTTOM, _TOP) if plot.across else (left, _WIDTH - _RIGHT)
    values = (left, _WIDTH - _RIGHT) if plot.across else (_HEIGHT - _BOTTOM, _TOP)
    frame = _Frame(_line(first, last, *ends), _line(low, high, *values), plot.across)
    drawn = [*_axes(plot, ticks, frame, (low, high, step), left), *_marks(plot, frame), *_series(plot, frame)]
    title = _text(plot.title)
    note = f"<br><small>{_text(plot.note)}</small>" if plot.note else ""
    return [
        f"<figure><figcaption>{title}</figcaption>",
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="{_text(plot.said())}">',
        *drawn,
        f"</svg>{note}</figure>",
    ]


def steps_of(low: float, high: float) -> float:
    """Return a round distance of lines for a range: 1, 2 or 5 times a power of ten."""
    wanted = max(high - low, 1e-9) / _STEPS
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= wanted * 0.999)


def _range(plot: Plot) -> tuple[float, float, float]:
    """Return the range of values, from 0 where they are amounts, with the distance of its lines."""
    low, high = plot.shown()
    step = steps_of(low, high)
    return math.floor(low / step) * step, math.ceil(high / step + 1e-9) * step, step


def _line(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = (high - low) or 1.0
    least, most = min(low, high), max(low, high)
    return lambda value: start + (min(max(value, least), most) - low) / span * (end - start)


def _ticks(most: float) -> tuple[tuple[float, str], ...]:
    """Return round places from 0 on, each with its number, the last of them at the end or beyond it."""
    step = steps_of(0, most)
    count = math.ceil(most / step - 1e-9)
    return tuple((number * step, _number(number * step, step)) for number in range(count + 1))


def _number(value: float, step: float) -> str:
    """Return a value with as many digits as the distance of its neighbours has."""
    return f"{value:,.{max(0, -math.floor(math.log10(step)))}f}"


def _axes(
    plot: Plot,
    ticks: Sequence[tuple[float, str]],
    frame: _Frame,
    values: tuple[float, float, float],
    left: float,
) -> list[str]:
    lines = []
    low, high, step = values
    for number in range(round((high - low) / step) + 1):
        value = low + number * step
        label = _number(value, step)
        if plot.across:
            x = frame.up(value)
            lines.append(_path("axis", [(x, _TOP), (x, _HEIGHT - _BOTTOM)]))
            lines.append(_label(x, _HEIGHT - _BOTTOM + 16, label, "middle"))
        else:
            y = frame.up(value)
            lines.append(_path("axis", [(left, y), (_WIDTH - _RIGHT, y)]))
            lines.append(_label(left - 8, y + 4, label, "end"))
    for place, name in ticks:
        if plot.across:
            lines.append(_label(left - 8, frame.along(place) + 4, name, "end"))
        else:
            lines.append(_label(frame.along(place), _HEIGHT - _BOTTOM + 16, name, "middle"))
    if plot.across:
        lines.append(_label(_WIDTH - _RIGHT, _HEIGHT - 8, plot.y_title, "end"))
    else:
        # Above the highest line, whose own label it would cover.
        lines.append(_label(left - 8, 14, plot.y_title, "end"))
        lines.append(_label((left + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, plot.x_title, "middle"))
    return lines


def _marks(plot: Plot, frame: _Frame) -> list[str]:
    lines = []
    for value, label in plot.marks:
        x = frame.up(value) if plot.across else frame.along(value)
        lines.append(_path("mark", [(x, _TOP), (x, _HEIGHT - _BOTTOM)]))
        if label:
            lines.append(_label(x + 5, _TOP + 12, label, "start"))
    return lines


def _series(plot: Plot, frame: _Frame) -> list[str]:
    drawn = []
    for series in plot.series:
        if series.joined and len(series.points) > 1:
            drawn.append(_path("line", [frame.at(point.x, point.y) for point in series.points]))
        for point in series.points:
            x, y = frame.at(point.x, point.y)
            if series.dots:
                drawn.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>')
                continue
            if point.q1 is not None and point.q3 is not None and not plot.across:
                top, bottom = frame.up(point.q3), frame.up(point.q1)
                drawn.append(
                    f'<rect class="box" x="{x - 9:.1f}" y="{top:.1f}" width="18" '
                    f'height="{max(0.5, bottom - top):.1f}"/>'
                )
            if point.low is not None and point.high is not None:
                ends = [frame.at(point.x, point.low), frame.at(point.x, point.high)]
                drawn.append(_path("ci", ends))
            drawn.append(f'<circle class="mid" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
    return drawn


def _path(kind: str, points: list[tuple[float, float]]) -> str:
    steps = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path class="{kind}" d="M{steps}"/>'


def _label(x: float, y: float, content: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_text(content)}</text>' if content else ""


def _text(content: str) -> str:
    """Keep what a server said of itself from being read as markup, or from holding control signs."""
    return escape(" ".join("".join(one if one.isprintable() else " " for one in content).split()))
