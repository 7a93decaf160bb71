"""The pool of KV cache as it is drawn: shares of it, as far as the engine tells them."""

from __future__ import annotations

from dataclasses import dataclass

from engine_host.protocol.engines import Readings
from engine_host.protocol.language import tr
from sndr_gui.kit import formats


@dataclass(frozen=True)
class KvPool:
    """The filled part of the pool, and of it what is kept for later prompts; shares, None is not told.

    `capacity` is in tokens.
    """

    filled: float
    kept: float | None
    capacity: int | None

    @property
    def used(self) -> float:
        """The share that running requests use; all that is filled where the engine tells no more."""
        return max(0.0, self.filled - (self.kept or 0.0))

    def squares(self, number: int) -> tuple[int, int]:
        """Return how many of so many squares are used and kept; a little of either is one of them."""
        used = _some(self.used, number)
        kept = _some(self.kept or 0.0, number)
        return min(used, number), min(kept, number - min(used, number))

    def sentences(self, number: int) -> tuple[str, ...]:
        """Return the pool in words."""

        def told(share: float) -> str:
            if not self.capacity:
                return formats.percent(share)
            tokens = formats.count(share * self.capacity)
            return tr("{share}, {tokens} tokens", share=formats.percent(share), tokens=tokens)

        kept = tr("not reported by this engine") if self.kept is None else told(self.kept)
        free = told(max(0.0, 1 - self.filled))
        share = f"{100 / number:.3g}"
        map_of = tr(
            "A map by share: a square is {number} % of the pool. The engine tells how much is used, not "
            "which blocks.",
            number=share,
        )
        if self.capacity:
            map_of = tr(
                "A map by share of {count} tokens: a square is {number} % of the pool. The engine tells how "
                "much is used, not which blocks.",
                count=formats.count(self.capacity),
                number=share,
            )
        return (
            tr("Used by requests: {told}", told=told(self.used)),
            tr("Prefix cache: {kept}", kept=kept),
            tr("Free or prefix cache: {told}", told=free)
            if self.kept is None
            else tr("Free: {told}", told=free),
            map_of,
        )


def pool_now(readings: Readings | None) -> KvPool | None:
    """Return the pool by the newest readings; None where the engine does not tell."""
    if readings is None:
        return None
    capacity = readings.kv_capacity or None
    if readings.kv_tokens is not None and capacity:
        kept = None if readings.kv_cached is None else readings.kv_cached / capacity
        return KvPool(_share(readings.kv_tokens / capacity), kept, capacity)
    if readings.kv_usage is not None:
        return KvPool(_share(readings.kv_usage), None, capacity)
    return None


def pool_then(filled: float | None, kept: float | None, capacity: int | None) -> KvPool | None:
    """Return the pool by its series at a moment; None where nothing was measured then."""
    return None if filled is None else KvPool(_share(filled), kept, capacity)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def _some(share: float, number: int) -> int:
    return max(1, round(share * number)) if share > 0 else 0
