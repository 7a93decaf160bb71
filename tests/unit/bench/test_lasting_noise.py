"""What is known of the middle: Student's t where nothing lasts, wider where neighbours are alike."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.bench.lasting_noise import middle_of, student


# Abramowitz and Stegun, table 26.10; with one degree of freedom it is Cauchy's, with two an algebraic one.
@pytest.mark.parametrize(
    ("value", "freedom", "share"),
    [(12.706, 1, 0.975), (4.303, 2, 0.975), (3.182, 3, 0.975), (2.764, 10, 0.99), (1.282, 10**4, 0.9)],
)
def test_student_is_that_of_the_tables(value: float, freedom: int, share: float) -> None:
    assert student(value, freedom) == pytest.approx(share, abs=1e-4)
    assert student(-value, freedom) == pytest.approx(1 - share, abs=1e-4)
    assert student(0.0, freedom) == 0.5


@pytest.mark.parametrize("value", [-3.0, -0.2, 1.0, 40.0])
def test_student_of_one_and_two_degrees_is_exact(value: float) -> None:
    assert student(value, 1) == pytest.approx(0.5 + math.atan(value) / math.pi)
    assert student(value, 2) == pytest.approx(0.5 + value / (2 * math.sqrt(2 + value * value)))


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=40))
def test_it_turns_with_the_values_and_its_quantiles_are_in_order(values: list[float]) -> None:
    low, middle, high = (middle_of(values).quantile(share) for share in (0.01, 0.5, 0.99))
    assert low <= middle <= high
    assert min(values) - 1e-6 <= middle <= max(values) + 1e-6
    turned = middle_of([-value for value in values])
    assert turned.quantile(0.99) == pytest.approx(-low, abs=1e-6, rel=1e-6)


def test_of_many_that_know_nothing_of_each_other_it_is_as_their_mean() -> None:
    source = random.Random(3)
    values = [source.gauss(0.5, 1.0) for _ in range(600)]
    found, error = middle_of(values), statistics.stdev(values) / math.sqrt(600)
    assert found.quantile(0.5) == pytest.approx(statistics.fmean(values), abs=error / 2)
    assert 3 < (found.quantile(0.99) - found.quantile(0.01)) / error < 7


def test_what_lasts_makes_it_wider_and_an_outlier_hardly_moves_it() -> None:
    source = random.Random(4)
    mixed = [source.gauss(0.0, 1.0) for _ in range(30)]
    wide, narrow = (middle_of(values) for values in (sorted(mixed), mixed))
    assert wide.quantile(0.99) > 1.5 * narrow.quantile(0.99)
    moved = middle_of([*mixed[:-1], 1000.0])
    assert abs(moved.quantile(0.5) - narrow.quantile(0.5)) < 0.2
    assert moved.quantile(0.99) < 2 * narrow.quantile(0.99)


def test_of_equal_values_it_is_that_value() -> None:
    for share in (0.01, 0.5, 0.99):
        assert middle_of([0.25] * 9).quantile(share) == pytest.approx(0.25, abs=1e-9)
