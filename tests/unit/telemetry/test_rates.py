"""Rates from counters: none is better than a wrong one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from engine_host.protocol.engines import Readings
from engine_host.telemetry.rates import with_rates

COUNTERS = st.one_of(st.none(), st.integers(0, 10**12))
TIMES = st.floats(0, 10**10, allow_nan=False)


def readings(at: float, prompt: int | None, generated: int | None) -> Readings:
    return Readings(at=at, prompt_tokens_total=prompt, generated_tokens_total=generated)


def test_two_readings_give_rates() -> None:
    now = with_rates(readings(10, 100, 40), readings(12, 300, 50))
    assert (now.prefill_rate, now.decode_rate) == (100.0, 5.0)


def test_nothing_done_is_zero_and_not_measured_is_none() -> None:
    idle = with_rates(readings(10, 100, 40), readings(12, 100, 40))
    assert (idle.prefill_rate, idle.decode_rate) == (0.0, 0.0)
    first = with_rates(None, readings(12, 100, 40))
    assert (first.prefill_rate, first.decode_rate) == (None, None)


def test_a_counter_that_went_back_gives_no_rate() -> None:
    now = with_rates(readings(10, 100, 40), readings(12, 0, 50))
    assert (now.prefill_rate, now.decode_rate) == (None, 5.0)


@settings(deadline=None)
@given(before=st.tuples(TIMES, COUNTERS, COUNTERS), now=st.tuples(TIMES, COUNTERS, COUNTERS))
def test_a_rate_is_never_negative_and_only_between_two_times(
    before: tuple[float, int | None, int | None], now: tuple[float, int | None, int | None]
) -> None:
    found = with_rates(readings(*before), readings(*now))
    for rate, first, second in (
        (found.prefill_rate, before[1], now[1]),
        (found.decode_rate, before[2], now[2]),
    ):
        if rate is None:
            continue
        assert rate >= 0
        assert first is not None
        assert second is not None
        assert now[0] > before[0]
