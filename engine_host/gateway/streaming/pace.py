"""The lumps in which a stream goes on that is faster than anybody reads: one costs as much as one token."""

from collections.abc import Callable

from engine_host.gateway.upstream import Upstream

_LONGEST_COALESCE = 0.010
_COALESCE_SHARE = 0.02
"""A lump may take 10 ms, and never more than this share of the time the stream has run, so that its end is
not late by more either. Slower streams pass token by token, and none is held back."""
_FEW = 3
_FEWEST = 4
"""Pieces that a lump has to hold at least."""
_SLOW = _LONGEST_COALESCE / _FEWEST


class Pace:
    """Looks at the times between the pieces of one stream."""

    def __init__(self, upstream: Upstream, clock: Callable[[], float]) -> None:
        """The stream begins now."""
        self._upstream = upstream
        self._clock = clock
        self._began = self._last = clock()

    def passed(self, frames: int) -> None:
        """Note that so many went on in one piece; what follows close behind is read in one go."""
        now = self._clock()
        since, self._last = now - self._last, now
        if since >= _SLOW and frames <= _FEW:
            return
        coalesce = (now - self._began) * _COALESCE_SHARE
        if coalesce > _LONGEST_COALESCE:
            coalesce = _LONGEST_COALESCE
        # Stopping and starting costs as much as a piece, so a lump has to hold several.
        if since < coalesce / _FEWEST or frames > _FEW:
            self._upstream.coalesce_reads(coalesce)
