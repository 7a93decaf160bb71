"""Medians, quartiles and bootstrap intervals by hand-made figures."""

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


def test_the_interval_holds_the_median_and_is_the_same_for_the_same_values() -> None:
    values = [9.0, 10.0, 10.5, 11.0, 30.0]
    found = spread(values, seed=7)
    assert (found.median, found.count) == (10.5, 5)
    assert found.low is not None
    assert found.high is not None
    assert 9.0 <= found.low <= 10.5 <= found.high <= 30.0
    assert spread(values, seed=7) == found
    same = spread([5.0] * 6)
    assert (same.low, same.high, same.q1, same.q3) == (5.0, 5.0, 5.0, 5.0)


def test_too_few_values_have_no_interval() -> None:
    found = spread([1.0] * (LEAST_FOR_INTERVAL - 1))
    assert (found.low, found.high) == (None, None)


def test_the_interval_holds_the_true_median_as_often_as_it_says() -> None:
    draw = random.Random(1)
    held = 0
    for trial in range(60):
        found = spread([draw.gauss(100.0, 5.0) for _ in range(15)], seed=trial)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 100.0 <= found.high
    # The percentile bootstrap of a median is close to its level with fifteen values.
    assert held >= 52
