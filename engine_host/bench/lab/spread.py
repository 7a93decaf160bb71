"""Medians with what is known of them: quartiles, and an interval by resampling."""

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.95
LEAST_FOR_INTERVAL = 5
"""With fewer values the resampled median says nothing of the true one."""
_DRAWS = 2000


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


def spread(values: Sequence[float], seed: int = 0) -> Spread:
    """Return the median with quartiles and a percentile bootstrap interval. Raises ValueError for no values.

    The same values and seed give the same interval. Source: Efron and Tibshirani, An Introduction to the
    Bootstrap, chapter 13.
    """
    low = high = None
    if len(values) >= LEAST_FOR_INTERVAL:
        draw = random.Random(seed)
        medians = [statistics.median(draw.choices(values, k=len(values))) for _ in range(_DRAWS)]
        low, high = quantile(medians, (1 - LEVEL) / 2), quantile(medians, (1 + LEVEL) / 2)
    return Spread(
        quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75), low, high, len(values)
    )
