"""Verdicts over goals, as far as the rounds of one run tell: a spread that spans a goal decides nothing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine_host.bench.comparison import LEAST_PAIRS, LEVEL
from engine_host.bench.lasting_noise import middle_of

_MOST_ROUNDS = 1000


class Goal(StrEnum):
    """The verdict over a goal."""

    REACHED = "reached"
    MISSED = "missed"
    NOT_DECIDED = "not_decided"


@dataclass(frozen=True)
class Judged:
    """A verdict with the interval that holds the middle (of 98 in 100 runs) and the rounds that would decide.

    `low` and `high` are None with too few rounds for an interval; `more_rounds` where it is decided, or where
    even a thousand would not.
    """

    verdict: Goal
    low: float | None = None
    high: float | None = None
    more_rounds: int | None = None

    def told(self, rounds: str) -> str:
        """The verdict in words; `rounds` names what would decide."""
        if self.verdict is not Goal.NOT_DECIDED:
            return "reached" if self.verdict is Goal.REACHED else "NOT reached"
        if self.more_rounds is None:
            return (
                f"NOT DECIDED: too near the goal for {_MOST_ROUNDS:,} {rounds} on a machine as busy as this"
            )
        needed = "needed for any verdict" if self.low is None else "likely to decide"
        return f"NOT DECIDED: {self.more_rounds:,} more {rounds} are {needed}"


def at_least(ratios: Sequence[float], goal: float) -> Judged:
    """Judge ratios, in the order of their rounds, that are to be no lower than a goal."""
    judged = _judged([-math.log(ratio) for ratio in ratios], -math.log(goal))
    if judged.low is None or judged.high is None:
        return judged
    return Judged(judged.verdict, math.exp(-judged.high), math.exp(-judged.low), judged.more_rounds)


def at_most(differences: Sequence[float], goal: float) -> Judged:
    """Judge differences, in the order of their rounds, that are to be no larger than a goal."""
    return _judged(differences, goal)


def _judged(values: Sequence[float], most: float) -> Judged:
    count = len(values)
    if count < LEAST_PAIRS:
        return Judged(Goal.NOT_DECIDED, more_rounds=LEAST_PAIRS - count)
    middle = middle_of(values)
    outside = (1 - LEVEL) / 2
    low, at, high = (middle.quantile(share) for share in (outside, 0.5, 1 - outside))
    if high <= most:
        return Judged(Goal.REACHED, low, high)
    if low > most:
        return Judged(Goal.MISSED, low, high)
    # An interval narrows with the root of the rounds: it has to end between the middle and the goal.
    needed = count * ((high - low) / 2 / max(abs(at - most), 1e-12)) ** 2
    more = max(1, math.ceil(needed) - count) if needed <= _MOST_ROUNDS else None
    return Judged(Goal.NOT_DECIDED, low, high, more)
