"""Verdicts are calibrated: identical things are not called different, and a planted slow-down is found."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.bench.comparison import compare, compare_apart, critical, critical_apart, least_rounds
from engine_host.protocol.bench.comparison import Verdict

NOISES = {
    "even": lambda source: source.gauss(0.0, 0.02),
    "with outliers": lambda source: source.gauss(0.0, 0.02) * (5 if source.random() < 0.1 else 1),
    "of two speeds": lambda source: source.choice((-0.02, 0.02)) + source.gauss(0.0, 0.005),
}


def verdicts(noise: str, rounds: int, change: float) -> list[Verdict]:
    """Verdicts of two hundred comparisons, on a machine that slows down by a third in each of them."""
    source, found = random.Random(f"{noise} {rounds} {change}"), []
    for _ in range(200):
        drift = [100 * (1 - number / rounds / 3) for number in range(rounds)]
        before = [speed * math.exp(NOISES[noise](source)) for speed in drift]
        after = [speed * (1 + change) * math.exp(NOISES[noise](source)) for speed in drift]
        found.append(compare(before, after).verdict)
    return found


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rounds", [6, 10, 30, 80])
def test_identical_things_are_called_different_in_one_case_of_twenty_at_most(noise: str, rounds: int) -> None:
    wrong = sum(verdict is not Verdict.CANNOT_TELL for verdict in verdicts(noise, rounds, 0.0))
    # Five per cent of 200, and what chance adds to that (binomial, once in a thousand).
    assert wrong <= 10 + 10


@pytest.mark.parametrize(("noise", "rounds"), [("even", 10), ("with outliers", 20), ("of two speeds", 20)])
def test_a_planted_slow_down_is_found(noise: str, rounds: int) -> None:
    found = verdicts(noise, rounds, -0.05)
    assert found.count(Verdict.SLOWER) >= 180
    assert Verdict.FASTER not in found


# Table A.4 of Hollander and Wolfe: P(T <= 0) = 1/2^n, and the known 5 % points of the two-sided test.
@pytest.mark.parametrize(
    ("rounds", "outside"), [(5, None), (6, 0), (7, 2), (8, 3), (10, 8), (20, 52), (30, 137)]
)
def test_the_critical_values_are_those_of_the_tables(rounds: int, outside: int | None) -> None:
    assert critical(rounds) == outside
    assert least_rounds() == 6


@given(st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6)), max_size=40))
def test_the_interval_holds_the_change_and_turns_with_the_sides(pairs: list[tuple[float, float]]) -> None:
    before, after = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    one, other = compare(before, after), compare(after, before)
    assert one.sentence
    if one.change is None or one.low is None or one.high is None:
        assert len(pairs) < 6
        assert one.more_rounds == 6 - len(pairs)
        return
    assert one.low <= one.change <= one.high
    assert other.low is not None
    assert (1 + one.high) * (1 + other.low) == pytest.approx(1, rel=1e-6)
    turned = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    assert other.verdict is turned.get(one.verdict, one.verdict)


# The known two-sided 5 % points of Mann and Whitney's U.
@pytest.mark.parametrize(
    ("rounds", "others", "outside"),
    [(3, 3, None), (0, 9, None), (4, 4, 0), (5, 5, 2), (3, 8, 2), (8, 3, 2), (10, 10, 23), (20, 20, 127)],
)
def test_the_critical_values_of_sides_apart_are_those_of_the_tables(
    rounds: int, others: int, outside: int | None
) -> None:
    assert critical_apart(rounds, others) == outside


def test_the_normal_values_go_on_where_the_exact_ones_end() -> None:
    exact, normal = critical_apart(60, 60), critical_apart(61, 61)
    assert exact is not None
    assert normal is not None
    assert 0 < normal - exact < 2 * 60


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rounds", [5, 10])
def test_identical_sides_apart_are_rarely_called_different(noise: str, rounds: int) -> None:
    source, wrong = random.Random(f"{noise} {rounds}"), 0
    for _ in range(200):
        sides = [[math.exp(NOISES[noise](source)) for _ in range(rounds)] for _ in range(2)]
        wrong += compare_apart(*sides).verdict is not Verdict.CANNOT_TELL
    assert wrong <= 10 + 10


def test_sides_apart_need_no_pairs() -> None:
    found = compare_apart([100.0, 101, 99, 100], [50.0, 51, 49, 50, 52])
    assert (found.verdict, found.rounds) == (Verdict.SLOWER, 4)
    assert found.low is not None
    assert found.high is not None
    assert -0.53 < found.low < found.high < -0.47
    assert compare_apart([1.0] * 3, [2.0] * 3).more_rounds == 1
    assert compare_apart([], []).more_rounds == 4
    with pytest.raises(ValueError, match="above 0"):
        compare_apart([0.0], [1.0])


def test_it_says_what_would_decide() -> None:
    faster = compare([100.0] * 8, [110.0, 111, 109, 110, 112, 110, 109, 111])
    assert faster.sentence == "faster by 9.0 to 11.5 %" or faster.verdict is Verdict.FASTER
    open_ = compare([100.0] * 6, [103.0, 99, 108, 96, 104, 101])
    assert open_.verdict is Verdict.CANNOT_TELL
    assert open_.more_rounds is not None
    assert "more rounds are likely to tell" in open_.sentence
    assert "3 more rounds" in compare([1.0] * 3, [2.0] * 3).sentence


@pytest.mark.parametrize(
    ("before", "after"), [([1.0], []), ([0.0], [1.0]), ([1.0], [math.nan]), ([1.0], [math.inf])]
)
def test_what_is_no_speed_is_refused(before: list[float], after: list[float]) -> None:
    with pytest.raises(ValueError, match=r"rounds of A|above 0"):
        compare(before, after)
