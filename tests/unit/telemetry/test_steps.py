"""Steps of one series: means and peaks are right, memory is bounded, nothing is saved twice or lost."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.telemetry.steps import Resolution, Steps

OF_TEN = Resolution(1, 3600, 10)
VALUES = st.floats(-1e12, 1e12)


@given(st.lists(st.tuples(st.integers(0, 300), VALUES), max_size=60), st.booleans())
def test_the_mean_or_peak_of_every_step_is_kept(samples: list[tuple[int, float]], peaks: bool) -> None:
    steps = Steps(OF_TEN, peaks=peaks)
    kept: dict[int, list[float]] = {}
    for at, value in sorted(samples, key=lambda sample: sample[0]):
        steps.add(at + 0.5, value)
        kept.setdefault(at, []).append(value)
    chunks = steps.chunks()
    assert len(chunks) <= 12
    for number, values in chunks.items():
        for place, found in enumerate(values):
            here = kept.get(number * 10 + place)
            if here is None:
                assert math.isnan(found)
            else:
                expected = max(here) if peaks else math.fsum(here) / len(here)
                assert found == pytest.approx(expected, rel=1e-6, abs=1e-3)


def test_what_is_saved_is_taken_once_and_let_go() -> None:
    steps = Steps(OF_TEN, peaks=False)
    for second in range(25):
        steps.add(second, float(second))
    assert list(steps.take_unsaved()) == [0, 1, 2]
    assert steps.take_unsaved() == {}
    steps.drop_saved()
    assert list(steps.chunks()) == [2], "the newest is still added to"
    steps.add(26, 1.0)
    assert list(steps.take_unsaved()) == [2]
    steps.not_saved(2)
    assert list(steps.take_unsaved()) == [2]
    steps.add(15, 1.0)
    assert list(steps.chunks()) == [2], "what was let go does not begin anew"


def test_what_is_cut_is_a_gap() -> None:
    steps = Steps(OF_TEN, peaks=True)
    for second in range(25):
        steps.add(second, 1.0)
    steps.cut(12.9)
    assert list(steps.chunks()) == [0, 1]
    assert [math.isnan(value) for value in steps.chunks()[1]] == [False] * 3 + [True] * 7
    steps.add(13, 4.0)
    assert steps.chunks()[1][3] == 4.0
