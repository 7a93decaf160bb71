"""A verdict over a goal is given where the rounds tell it, and else what would decide."""

import json
import math
import statistics
from dataclasses import asdict

import pytest

from engine_host.bench import endpoint_overhead as overhead
from engine_host.bench.goals import Goal, at_least, at_most

STEADY = (0.001, -0.002, 0.0, 0.002, -0.001, 0.001, -0.001)
NOISY = (0.06, -0.05, 0.01, -0.04, 0.05, -0.02, 0.03)


def around(middle: float, noise: tuple[float, ...]) -> list[float]:
    """Rounds around a middle."""
    return [middle + one for one in noise]


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        (around(0.995, STEADY), Goal.REACHED),
        (around(0.95, STEADY), Goal.MISSED),
        # Its middle is above the goal, and its rounds lie on both sides of it.
        (around(1.0, NOISY), Goal.NOT_DECIDED),
        (around(0.95, NOISY), Goal.NOT_DECIDED),
        (around(0.98, STEADY), Goal.NOT_DECIDED),
    ],
)
def test_a_spread_that_spans_the_goal_decides_nothing(ratios: list[float], verdict: Goal) -> None:
    judged = at_least(ratios, 0.98)
    assert judged.verdict is verdict
    assert judged.low is not None
    assert judged.high is not None
    assert judged.low <= statistics.median(ratios) <= judged.high
    assert (judged.low >= 0.98) == (verdict is Goal.REACHED)
    assert (judged.high < 0.98) == (verdict is Goal.MISSED)


def test_more_rounds_of_the_same_decide_where_they_are_said_to() -> None:
    judged = at_least(around(1.01, NOISY), 0.98)
    assert judged.verdict is Goal.NOT_DECIDED
    assert judged.more_rounds is not None
    enough = math.ceil((len(NOISY) + judged.more_rounds) / len(NOISY))
    assert at_least(around(1.01, NOISY) * (enough + 1), 0.98).verdict is Goal.REACHED
    assert judged.told("rounds") == f"NOT DECIDED: {judged.more_rounds} more rounds are likely to decide"


def test_too_few_rounds_and_rounds_at_the_goal_say_what_they_are() -> None:
    few = at_most([0.001] * 3, 0.003)
    assert (few.verdict, few.low) == (Goal.NOT_DECIDED, None)
    assert few.told("pairs") == "NOT DECIDED: 4 more pairs are needed for any verdict"
    near = at_most([0.003 + one / 100 for one in (0.1, -0.1) * 5], 0.003)
    assert (near.verdict, near.more_rounds) == (Goal.NOT_DECIDED, None)
    assert "too near the goal for 1,000 pairs" in near.told("pairs")


def test_a_difference_is_judged_from_the_other_side() -> None:
    assert at_most(around(0.002, (0.0001, -0.0001) * 4), 0.003).verdict is Goal.REACHED
    assert at_most(around(0.004, (0.0001, -0.0001) * 4), 0.003).verdict is Goal.MISSED


def test_a_report_with_one_goal_in_doubt_is_not_reached() -> None:
    side = overhead.Side(100.0, 90.0, 110.0, 0.01)
    sure = at_most([0.002, 0.0021] * 4, overhead.MOST_ADDED)
    ttft = overhead.AddedTtft(0.01, 0.012, 0.002, 0.0019, 0.0021, 8, sure)
    doubt = at_least(around(1.0, NOISY), overhead.GOAL)
    row = overhead.OverheadRow(8, side, side, 1.0, 0.95, 1.06, 96, doubt, 80e-6)
    report = overhead.OverheadReport("m", ttft, (row,), 7)
    assert not report.reached
    _, first, last = overhead.told(report)
    assert first.endswith("at most 3 ms: reached")
    assert "80 us of the host a token" in last
    assert "at least 0.98: NOT DECIDED: " in last
    written = json.loads(json.dumps(asdict(report)))
    assert written["rows"][0]["goal"]["verdict"] == "not_decided"
