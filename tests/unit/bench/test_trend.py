"""The trend from session to session: its bounds are those of Kendall's S, and cost nothing."""

import functools
import itertools
import math
import random
import time

import pytest

from engine_host.bench import trend as trends
from engine_host.bench.comparison import LEVEL
from engine_host.bench.trend import trend


def bound(count: int) -> int | None:
    """The bound from the definition: in how many orders 0, 1, 2 … pairs of so many values are wrong."""

    @functools.cache
    def orders(size: int, wrong: int) -> int:
        if wrong < 0:
            return 0
        return (
            1
            if size == 1 and not wrong
            else 0
            if size == 1
            else sum(orders(size - 1, wrong - more) for more in range(size))
        )

    limit = (1 - LEVEL) / 2 * math.factorial(count)
    sums = itertools.accumulate(orders(count, wrong) for wrong in range(count * (count - 1) // 2 + 1))
    return sum(1 for _ in itertools.takewhile(lambda below: below <= limit, sums)) - 1


@pytest.mark.parametrize("count", range(1, 15))
def test_the_bound_is_that_of_the_definition(count: int) -> None:
    expected = bound(count)
    assert trends._outside(count) == (None if expected == -1 else expected)


@pytest.mark.parametrize("count", [61, 90])
def test_the_bound_of_many_is_off_by_one_pair_at_most(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trends._outside.cache_clear()
    near = trends._outside(count)
    monkeypatch.setattr(trends, "_EXACT_UP_TO", count)
    trends._outside.cache_clear()
    exact = trends._outside(count)
    trends._outside.cache_clear()
    assert near is not None
    assert exact is not None
    assert abs(near - exact) <= 1


def test_the_bounds_of_a_thousand_sessions_take_no_time() -> None:
    trends._outside.cache_clear()
    began = time.thread_time()
    for count in range(1, 1001):
        trends._outside(count)
    # Each took hours of a thousand sessions, as the fourth power of their number.
    assert time.thread_time() - began < 5.0


def test_hundreds_of_sessions_that_slow_down_are_told() -> None:
    source = random.Random(1)
    found = trend([math.exp(0.001 * at + source.gauss(0.0, 0.1)) for at in range(300)], 150)
    assert found.grows
    assert found.change == pytest.approx(math.expm1(0.15), abs=0.05)
