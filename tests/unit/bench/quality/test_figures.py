"""Perplexity, divergence and agreement, by hand-made predictions."""

import math

import pytest

from engine_host.bench.quality.figures import Position, agreed, divergence, percentile, perplexity


def position(token: int, **probabilities: float) -> Position:
    return Position(token, {int(name[1:]): math.log(value) for name, value in probabilities.items()})


def test_perplexity_spreads_what_the_listed_leave() -> None:
    listed = position(1, t1=0.25, t2=0.5)
    assert perplexity([listed], 10) == pytest.approx(4.0)
    # A quarter is left for the eight others.
    other = position(7, t1=0.25, t2=0.5)
    assert not other.is_listed
    assert perplexity([other], 10) == pytest.approx(32.0)
    # One whose listed tokens make up all is not divided by nothing.
    assert perplexity([position(7, t1=1.0)], 1) > 1e6


def test_divergence_puts_together_what_not_both_list() -> None:
    one = position(1, t1=0.5, t2=0.25)
    assert divergence(one, one) == 0.0
    other = position(1, t1=0.25, t2=0.25, t3=0.5)
    # Three outcomes: 0.5, 0.25, 0.25 beside 0.25, 0.25, 0.5.
    wanted = 0.5 * math.log(2) + 0.25 * math.log(0.5)
    assert divergence(one, other) == pytest.approx(wanted)
    # It is a lower bound of what all outcomes would give.
    whole = position(1, t1=0.5, t2=0.25, t3=0.05, t4=0.2), position(1, t1=0.25, t2=0.25, t3=0.4, t4=0.1)
    cut = position(1, t1=0.5, t2=0.25), position(1, t1=0.25, t2=0.25)
    assert divergence(*cut) <= divergence(*whole)


def test_nothing_in_common_is_one_outcome() -> None:
    assert divergence(position(1, t1=0.9), position(1, t2=0.9)) == 0.0
    # An engine rounds: probabilities may add up to a little more than one.
    assert divergence(position(1, t1=0.9), position(1, t1=1.0000001)) >= 0.0


def test_the_percentile_is_one_of_the_values() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert percentile(values, 0.99) == 99.0
    assert percentile([3.0], 0.99) == 3.0


def test_answers_agree_up_to_the_first_other_token() -> None:
    assert agreed([1, 2, 3], [1, 2, 4]) == 2
    assert agreed([1, 2], [1, 2, 4]) == 2
    assert agreed([], [1]) == 0
