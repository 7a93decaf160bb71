"""Does something grow from one session to the next: the slope over their logarithms, with its interval.

Theil's and Sen's slope (the median of the slopes of all pairs) with the exact interval of Kendall's S, which
asks for no shape of the noise. Five sessions, each above the one before, are the fewest that tell.
Source: Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd edition, 9.1 to 9.3.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine_host.bench.comparison import LEVEL, NORMAL

_EXACT_UP_TO = 60


@dataclass(frozen=True)
class Trend:
    """The share by which something grows over some sessions; no `low` and `high` with too few of them."""

    change: float | None
    low: float | None
    high: float | None

    @property
    def grows(self) -> bool:
        """True where it grows, beyond noise."""
        return self.low is not None and self.low > 0

    @property
    def told(self) -> bool:
        """True where it grows or shrinks, beyond noise."""
        return self.grows or (self.high is not None and self.high < 0)


def trend(values: Sequence[float], over: float) -> Trend:
    """Return by which share values above 0, in their order, change over so many steps."""
    logs = [math.log(value) for value in values]
    count = len(logs)
    slopes = sorted((logs[j] - logs[i]) / (j - i) for i in range(count) for j in range(i + 1, count))
    if not slopes:
        return Trend(None, None, None)
    middle = (slopes[(len(slopes) - 1) // 2] + slopes[len(slopes) // 2]) / 2
    outside = _outside(count)
    if outside is None:
        return Trend(math.expm1(middle * over), None, None)
    low, high = slopes[outside], slopes[-1 - outside]
    return Trend(math.expm1(middle * over), math.expm1(low * over), math.expm1(high * over))


@functools.cache
def _outside(count: int) -> int | None:
    """Return how many of the lowest, and of the highest, slopes lie outside; None with too few values.

    It is the largest number with P(I < it) ≤ (1 - level) / 2, where I is the number of pairs in wrong order:
    exactly for up to 60 values; beyond, of the normal distribution with I's mean n (n - 1) / 4 and variance
    n (n - 1) (2 n + 5) / 72, which is off by one pair at most (seen from 61 to 150 values). Equal values are
    not corrected for: that makes the variance smaller, so without it the interval is never too narrow.
    """
    pairs = count * (count - 1) // 2
    if count > _EXACT_UP_TO:
        spread = math.sqrt(count * (count - 1) * (2 * count + 5) / 72)
        return math.floor(pairs / 2 - NORMAL * spread)
    # One value more has 0 to size - 1 of the others in wrong order: a sum over that many, of sums up to each.
    ways = [1]
    for size in range(2, count + 1):
        sums = list(itertools.accumulate(ways, initial=0))
        last = len(ways)
        ways = [
            sums[min(place + 1, last)] - sums[max(place + 1 - size, 0)] for place in range(last + size - 1)
        ]
    limit, below, number = (1 - LEVEL) / 2 * math.factorial(count), 0, 0
    while below + ways[number] <= limit:
        below += ways[number]
        number += 1
    return number - 1 if number else None
