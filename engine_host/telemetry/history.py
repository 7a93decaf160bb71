"""Every measured series of the last month: by the second for an hour, by the minute for a month."""

import asyncio
import math
import time
from array import array
from collections.abc import Callable, Mapping, Sequence

from engine_host.core.errors import HostError
from engine_host.protocol.telemetry import Series, TelemetryPage
from engine_host.telemetry.sample_store import Chunk, SampleStore
from engine_host.telemetry.series import describe
from engine_host.telemetry.steps import RESOLUTIONS, Resolution, Steps

SHOWN = 15 * 60.0
"""Seconds of a page without a beginning."""
SET_BACK = 5.0
"""Seconds that a sample may be older than the newest before the clock counts as set back."""
MOST_SERIES = 400
"""Series in memory at most, 20 kB each; the one longest without a value is only on the disk then."""
_MOST_EVICTED = 3 * MOST_SERIES
MOST_STEPS = 10_000
"""Steps of a page at most; they are made wider rather than more."""

_Kept = dict[int, "array[float]"]


class History:
    """All series; times in seconds since the epoch. Everything but the reading of the disk is on one thread.

    What was measured stays in memory until `save`; without a store it is kept there as far as it has place.
    """

    def __init__(self, store: SampleStore | None = None, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._series: dict[str, tuple[Steps, ...]] = {}
        self._evicted: list[Chunk] = []
        self._newest: float | None = None
        self._set_back: float | None = None

    def add(self, at: float, values: Mapping[str, float]) -> None:
        """Take one sample; raises KeyError for a name that is no series. NaN and infinity are not values.

        When the clock was set back, what was measured at times that are still to come is forgotten.
        """
        if self._newest is not None and at < self._newest - SET_BACK:
            for several in self._series.values():
                for steps in several:
                    steps.cut(at)
            self._set_back = at if self._set_back is None else min(at, self._set_back)
            self._newest = at
        for name, value in values.items():
            if not math.isfinite(value):
                continue
            if name not in self._series:
                peaks = describe(name).peaks
                self._evict()
                self._series[name] = tuple(Steps(resolution, peaks=peaks) for resolution in RESOLUTIONS)
            for steps in self._series[name]:
                steps.add(at, value)
        self._newest = at if self._newest is None else max(self._newest, at)

    async def save(self) -> None:
        """Write to the disk what is only in memory.

        Raises HostError(disk_full), HostError(not_writable); it stays in memory then, for the next time.
        """
        if self._store is None or self._newest is None:
            return
        chunks, self._evicted = self._evicted, []
        chunks += [
            Chunk(steps.resolution, name, number, values)
            for name, several in self._series.items()
            for steps in several
            for number, values in steps.take_unsaved().items()
        ]
        try:
            await self._forget_the_future()
            await asyncio.to_thread(self._store.write, chunks)
        except HostError:
            self._take_back(chunks)
            raise
        for several in self._series.values():
            for steps in several:
                steps.drop_saved()

    def close(self) -> None:
        """Close the file; what is only in memory is lost."""
        if self._store is not None:
            self._store.close()

    async def page(
        self,
        names: Sequence[str] = (),
        since: float | None = None,
        step: float | None = None,
        *,
        seq: int = 0,
    ) -> TelemetryPage:
        """Return series from `since` to the newest sample in steps of at least `step` seconds.

        Without names all of them; a name without values is left out. Without `since` the last 15 minutes;
        one that is still to come, as after a clock that was set back, is the newest sample's time. The
        finest steps that reach so far back answer; the step is a multiple of theirs. Each series goes from
        its first value to its last, and without names there are at most `MOST_SERIES`, those measured last.
        Raises HostError where the disk cannot be read.
        """
        newest = self._clock() if self._newest is None else self._newest
        first = newest - SHOWN + 1 if since is None else min(since, newest)
        resolution = _resolution(newest - first, step)
        first = max(first, newest - resolution.span)
        many = max(1, math.ceil((step or 1) / resolution.step - 1e-9))
        many = max(many, math.ceil((newest - first) / resolution.step / MOST_STEPS))
        # In whole steps of the page, so that two pages of the same series show the same values.
        start = math.floor(first / resolution.step) // many
        stop = math.floor(newest / resolution.step) // many
        memory = self._in_memory(resolution, names)
        await self._forget_the_future()
        chunks: list[Chunk] = []
        if self._store is not None:
            numbers = (start * many // resolution.chunk, ((stop + 1) * many - 1) // resolution.chunk)
            chunks = await asyncio.to_thread(self._store.read, resolution, *numbers, names)
        return await asyncio.to_thread(_page, resolution, chunks, memory, names, (start, stop, many), seq)

    def _in_memory(self, resolution: Resolution, names: Sequence[str]) -> dict[str, _Kept]:
        place = RESOLUTIONS.index(resolution)
        memory = {
            name: self._series[name][place].chunks() for name in names or self._series if name in self._series
        }
        for chunk in self._evicted:
            if chunk.resolution is resolution and (not names or chunk.series in names):
                memory.setdefault(chunk.series, {})[chunk.number] = chunk.values
        return memory

    def _take_back(self, chunks: Sequence[Chunk]) -> None:
        """Keep what could not be saved: of series in memory there, of others as far as there is place."""
        for chunk in chunks:
            for steps in self._series.get(chunk.series, ()):
                if steps.resolution is chunk.resolution:
                    steps.not_saved(chunk.number)
        self._evicted += [chunk for chunk in chunks if chunk.series not in self._series]
        del self._evicted[:-_MOST_EVICTED]

    async def _forget_the_future(self) -> None:
        """Let the disk forget what a clock that was set back has yet to reach."""
        if self._store is not None and self._set_back is not None:
            await asyncio.to_thread(self._store.cut, self._set_back)
            self._set_back = None

    def _evict(self) -> None:
        while len(self._series) >= MOST_SERIES:
            stale = min(self._series, key=lambda name: self._series[name][0].newest)
            for steps in self._series.pop(stale):
                self._evicted += [
                    Chunk(steps.resolution, stale, number, values)
                    for number, values in steps.take_unsaved().items()
                ]


def _resolution(back: float, step: float | None) -> Resolution:
    """Return the coarsest steps that are no wider than asked, or the finest that reach so far back."""
    reaching = [one for one in RESOLUTIONS if back < one.span] or [RESOLUTIONS[-1]]
    return next((one for one in reversed(reaching) if one.step <= (step or 1)), reaching[0])


def _page(
    resolution: Resolution,
    chunks: Sequence[Chunk],
    memory: Mapping[str, _Kept],
    names: Sequence[str],
    shown: tuple[int, int, int],
    seq: int,
) -> TelemetryPage:
    start, stop, many = shown
    kept: dict[str, _Kept] = {}
    for chunk in chunks:
        kept.setdefault(chunk.series, {})[chunk.number] = chunk.values
    for name, own in memory.items():
        for number, newer in own.items():
            saved = kept.setdefault(name, {}).get(number)
            kept[name][number] = newer if saved is None else _over(saved, newer)
    found: dict[str, tuple[int, list[float | None]]] = {}
    for name in dict.fromkeys(names or sorted(kept)):
        try:
            peaks = describe(name).peaks
        except KeyError:
            # A series of another version of this program.
            continue
        values = [
            _together(resolution, kept.get(name, {}), slot * many, many, peaks)
            for slot in range(start, stop + 1)
        ]
        measured = [place for place, value in enumerate(values) if value is not None]
        if measured:
            found[name] = measured[0], values[measured[0] : measured[-1] + 1]
    if not names and len(found) > MOST_SERIES:
        newest = sorted(found, key=lambda name: found[name][0] + len(found[name][1]))[-MOST_SERIES:]
        found = {name: found[name] for name in sorted(newest)}
    step = float(resolution.step * many)
    return TelemetryPage(
        seq=seq,
        step=step,
        series=tuple(
            _series(
                name, tuple((start + first + place) * step for place in range(len(values))), tuple(values)
            )
            for name, (first, values) in found.items()
        ),
    )


def _series(name: str, at: tuple[float, ...], values: tuple[float | None, ...]) -> Series:
    kind = describe(name)
    return Series(
        name=name,
        unit=kind.unit,
        title=kind.title,
        source=kind.source,
        peaks=kind.peaks,
        at=at,
        values=values,
    )


def _over(saved: "array[float]", newer: "array[float]") -> "array[float]":
    return array("d", [old if math.isnan(new) else new for old, new in zip(saved, newer, strict=True)])


def _together(resolution: Resolution, kept: _Kept, first: int, many: int, peaks: bool) -> float | None:
    """Return the highest value of some steps, or their mean."""
    found: list[float] = []
    end = first + many
    numbers = range(first // resolution.chunk, (end - 1) // resolution.chunk + 1)
    # A step may be wider than all that is kept.
    for number in numbers if len(numbers) <= len(kept) else sorted(kept):
        if number not in kept or number not in numbers:
            continue
        begin = number * resolution.chunk
        values = kept[number][max(0, first - begin) : max(0, end - begin)]
        found += [one for one in values if not math.isnan(one)]
    if not found:
        return None
    return max(found) if peaks else math.fsum(found) / len(found)
