"""Verdicts: the critical values, what an interval holds, and what would decide."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.bench.comparison import Comparison, compare, compare_apart, critical_apart
from engine_host.protocol.bench.comparison import Verdict


@given(st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6)), max_size=40))
def test_the_interval_holds_the_change_and_turns_with_the_sides(pairs: list[tuple[float, float]]) -> None:
    before, after = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    one, other = compare(before, after), compare(after, before)
    assert one.sentence
    if one.change is None or one.low is None or one.high is None:
        assert len(pairs) < 7
        assert one.more_rounds == 7 - len(pairs)
        return
    assert one.low <= one.change <= one.high
    assert other.low is not None
    # Of two factors that are rounded to six places, the smaller one has few digits left.
    smaller, larger = sorted((1 + one.high, 1 + other.low))
    assert smaller == pytest.approx(1 / larger, abs=2e-6)
    turned = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    assert other.verdict is turned.get(one.verdict, one.verdict)


# The known two-sided 2 % points of Mann and Whitney's U.
@pytest.mark.parametrize(
    ("rounds", "others", "outside"),
    [(4, 4, None), (0, 9, None), (5, 5, 1), (3, 8, 0), (8, 3, 0), (10, 10, 19), (20, 20, 114)],
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


def test_sides_apart_need_no_pairs() -> None:
    found = compare_apart([100.0, 101, 99, 100, 102], [50.0, 51, 49, 50, 52])
    assert (found.verdict, found.rounds) == (Verdict.SLOWER, 5)
    assert found.low is not None
    assert found.high is not None
    assert -0.54 < found.low < found.high < -0.46
    assert compare_apart([1.0] * 3, [2.0] * 3).more_rounds == 2
    assert compare_apart([], []).more_rounds == 5
    with pytest.raises(ValueError, match="above 0"):
        compare_apart([0.0], [1.0])


def test_it_says_what_would_decide() -> None:
    faster = compare([100.0] * 8, [110.0, 111, 109, 110, 112, 110, 109, 111])
    assert faster.sentence == "faster by 9.0 to 11.5 %" or faster.verdict is Verdict.FASTER
    open_ = compare([100.0] * 7, [103.0, 99, 108, 96, 104, 101, 98])
    assert open_.verdict is Verdict.CANNOT_TELL
    assert open_.more_rounds is not None
    assert "more rounds are likely to tell" in open_.sentence
    assert "4 more rounds are" in compare([1.0] * 3, [2.0] * 3).sentence
    assert "1 more round is" in compare([1.0] * 6, [2.0] * 6).sentence


@pytest.mark.parametrize(
    ("verdict", "change", "low", "high", "said"),
    [
        (Verdict.FASTER, 0.5, 0.4, 1.0, "faster by 40.0 to 100.0 %"),
        (Verdict.SLOWER, -0.4, -0.5, -0.3, "slower by 30.0 to 50.0 %"),
        (Verdict.FASTER, 12.88, 10.4, 16.3, "faster by a factor of about 14 (11 to 17)"),
        (Verdict.SLOWER, -0.93, -0.95, -0.9, "slower by a factor of about 14 (10 to 20)"),
        (
            Verdict.FASTER,
            4.0,
            0.04,
            22.0,
            "faster, but by how much can't be told: a factor of 1.04 to 23",
        ),
        (Verdict.SLOWER, -0.9, -0.99, -0.1, "slower, but by how much can't be told: a factor of 1.11 to 100"),
        (Verdict.FASTER, 2e9, 1e9, 1e12, "faster by a factor of more than 1,000"),
        (Verdict.SLOWER, -1.0, -1.0, -1.0, "slower by a factor of more than 1,000"),
        (Verdict.FASTER, 5.0, 1.0, 1e9, "faster, but by how much can't be told: a factor of 2 or more"),
        (
            Verdict.CANNOT_TELL,
            0.0,
            -0.862,
            23.018,
            "can't tell: anything from slower by a factor of 7.2 to faster by a factor of 24; "
            "too noisy for 1,000 rounds to tell",
        ),
        (
            Verdict.CANNOT_TELL,
            0.0,
            -0.99999,
            1e5,
            "can't tell: nearly anything, with more than a factor of 1,000 between its ends; "
            "too noisy for 1,000 rounds to tell",
        ),
    ],
)
def test_a_wide_change_is_told_as_a_person_would(
    verdict: Verdict, change: float, low: float, high: float, said: str
) -> None:
    assert Comparison(verdict, 10, change, low, high).sentence == said


def test_sides_of_any_size_are_compared() -> None:
    found = compare_apart([1e-300] * 6, [1e300, 1e301, 1e302, 1e303, 1e304, 1e305])
    assert found.sentence == "faster by a factor of more than 1,000"
    assert found.high is not None
    assert math.isfinite(found.high)


@pytest.mark.parametrize(
    ("before", "after"), [([1.0], []), ([0.0], [1.0]), ([1.0], [math.nan]), ([1.0], [math.inf])]
)
def test_what_is_no_speed_is_refused(before: list[float], after: list[float]) -> None:
    with pytest.raises(ValueError, match=r"rounds of A|above 0"):
        compare(before, after)


def test_rounds_that_go_on_like_the_one_before_widen_the_interval() -> None:
    steps = [1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07]
    mixed = [steps[place] for place in (3, 0, 7, 2, 5, 1, 6, 4)]
    lasting, independent = compare([1.0] * 8, steps), compare([1.0] * 8, mixed)
    assert lasting.change == pytest.approx(independent.change, abs=0.005)
    assert lasting.low is not None
    assert independent.low is not None
    assert lasting.low < independent.low


def test_a_noisy_side_of_few_rounds_widens_the_interval() -> None:
    many = [100.0, 101, 102, 103, 104] * 4
    quiet, noisy = [110.0, 111, 112, 113, 114], [60.0, 90, 112, 140, 200]
    wide, narrow = compare_apart(many, noisy), compare_apart(many, quiet)
    assert narrow.verdict is Verdict.FASTER
    assert wide.verdict is Verdict.CANNOT_TELL
