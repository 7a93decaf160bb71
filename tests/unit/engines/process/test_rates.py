"""The rate of prompts from counters: none is better than a wrong one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.engines.process.rates import prefill_rate
from engine_host.protocol.engines import Readings

COUNTERS = st.one_of(st.none(), st.integers(0, 10**12))
TIMES = st.floats(0, 10**10, allow_nan=False)


def readings(at: float, prompt: int | None, generated: int | None) -> Readings:
    return Readings(at=at, prompt_tokens_total=prompt, generated_tokens_total=generated)


def test_prefill_is_the_engines_own_timing_and_not_the_interval() -> None:
    """4,910 tokens counted at once after 3.4 s are no 9,820 tokens a second."""
    before = readings(10, 100, 40)
    told = readings(10.5, 5010, 40).model_copy(update={"prefill_rate": 1443.0})
    assert prefill_rate(before, told) == 1443.0
    assert prefill_rate(before, readings(10.5, 5010, 40)) is None, "counted, and not timed"
    timed = {"timed_prompt_tokens": 100.0, "timed_prompt_seconds": 1.0}
    later = {"timed_prompt_tokens": 5010.0, "timed_prompt_seconds": 4.4}
    now = readings(10.5, 5010, 40).model_copy(update=later)
    assert prefill_rate(before.model_copy(update=timed), now) == pytest.approx(4910 / 3.4)


def test_a_prompt_under_way_is_not_zero() -> None:
    idle = readings(10, 100, 40)
    reads = readings(10.5, 100, 40).model_copy(update={"slots_busy": 1, "slots_reading": 1})
    writes = readings(11, 100, 44).model_copy(update={"slots_busy": 1, "slots_reading": 0})
    busy = readings(11, 100, 44).model_copy(update={"slots_busy": 1})
    assert prefill_rate(idle, reads) is None
    assert prefill_rate(reads, writes) is None, "it was given up, or is not counted yet"
    assert prefill_rate(writes, writes.model_copy(update={"at": 12})) == 0.0
    assert prefill_rate(idle, busy) is None, "vLLM does not say who reads a prompt"


def test_nothing_done_is_zero_and_not_measured_is_none() -> None:
    assert prefill_rate(readings(10, 100, 40), readings(12, 100, 40)) == 0.0
    assert prefill_rate(None, readings(12, 100, 40).model_copy(update={"prefill_rate": 7.0})) is None


def test_a_counter_that_went_back_gives_no_rate() -> None:
    assert prefill_rate(readings(10, 100, 40), readings(12, 0, 50)) is None


@given(before=st.tuples(TIMES, COUNTERS, COUNTERS), now=st.tuples(TIMES, COUNTERS, COUNTERS))
def test_nothing_timed_is_no_speed(
    before: tuple[float, int | None, int | None], now: tuple[float, int | None, int | None]
) -> None:
    assert prefill_rate(readings(*before), readings(*now)) in (None, 0.0)


def test_a_time_that_is_none_gives_no_rate() -> None:
    before = readings(10, 100, 40).model_copy(
        update={"timed_prompt_tokens": 0.0, "timed_prompt_seconds": 0.0}
    )
    told = {"timed_prompt_tokens": 5.0, "timed_prompt_seconds": 1e-320}
    assert prefill_rate(before, readings(11, 105, 40).model_copy(update=told)) is None
