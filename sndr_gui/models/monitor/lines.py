"""The series of a graph: how points are added, cut off and joined."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from dataclasses import dataclass, field


@dataclass
class Line:
    """One series as it is drawn; a gap is None and is drawn as a gap."""

    name: str
    unit: str
    title: str
    source: str
    peaks: bool = False
    at: list[float] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)
    newest: float | None = None

    def add(self, at: float, value: float, step: float) -> None:
        """Add a value: a step of its own, or the highest of the newest step for a line of peaks."""
        self.newest = value
        start = math.floor(at / step) * step
        if not self.at or start > self.at[-1]:
            if self.at and start - self.at[-1] > 2.5 * step:
                self.at.append(self.at[-1] + step)
                self.values.append(None)
            self.at.append(start)
            self.values.append(value)
            return
        before = self.values[-1]
        self.values[-1] = value if before is None or not self.peaks else max(before, value)

    def cut(self, before: float) -> None:
        """Forget what is older."""
        gone = bisect_left(self.at, before)
        del self.at[:gone], self.values[:gone]

    @property
    def latest(self) -> float | None:
        """The newest value that was measured."""
        if self.newest is not None:
            return self.newest
        return next((value for value in reversed(self.values) if value is not None), None)


def line_name(series: str) -> str:
    """Return the line that a series belongs to: engines that ran one after the other share their lines."""
    return re.sub(r"\Aengine\.[^.]+\.", "engine.", series)


def joined(one: Line, other: Line) -> Line:
    """Join two series in order of time; a measured value wins over a gap at the same time."""
    points: dict[float, float | None] = dict(zip(one.at, one.values, strict=True))
    for at, value in zip(other.at, other.values, strict=True):
        if value is not None or at not in points:
            points[at] = value
    order = sorted(points)
    values = [points[at] for at in order]
    return Line(one.name, one.unit, one.title, one.source, one.peaks, order, values)
