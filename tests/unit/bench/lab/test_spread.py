"""Medians, quartiles and intervals by hand-made figures."""

import math
import random

import pytest

from engine_host.bench.lab.spread import LEAST_FOR_INTERVAL, quantile, spread


@pytest.mark.parametrize(
    ("share", "value"), [(0.0, 1.0), (0.25, 1.75), (0.5, 2.5), (0.75, 3.25), (0.95, 3.85), (1.0, 4.0)]
)
def test_a_quantile_lies_between_neighbours_in_proportion(share: float, value: float) -> None:
    assert quantile([4.0, 1.0, 3.0, 2.0], share) == pytest.approx(value)
    with pytest.raises(ValueError, match="no values"):
        quantile([], share)


def test_the_interval_of_five_values_is_the_lowest_and_the_highest() -> None:
    values = [9.0, 10.0, 10.5, 11.0, 30.0]
    found = spread(values)
    assert (found.median, found.count) == (10.5, 5)
    assert found.low is not None
    assert found.high is not None
    assert (found.low, found.high) == (9.0, 30.0)
    same = spread([5.0] * 6)
    assert (same.low, same.high, same.q1, same.q3) == (5.0, 5.0, 5.0, 5.0)


def test_too_few_values_have_no_interval() -> None:
    found = spread([1.0] * (LEAST_FOR_INTERVAL - 1))
    assert (found.low, found.high) == (None, None)


def held(count: int) -> float:
    """The share of intervals of so many values that hold the true median, by the sign test."""
    found = spread(range(count))
    assert found.low is not None
    return 1 - 2 * sum(math.comb(count, below) for below in range(int(found.low) + 1)) / (1 << count)


@pytest.mark.parametrize("count", [5, 6, 8, 9, 15, 30, 101])
def test_the_interval_holds_the_true_median_as_often_as_it_says(count: int) -> None:
    assert held(count) >= 0.95 or count == 5
    draw, within, trials = random.Random(count), 0, 1000
    for _ in range(trials):
        found = spread([draw.expovariate(1.0) for _ in range(count)])
        assert found.low is not None
        assert found.high is not None
        within += found.low <= math.log(2) <= found.high
    assert within / trials == pytest.approx(held(count), abs=0.025)


def test_of_five_it_is_said_to_be_less() -> None:
    assert held(5) == 0.9375
    assert "93.75" in (spread.__doc__ or "")
