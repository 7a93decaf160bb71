"""The series of a graph: how points are added, cut off and joined."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class _Numbers:
    """The points of a line as numbers, a gap as NaN: what a graph can take without looking at each."""

    at: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))


@dataclass
class Line:
    """One series as it is drawn; a gap is None and is drawn as a gap. What has `ended` has no value now."""

    name: str
    unit: str
    title: str
    source: str
    peaks: bool = False
    at: list[float] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)
    newest: float | None = None
    ended: bool = False
    # Of lines that share their points, as those with another title do, it is one.
    _numbers: _Numbers = field(default_factory=_Numbers, repr=False, compare=False)

    def add(self, at: float, value: float, step: float) -> None:
        """Add a value: a step of its own, or the highest of the newest step for a line of peaks."""
        self.newest = value
        start = math.floor(at / step) * step
        if not self.at or start > self.at[-1]:
            if self.at and start - self.at[-1] > 2.5 * step:
                self._append(self.at[-1] + step, None)
            self._append(start, value)
            return
        before = self.values[-1]
        self.values[-1] = value if before is None or not self.peaks else max(before, value)
        if len(self._numbers.values) == len(self.values):
            self._numbers.values[-1] = _number(self.values[-1])

    def _append(self, at: float, value: float | None) -> None:
        numbers = self._numbers
        if len(numbers.at) == len(self.at):
            numbers.at.append(at)
            numbers.values.append(_number(value))
        self.at.append(at)
        self.values.append(value)

    def numbers(self) -> tuple[array[float], array[float]]:
        """Return the points as numbers, a gap as NaN; read anew only when they were set from outside."""
        numbers = self._numbers
        if len(numbers.at) != len(self.at) or len(numbers.values) != len(self.values):
            numbers.at[:] = array("d", self.at)
            numbers.values[:] = array("d", map(_number, self.values))
        return numbers.at, numbers.values

    def cut(self, before: float) -> None:
        """Forget what is older."""
        gone = bisect_left(self.at, before)
        if not gone:
            return
        numbers = self._numbers
        if len(numbers.at) == len(self.at):
            del numbers.at[:gone], numbers.values[:gone]
        del self.at[:gone], self.values[:gone]

    def value_at(self, at: float, within: float = math.inf) -> float | None:
        """Return the value measured closest to a time, `within` seconds of it; None in a gap."""
        place = bisect_left(self.at, at)
        near = [one for one in (place - 1, place) if 0 <= one < len(self.at)]
        closest = min(near, key=lambda one: abs(self.at[one] - at), default=None)
        return None if closest is None or abs(self.at[closest] - at) > within else self.values[closest]

    @property
    def latest(self) -> float | None:
        """The newest value that was measured; None of what has ended."""
        if self.ended:
            return None
        if self.newest is not None:
            return self.newest
        return next((value for value in reversed(self.values) if value is not None), None)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def split_name(series: str) -> tuple[str, str]:
    """Return the engine's id of a series, empty for one of the machine, and the rest of its name."""
    found = re.match(r"\Aengine\.([^.]+)\.(.+)\Z", series)
    return (found[1], found[2]) if found is not None else ("", series)


def one_after_another(own: Line | None, others: Iterable[Line]) -> Line | None:
    """Return an engine's line, led by those of engines that had ended before it began, the latest first.

    What ran beside it is another engine's and stays out. Without a line of its own the latest of the others
    takes its place.
    """
    made = own
    for line in sorted((line for line in others if line.at), key=lambda line: -line.at[-1]):
        if made is None or not made.at:
            made = line
        elif line.at[-1] < made.at[0]:
            made = joined(made, line)
    return made


def joined(one: Line, other: Line) -> Line:
    """Join two series in order of time; a measured value wins over a gap at the same time."""
    points: dict[float, float | None] = dict(zip(one.at, one.values, strict=True))
    for at, value in zip(other.at, other.values, strict=True):
        if value is not None or at not in points:
            points[at] = value
    order = sorted(points)
    values = [points[at] for at in order]
    return Line(one.name, one.unit, one.title, one.source, one.peaks, order, values)


def in_order(line: Line) -> tuple[bool, tuple[tuple[int, str], ...]]:
    """Return the place of a line among others: GPU 10 comes after GPU 9, and a part after the whole."""
    parts = tuple((int(part), "") if part.isdecimal() else (-1, part) for part in line.name.split("."))
    return line.name.endswith("kv.cached"), parts
