"""Medians with what is known of them: quartiles, and an interval by the sign test."""

import functools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.95
LEAST_FOR_INTERVAL = 5
"""With fewer values even the lowest and the highest often miss the true median: 1 in 8 times of four."""


@dataclass(frozen=True)
class Spread:
    """The median of some values; `low` and `high` are None where they are too few for an interval."""

    median: float
    q1: float
    q3: float
    low: float | None
    high: float | None
    count: int


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share lies, between neighbours in proportion. Raises ValueError."""
    if not values:
        raise ValueError("there are no values")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def spread(values: Sequence[float]) -> Spread:
    """Return the median with quartiles and an interval of it. Raises ValueError for no values.

    The interval is from one of the values to another, as far inside as at least 95 of 100 such intervals hold
    the true median, whatever the noise is like. That is so of six values or more; of five it is the lowest
    and the highest of them, which hold it in 93.75 of 100. Source: Hollander, Wolfe and
    Chicken, Nonparametric Statistical Methods, 3rd edition, 3.6.
    """
    ordered = sorted(values)
    low = high = None
    if len(ordered) >= LEAST_FOR_INTERVAL:
        outside = _outside(len(ordered))
        low, high = ordered[outside], ordered[-1 - outside]
    return Spread(
        statistics.median(values), quantile(values, 0.25), quantile(values, 0.75), low, high, len(values)
    )


@functools.cache
def _outside(count: int) -> int:
    """Return how many of the lowest, and of the highest, values lie outside at the level, or 0.

    By the sign test: so many of the values or fewer lie below the median in (1 - level) / 2 of all cases.
    """
    below, ways, total, all_ways = 0, 1, 1, 1 << count
    while total / all_ways <= (1 - LEVEL) / 2:
        below += 1
        ways = ways * (count - below + 1) // below
        total += ways
    return max(below - 1, 0)
