"""The middle of measurements of which each may resemble the one before, with what is known of it.

A machine that is slow stays so for a while, so n measurements tell as much as fewer that know nothing of each
other: with a correlation of r of neighbours as n (1 - r) / (1 + r). Twenty measurements do not tell r, so
none is chosen: each from 0 to 0.95 is as likely as any other before they are seen, and what is known of the
middle is what all of them say, each as far as it fits (the posterior of a first-order autoregression; Zellner
and Tiao, 1964). Outliers are drawn in first, by Huber's estimator (1964): its own values, whose mean it is.
"""

import functools
import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_CORRELATIONS = tuple(step / 20 for step in range(20))
_FAR = 1.5
"""From so many (robust) deviations on a value counts as no farther: Huber's constant."""
_OF_NORMAL = 1.4826
"""The deviation of normal noise for each of half the distance of its quartiles."""
_LEAST_VARIANCE = 1e-24
"""Of logarithms: equal measurements are known to twelve digits, and not without end."""
_LEAST_WEIGHT = 1e-9
_STEPS = 200


@dataclass(frozen=True)
class _Possible:
    """The middle if the correlation is a certain one: Student's t around `middle`; `weight` of all is 1."""

    weight: float
    middle: float
    deviation: float


@dataclass(frozen=True)
class Middle:
    """The middle of some measurements, as far as it is known."""

    freedom: int
    possible: tuple[_Possible, ...]

    def quantile(self, share: float) -> float:
        """Return the value below which the middle is with a probability."""
        widest = max(one.deviation for one in self.possible)
        point = _point(self.freedom, share)
        # That of a mixture lies among those of its parts.
        points = [one.middle + point * one.deviation for one in self.possible]
        low, high = min(points), max(points)
        value = sum(one.weight * at for one, at in zip(self.possible, points, strict=True))
        for _ in range(_STEPS):
            found, density = self._below(value)
            low, high = (value, high) if found < share else (low, value)
            before, value = value, value - (found - share) / density if density else low
            # Newton's step, unless it leaves what is known to hold the value.
            if not low < value < high:
                value = (low + high) / 2
            if abs(value - before) < widest * 1e-9:
                break
        return value

    def _below(self, value: float) -> tuple[float, float]:
        """Return the probability that the middle is below a value, and its density there."""
        freedom, total, density = self.freedom, 0.0, 0.0
        for one in self.possible:
            off = (value - one.middle) / one.deviation
            total += one.weight * student(off, freedom)
            density += one.weight / one.deviation * (1 + off * off / freedom) ** -((freedom + 1) / 2)
        return total, density * _density(freedom)


def middle_of(values: Sequence[float]) -> Middle:
    """Return what is known of the middle of values in the order of time, two at least."""
    sums = _sums(_drawn_in(values))
    found = [_if_correlated(sums, one) for one in _CORRELATIONS]
    most = max(likely for likely, _, _ in found)
    weights = [math.exp(likely - most) for likely, _, _ in found]
    total = sum(weights)
    possible = (
        _Possible(weight / total, middle, deviation)
        for weight, (_, middle, deviation) in zip(weights, found, strict=True)
    )
    return Middle(len(values) - 1, tuple(one for one in possible if one.weight > _LEAST_WEIGHT))


@dataclass(frozen=True)
class _Sums:
    """All that each correlation asks of the values: sums of their distances from their mean, `at`."""

    count: int
    at: float
    all: float
    ends: float
    squares: float
    squares_of_ends: float
    neighbours: float


def _sums(values: Sequence[float]) -> _Sums:
    at = statistics.fmean(values)
    off = [value - at for value in values]
    first, last = off[0], off[-1]
    return _Sums(
        len(off),
        at,
        math.fsum(off),
        first + last,
        math.fsum(one * one for one in off),
        first * first + last * last,
        math.fsum(one * other for one, other in itertools.pairwise(off)),
    )


def _if_correlated(sums: _Sums, correlation: float) -> tuple[float, float, float]:
    """Return the logarithm of how likely a correlation is, and the middle and its deviation with it."""
    count, left = sums.count, 1 - correlation * correlation
    # The sums of the inverse of the correlations' matrix, by rows: those at both ends have one neighbour.
    end, inner = 1 - correlation, (1 - correlation) ** 2
    known = (2 * end + (count - 2) * inner) / left
    off = (end * sums.ends + inner * (sums.all - sums.ends)) / (left * known)
    # Of distances from that middle instead of from the mean.
    squares = sums.squares + off * (count * off - 2 * sums.all)
    inside = squares - sums.squares_of_ends - 2 * off * (off - sums.ends)
    neighbours = sums.neighbours + off * ((count - 1) * off - 2 * sums.all + sums.ends)
    spread = (squares + correlation**2 * inside - 2 * correlation * neighbours) / left
    variance = max(spread / (count - 1), _LEAST_VARIANCE)
    likely = -((count - 1) * math.log(left) + math.log(known) + (count - 1) * math.log(variance)) / 2
    return likely, sums.at + off, math.sqrt(variance / known)


def _drawn_in(values: Sequence[float]) -> list[float]:
    """Return the values as Huber's estimator counts them: what is far is as far as the bound, and no farther.

    Their mean is the estimate, their variance that of one value in it.
    """
    middle = statistics.median(values)
    # Of a machine with two speeds the quartiles hold both; distances from the middle would know one alone.
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    bound = _FAR * _OF_NORMAL * (third - first) / 2
    if bound == 0.0:
        # Half of them are equal, so that nothing says what is far.
        return list(values)
    for _ in range(_STEPS):
        within = sum(abs(value - middle) <= bound for value in values) / len(values)
        step = statistics.fmean(_clipped(value - middle, bound) for value in values) / within
        middle += step
        if abs(step) < bound * 1e-9:
            break
    # With the middle of the last step some values may lie just on the bound.
    within = sum(abs(value - middle) <= bound * (1 + 1e-6) for value in values) / len(values)
    return [middle + _clipped(value - middle, bound) / within for value in values]


def _clipped(value: float, bound: float) -> float:
    return max(-bound, min(bound, value))


@functools.cache
def _density(freedom: int) -> float:
    """Return the density of Student's t at 0."""
    half = freedom / 2
    return math.exp(math.lgamma(half + 0.5) - math.lgamma(half)) / math.sqrt(math.pi * freedom)


@functools.cache
def _series(freedom: int) -> tuple[float, ...]:
    """Return the factors of the powers of a cosine in the sums for Student's t, the highest first."""
    odd, found, factor = freedom % 2, [], 1.0
    for step in range((freedom - odd) // 2):
        found.append(factor)
        place = 2 * step + 1 + odd
        factor *= place / (place + 1)
    return tuple(reversed(found))


def student(value: float, freedom: int) -> float:
    """Return the probability that Student's t with so many degrees of freedom is below a value.

    By its finite sums for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
    """
    tangent = value / math.sqrt(freedom)
    squared = 1 / (1 + tangent * tangent)
    total = 0.0
    for factor in _series(freedom):
        total = total * squared + factor
    if freedom % 2:
        return 0.5 + (math.atan(tangent) + tangent * squared * total) / math.pi
    return 0.5 + tangent * math.sqrt(squared) * total / 2


@functools.cache
def _point(freedom: int, share: float) -> float:
    """Return the value below which Student's t is with a probability."""
    low, high = -1.0, 1.0
    while student(low, freedom) > share:
        low *= 2
    while student(high, freedom) < share:
        high *= 2
    for _ in range(_STEPS):
        value = (low + high) / 2
        low, high = (value, high) if student(value, freedom) < share else (low, value)
    return (low + high) / 2
