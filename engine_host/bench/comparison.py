"""The verdict over two things that were measured: faster, slower, or can't tell yet.

In turns, each round measures both, so that a machine that drifts does so for both. What is judged are the
logarithms of the rounds' ratios, by what `lasting_noise` knows of their middle: an engine may stay slow for a
while, and one bad round in ten decides nothing.

One after the other, no round belongs to another: then it is the median of all ratios of one of B and one of
A, with the exact rank-sum interval, and a drift is taken for a difference. That interval is exact for sides
whose rounds are independent and of one shape. Real ones are neither: an engine stays slow for a while, and
one side is noisier. So it is widened by what neighbouring rounds have in common, as that makes n rounds worth
n (1 - r) / (1 + r) of them (Bartlett, 1935), and by what Brunner's and Munzel's variance (2000) exceeds the
one of equal shapes. Source: Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd edition, 4.2
and 4.3.
"""

import bisect
import functools
import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from engine_host.bench.lasting_noise import middle_of
from engine_host.protocol.bench.comparison import Verdict
from engine_host.protocol.language import ntr, tr

LEVEL = 0.98
"""The share of identical pairs that are not called different, where rounds know nothing of each other.

In turns, 0.95 or more of them are not where 0.8 of a side's noise lasts until its next round; apart, that is
held to 0.5 of it (docs/bench.md has the figures). It is that of the interval too. With 0.95, half of all
series of 200 comparisons of identical things would call more than ten different; with this, one in five
hundred does.
"""
NORMAL = 2.326348
"""The normal quantile of that share, on both sides."""
MATTERS = 0.02
"""The share from which on a difference is worth more runs."""
LEAST_PAIRS = 7
"""The fewest rounds in turns of which anything is told: fewer say nothing of what is usual."""
_MOST_ROUNDS = 1000
_EXACT_UP_TO = 60
_MOST_IN_COMMON = 0.9
_DOUBT = 1.5
_LEAST_IN_ORDER = 4
_MOST_SHARE = 1.0
"""The share faster from which on a factor says more than per cents; slower it is half the speed."""
_MOST_FACTOR = 1000.0
_WIDE = 4.0
"""The width of an interval of factors from which on its middle says nothing."""
_MOST_LOGARITHM = 700.0


@dataclass(frozen=True)
class Comparison:
    """B against A: `change` is the share by which B is faster (or, below 0, slower), from `low` to `high`.

    They are None where there are too few rounds for an interval. `more_rounds` are those that are likely to
    decide, and None where it is decided, or where even a thousand would not.
    """

    verdict: Verdict
    rounds: int
    change: float | None = None
    low: float | None = None
    high: float | None = None
    more_rounds: int | None = None

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.low is None or self.high is None:
            return ntr(
                "can't tell: {n} more round is needed for any verdict",
                "can't tell: {n} more rounds are needed for any verdict",
                self.more_rounds or 1,
            )
        low, high = self.low, self.high
        if max(high, _slower_factor(low) - 1) > _MOST_SHARE:
            return self._by_factors(low, high)
        if self.verdict is Verdict.FASTER:
            return tr("faster by {low:,.1f} to {high:,.1f} %", low=_percent(low), high=_percent(high))
        if self.verdict is Verdict.SLOWER:
            return tr("slower by {low:,.1f} to {high:,.1f} %", low=_percent(-high), high=_percent(-low))
        between = {"slower": _percent(abs(low)), "faster": _percent(abs(high))}
        return self._open(tr("between {slower:,.1f} % slower and {faster:,.1f} % faster", **between))

    def _by_factors(self, low: float, high: float) -> str:
        """Return the verdict where per cents would have three digits and more, or nearly reach 100."""
        if self.verdict is Verdict.CANNOT_TELL:
            between = {"slower": _factor(_slower_factor(low)), "faster": _factor(1 + high)}
            if max(between.values()) >= _MOST_FACTOR:
                return self._open(tr("nearly anything, with more than a factor of 1,000 between its ends"))
            return self._open(
                tr(
                    "anything from slower by a factor of {slower:,g} to faster by a factor of {faster:,g}",
                    **between,
                )
            )
        faster = self.verdict is Verdict.FASTER
        ends = (1 + low, 1 + high) if faster else (_slower_factor(high), _slower_factor(low))
        least, most = map(_factor, ends)
        if least >= _MOST_FACTOR:
            return (
                tr("faster by a factor of more than 1,000")
                if faster
                else tr("slower by a factor of more than 1,000")
            )
        if most >= _MOST_FACTOR:
            if faster:
                return tr(
                    "faster, but by how much can't be told: a factor of {least:,g} or more", least=least
                )
            return tr("slower, but by how much can't be told: a factor of {least:,g} or more", least=least)
        if most > _WIDE * least or self.change is None:
            told = {"least": least, "most": most}
            if faster:
                return tr(
                    "faster, but by how much can't be told: a factor of {least:,g} to {most:,g}", **told
                )
            return tr("slower, but by how much can't be told: a factor of {least:,g} to {most:,g}", **told)
        about = _factor(1 + self.change if faster else _slower_factor(self.change))
        told = {"about": about, "least": least, "most": most}
        if faster:
            return tr("faster by a factor of about {about:,g} ({least:,g} to {most:,g})", **told)
        return tr("slower by a factor of about {about:,g} ({least:,g} to {most:,g})", **told)

    def _open(self, between: str) -> str:
        if self.more_rounds is None:
            return tr("can't tell: {between}; too noisy for 1,000 rounds to tell", between=between)
        return ntr(
            "can't tell: {between}; {n} more round is likely to tell",
            "can't tell: {between}; {n} more rounds are likely to tell",
            self.more_rounds,
            between=between,
        )


def compare(before: Sequence[float], after: Sequence[float]) -> Comparison:
    """Compare speeds (more is better) of A and B, of which the first of each are of one round, and so on.

    Raises ValueError for rounds without a pair, and for a speed that is not above 0 and finite.
    """
    if len(before) != len(after):
        raise ValueError(f"{len(before)} rounds of A and {len(after)} of B make no pairs")
    _refuse_what_is_no_speed(before, after)
    ratios = [math.log(b / a) for a, b in zip(before, after, strict=True)]
    rounds = len(ratios)
    if rounds < LEAST_PAIRS:
        return Comparison(Verdict.CANNOT_TELL, rounds, more_rounds=LEAST_PAIRS - rounds)
    middle = middle_of(ratios)
    outside = (1 - LEVEL) / 2
    return _judged(rounds, *(middle.quantile(share) for share in (0.5, outside, 1 - outside)))


def compare_apart(before: Sequence[float], after: Sequence[float]) -> Comparison:
    """Compare speeds of A and B, measured one after the other; `rounds` are those of the shorter side.

    Raises ValueError for a speed that is not above 0 and finite.
    """
    _refuse_what_is_no_speed(before, after)
    rounds = min(len(before), len(after))
    outside = critical_apart(len(before), len(after))
    if outside is None:
        more = next(
            more for more in range(1, 10) if critical_apart(len(before) + more, len(after) + more) is not None
        )
        return Comparison(Verdict.CANNOT_TELL, rounds, more_rounds=more)
    one, other = ([math.log(speed) for speed in side] for side in (before, after))
    ratios = sorted(b - a for a in one for b in other)
    middle = _middle(ratios)
    wider = _widened(_in_common([one, other])) * _of_other_shapes(one, other, middle)
    low = middle - (middle - ratios[outside]) * wider
    return _judged(rounds, middle, low, middle + (ratios[-1 - outside] - middle) * wider)


@functools.cache
def critical_apart(rounds: int, others: int) -> int | None:
    """Return how many of the lowest, and of the highest, ratios lie outside; None with too few rounds.

    It is the largest number with P(U < it) ≤ (1 - level) / 2, where U is Mann's and Whitney's.
    """
    if min(rounds, others) == 0:
        return None
    if max(rounds, others) > _EXACT_UP_TO:
        spread = math.sqrt(rounds * others * (rounds + others + 1) / 12)
        return max(0, math.floor(rounds * others / 2 - NORMAL * spread))
    # The coefficients of Gauss's binomial: in how many orders U is 0, 1, 2 …
    ways = [1]
    for step in range(1, rounds + 1):
        raised = ways + [0] * (others + step)
        for total, number in enumerate(ways):
            raised[total + others + step] -= number
        for total in range(step, len(raised)):
            raised[total] += raised[total - step]
        ways = raised[: step * others + 1]
    return _outside(ways)


def _refuse_what_is_no_speed(before: Sequence[float], after: Sequence[float]) -> None:
    if not all(math.isfinite(speed) and speed > 0 for speed in (*before, *after)):
        raise ValueError("a speed has to be above 0 and finite")


def _in_common(sides: Sequence[Sequence[float]]) -> float:
    """Return how much of a round's rank shows in the next one, over all sides; 0 where it tells nothing.

    Ranks, so that an outlier hides nothing. The correlation of n rounds whose true one is r is on average
    r - (1 + 4 r) / n (Marriott and Pope, 1954), which is made up for. As few rounds say little of it, it is
    taken for 1.5 / n more: simulations of r = 0.5 ask for that, to have no more than 5 % of false verdicts.
    """
    weight, total = 0, 0.0
    for side in sides:
        count = len(side)
        if count < _LEAST_IN_ORDER:
            continue
        ranks = _ranks(side)
        spread = sum(rank * rank for rank in ranks)
        if spread:
            found = sum(one * other for one, other in itertools.pairwise(ranks)) / spread
            total += count * (count * found + 1) / max(count - 4, 2)
        weight += count
    if not weight:
        return 0.0
    mean = min(max(total / weight, -1.0), 1.0)
    return min(max(mean + _DOUBT * math.sqrt(1 - mean * mean) / weight, 0.0), _MOST_IN_COMMON)


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value from the middle one; equal values share theirs."""
    ordered = sorted(values)
    return [
        (bisect.bisect_left(ordered, value) + bisect.bisect_right(ordered, value) - len(values)) / 2
        for value in values
    ]


def _widened(in_common: float) -> float:
    """Return by how much an interval has to be wider than that of as many independent rounds."""
    return math.sqrt((1 + in_common) / (1 - in_common))


def _of_other_shapes(one: Sequence[float], other: Sequence[float], change: float) -> float:
    """Return by how much an interval has to be wider than that of two sides of one shape; at least 1."""
    if min(len(one), len(other)) < 2:
        return 1.0
    moved = [value - change for value in other]
    # How many of the other side lie below each, a tie for half.
    variance = len(one) * statistics.variance(_placements(one, moved))
    variance += len(other) * statistics.variance(_placements(moved, one))
    of_one_shape = len(one) * len(other) * (len(one) + len(other) + 1) / 12
    return math.sqrt(max(1.0, variance / of_one_shape))


def _placements(values: Sequence[float], among: Sequence[float]) -> list[float]:
    ordered = sorted(among)
    return [
        (bisect.bisect_left(ordered, value) + bisect.bisect_right(ordered, value)) / 2 for value in values
    ]


def _middle(ordered: Sequence[float]) -> float:
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _judged(rounds: int, middle: float, low: float, high: float) -> Comparison:
    """Return the verdict over the change and its interval (logarithms)."""
    verdict = Verdict.FASTER if low > 0 else Verdict.SLOWER if high < 0 else Verdict.CANNOT_TELL
    more = _more_rounds(rounds, middle, (high - low) / 2) if verdict is Verdict.CANNOT_TELL else None
    change, least, most = (math.expm1(min(value, _MOST_LOGARITHM)) for value in (middle, low, high))
    return Comparison(verdict, rounds, change, least, most, more)


def _outside(ways: Sequence[int]) -> int | None:
    """Return the place of the bound, from the number of ways to each total."""
    limit = (1 - LEVEL) / 2 * sum(ways)
    below, number = 0, 0
    while below + ways[number] <= limit:
        below += ways[number]
        number += 1
    # The k lowest estimates lie outside with P(T < k); without one outside there is no bound at this level.
    return number - 1 if number else None


def _more_rounds(rounds: int, middle: float, half: float) -> int | None:
    """Return the rounds that would make the interval as narrow as the change, or as what matters."""
    wanted = max(abs(middle), math.log1p(MATTERS)) * 0.9
    needed = math.ceil(rounds * (half / wanted) ** 2)
    return needed - rounds if rounds < needed <= _MOST_ROUNDS else None


def _percent(share: float) -> float:
    # Never -0.0.
    return round(100 * share, 1) + 0.0


def _slower_factor(share: float) -> float:
    """Return how many times slower a change is; the share is above -1, but for what rounding makes of it."""
    return 1 / max(1 + share, 0.5 / _MOST_FACTOR)


def _factor(times: float) -> float:
    """Return a factor with the digits that say something: 1.2, 2.4, 14, 140."""
    return round(times, 2) if times < 2 else float(f"{min(times, _MOST_FACTOR):.2g}")
