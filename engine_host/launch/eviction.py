"""The engines that make room for another: those that were used longest ago, and none too many."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Evictable:
    """An engine that may be ended for another; `held` are its bytes by device, `last_used` in seconds."""

    engine: str
    held: Mapping[str, int]
    last_used: float


def evictions(short: Mapping[str, int], engines: Iterable[Evictable]) -> tuple[str, ...] | None:
    """Return the engines whose end gives the missing bytes, the one used longest ago first.

    One that holds nothing of what is missing stays, and so does one whose memory is not needed beside that
    of the others. None where all of them together do not hold enough.
    """
    chosen: list[Evictable] = []
    for one in sorted(engines, key=lambda engine: engine.last_used):
        if not _left(short, chosen):
            break
        if any(one.held.get(device, 0) > 0 for device in _left(short, chosen)):
            chosen.append(one)
    if _left(short, chosen):
        return None
    # A small one may have been taken before a large one that is enough alone.
    for one in reversed(chosen.copy()):
        others = [other for other in chosen if other is not one]
        if not _left(short, others):
            chosen = others
    return tuple(one.engine for one in chosen)


def _left(short: Mapping[str, int], ended: Sequence[Evictable]) -> dict[str, int]:
    """The bytes that are still missing, by device, once these have ended."""
    left = {
        device: missing - sum(one.held.get(device, 0) for one in ended) for device, missing in short.items()
    }
    return {device: missing for device, missing in left.items() if missing > 0}
