"""A short history of every series: a fine ring for minutes, a coarse one for a day."""

import math
from array import array
from collections.abc import Mapping, Sequence

from engine_host.protocol.telemetry import Series, TelemetryPage
from engine_host.telemetry.series import describe

FINE_STEP = 1.0
FINE_SPAN = 15 * 60.0
COARSE_STEP = 10.0
COARSE_SPAN = 24 * 3600.0
SET_BACK = 5.0
"""Seconds that a sample may be older than the newest before the clock counts as set back."""
MOST_SERIES = 200
"""Series kept at most; each takes 95 kB, and the one longest without a value goes first."""


class Ring:
    """Means or peaks of steps of equal length, the newest `size` of them; a step without a value is a gap."""

    def __init__(self, step: float, size: int, *, peaks: bool) -> None:
        self.step = step
        self.peaks = peaks
        self.size = size
        self.newest: int | None = None
        self._values = array("d", bytes(8 * size))
        self._counts = array("H", bytes(2 * size))

    def add(self, at: float, value: float) -> None:
        """Take a value into its step; one older than the ring is dropped."""
        slot = math.floor(at / self.step)
        if self.newest is None:
            self.newest = slot
        elif slot > self.newest:
            self._clear(self.newest + 1, slot)
            self.newest = slot
        elif slot <= self.newest - self.size:
            return
        place = slot % self.size
        count = self._counts[place]
        if count == 0xFFFF:
            return
        self._counts[place] = count + 1
        if self.peaks:
            self._values[place] = max(value, self._values[place]) if count else value
        else:
            self._values[place] += (value - self._values[place]) / (count + 1)

    def value(self, slot: int) -> tuple[float, int] | None:
        """Mean or highest value of one step, and the number of values; None is a gap."""
        if self.newest is None or not self.newest - self.size < slot <= self.newest:
            return None
        count = self._counts[slot % self.size]
        return (self._values[slot % self.size], count) if count else None

    def cut(self, at: float) -> None:
        """Forget the steps after this time; those before it stay."""
        slot = math.floor(at / self.step)
        if self.newest is not None and slot < self.newest:
            self._clear(slot + 1, self.newest)
            self.newest = slot

    def _clear(self, first: int, last: int) -> None:
        for slot in range(max(first, last - self.size + 1), last + 1):
            self._values[slot % self.size] = 0.0
            self._counts[slot % self.size] = 0


class History:
    """All series; times in seconds since the epoch. Everything happens on one thread."""

    def __init__(self) -> None:
        self._fine: dict[str, Ring] = {}
        self._coarse: dict[str, Ring] = {}
        self._newest = 0.0
        self._oldest: float | None = None

    def add(self, at: float, values: Mapping[str, float]) -> None:
        """Take one sample; raises KeyError for a name that is no series. NaN and infinity are not values.

        When the clock was set back, what was measured at times that are still to come is forgotten.
        """
        if at < self._newest - SET_BACK:
            for ring in (*self._fine.values(), *self._coarse.values()):
                ring.cut(at)
            self._newest = at
        for name, value in values.items():
            if not math.isfinite(value):
                continue
            if name not in self._fine:
                peaks = describe(name).peaks
                self._evict_stale()
                self._fine[name] = Ring(FINE_STEP, round(FINE_SPAN / FINE_STEP), peaks=peaks)
                self._coarse[name] = Ring(COARSE_STEP, round(COARSE_SPAN / COARSE_STEP), peaks=peaks)
            self._fine[name].add(at, value)
            self._coarse[name].add(at, value)
        self._newest = max(self._newest, at)
        self._oldest = at if self._oldest is None else min(self._oldest, at)

    def names(self) -> tuple[str, ...]:
        """The series that have values, by name."""
        return tuple(sorted(self._fine))

    def page(
        self,
        names: Sequence[str] = (),
        since: float | None = None,
        step: float | None = None,
        *,
        seq: int = 0,
    ) -> TelemetryPage:
        """Series from `since` to the newest sample in steps of at least `step` seconds.

        Without names all of them; a name without values is left out. Without `since` the last 15 minutes;
        one that is still to come, as after a clock that was set back, is the newest sample's time.
        The fine ring answers where it reaches and is wanted; the step is a multiple of the ring's own.
        """
        if self._oldest is None:
            return TelemetryPage(seq=seq, step=step or FINE_STEP, series=())
        first = self._newest - FINE_SPAN + FINE_STEP if since is None else min(since, self._newest)
        first = max(first, self._oldest)
        fine_reaches = math.floor(first) > math.floor(self._newest) - FINE_SPAN
        fine = fine_reaches and (step is None or step < COARSE_STEP)
        rings = self._fine if fine else self._coarse
        own = FINE_STEP if fine else COARSE_STEP
        many = max(1, math.ceil((step or own) / own - 1e-9))
        chosen = [name for name in (names or self.names()) if name in rings]
        return TelemetryPage(
            seq=seq,
            step=own * many,
            series=tuple(self._series(name, rings[name], first, many) for name in dict.fromkeys(chosen)),
        )

    def _series(self, name: str, ring: Ring, first: float, many: int) -> Series:
        kind = describe(name)
        oldest = math.floor(self._newest / ring.step) - ring.size + 1
        start = max(math.floor(first / ring.step), oldest) // many
        stop = math.floor(self._newest / ring.step) // many
        slots = range(start, stop + 1)
        return Series(
            name=name,
            unit=kind.unit,
            title=kind.title,
            source=kind.source,
            peaks=kind.peaks,
            at=tuple(slot * many * ring.step for slot in slots),
            values=tuple(_together(ring, slot * many, many) for slot in slots),
        )

    def _evict_stale(self) -> None:
        while len(self._fine) >= MOST_SERIES:
            stale = min(self._fine, key=lambda name: self._fine[name].newest or 0)
            del self._fine[stale], self._coarse[stale]


def _together(ring: Ring, first: int, many: int) -> float | None:
    """The highest value of some steps, or their mean, in which each counts as often as it was measured."""
    # A step may be wider than all that is kept.
    newest = -1 if ring.newest is None else ring.newest
    kept = range(max(first, newest - ring.size + 1), min(first + many, newest + 1))
    found = [step for slot in kept if (step := ring.value(slot)) is not None]
    if not found:
        return None
    if ring.peaks:
        return max(value for value, _count in found)
    return sum(value * count for value, count in found) / sum(count for _value, count in found)
