"""The steps in which series are kept, and those of one series that are still in memory."""

import math
from array import array
from dataclasses import dataclass


@dataclass(frozen=True)
class Resolution:
    """Seconds of a step, seconds that are kept, and the steps that are saved as one piece (a chunk)."""

    step: int
    span: int
    chunk: int

    @property
    def chunks(self) -> int:
        """The chunks of the span, of which the first and the last are parts."""
        return self.span // (self.step * self.chunk) + 1


RESOLUTIONS = (Resolution(1, 3600, 300), Resolution(10, 86400, 360), Resolution(60, 31 * 86400, 360))
"""A second for an hour, ten for a day, a minute for a month."""

_MOST_CHUNKS = 12
"""Chunks of a series in memory at most; more than one only while they cannot be saved."""
_MOST_COUNTED = 0xFFFF


def gaps(number: int) -> "array[float]":
    """Return so many steps without a value (NaN)."""
    return array("d", [math.nan]) * number


class Steps:
    """The newest steps of one series: means or peaks by chunk, from the first value until they are saved."""

    def __init__(self, resolution: Resolution, *, peaks: bool) -> None:
        self.resolution = resolution
        self.peaks = peaks
        self.newest = 0
        self._chunks: dict[int, tuple[array[float], array[int]]] = {}
        self._unsaved: set[int] = set()

    def add(self, at: float, value: float) -> None:
        """Take a value into its step."""
        slot = math.floor(at / self.resolution.step)
        chunk, place = divmod(slot, self.resolution.chunk)
        if chunk not in self._chunks:
            if self._chunks and chunk < min(self._chunks):
                return
            self._chunks[chunk] = (gaps(self.resolution.chunk), array("H", bytes(2 * self.resolution.chunk)))
            if len(self._chunks) > _MOST_CHUNKS:
                self._forget(min(self._chunks))
        values, counts = self._chunks[chunk]
        count = counts[place]
        if count == _MOST_COUNTED:
            return
        counts[place] = count + 1
        if not count:
            values[place] = value
        elif self.peaks:
            values[place] = max(value, values[place])
        else:
            values[place] += (value - values[place]) / (count + 1)
        self._unsaved.add(chunk)
        self.newest = max(self.newest, slot)

    def cut(self, at: float) -> None:
        """Forget the steps after this time; those before it stay."""
        last = math.floor(at / self.resolution.step)
        for chunk in list(self._chunks):
            first = chunk * self.resolution.chunk
            if first > last:
                self._forget(chunk)
                continue
            values, counts = self._chunks[chunk]
            for place in range(max(0, last + 1 - first), self.resolution.chunk):
                values[place], counts[place] = math.nan, 0
        self.newest = min(self.newest, last)

    def chunks(self) -> "dict[int, array[float]]":
        """Return a copy of all chunks in memory, by number."""
        return {chunk: values[:] for chunk, (values, _counts) in self._chunks.items()}

    def take_unsaved(self) -> "dict[int, array[float]]":
        """Return a copy of what is not saved yet, which from now on counts as saved."""
        taken, self._unsaved = self._unsaved, set()
        return {chunk: self._chunks[chunk][0][:] for chunk in sorted(taken)}

    def not_saved(self, chunk: int) -> None:
        """Take back that a chunk was saved."""
        if chunk in self._chunks:
            self._unsaved.add(chunk)

    def drop_saved(self) -> None:
        """Let go of chunks that are saved and to which nothing is added any more."""
        current = self.newest // self.resolution.chunk
        for chunk in [one for one in self._chunks if one < current and one not in self._unsaved]:
            self._forget(chunk)

    def _forget(self, chunk: int) -> None:
        del self._chunks[chunk]
        self._unsaved.discard(chunk)
