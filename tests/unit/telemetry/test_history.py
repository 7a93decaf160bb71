"""History: means are right, gaps stay gaps, memory is bounded."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.telemetry.history import COARSE_STEP, FINE_SPAN, MOST_SERIES, History, Ring

START = 1_795_000_000.0
NAME = "ram.used"
MEAN = "cpu.share"
RATE = "engine.e1.prefill_rate"
VALUES = st.floats(-1e12, 1e12)


@given(st.lists(st.tuples(st.integers(0, 300), VALUES), max_size=60), st.integers(1, 40), st.booleans())
def test_a_ring_keeps_the_mean_or_peak_of_every_step_it_still_holds(
    samples: list[tuple[int, float]], size: int, peaks: bool
) -> None:
    ring = Ring(1.0, size, peaks=peaks)
    kept: dict[int, list[float]] = {}
    newest = -1
    for at, value in samples:
        ring.add(at + 0.5, value)
        newest = max(newest, at)
        if at > newest - size:
            kept.setdefault(at, []).append(value)
        kept = {slot: values for slot, values in kept.items() if slot > newest - size}
    for slot in range(-5, 310):
        found = ring.value(slot)
        if slot not in kept:
            assert found is None
        else:
            assert found is not None
            expected = max(kept[slot]) if peaks else math.fsum(kept[slot]) / len(kept[slot])
            assert found[0] == pytest.approx(expected, rel=1e-6, abs=1e-3)
            assert found[1] == len(kept[slot])


@given(
    st.lists(st.tuples(st.floats(0, 2000), VALUES), min_size=1, max_size=40),
    st.one_of(st.none(), st.floats(-3000, 3000)),
    st.one_of(st.none(), st.floats(0.1, 4000)),
)
def test_a_page_is_even_and_within_what_was_measured(
    samples: list[tuple[float, float]], since: float | None, step: float | None
) -> None:
    history = History()
    for at, value in sorted(samples):
        history.add(START + at, {NAME: value})
    page = history.page((NAME,), None if since is None else START + since, step)
    (series,) = page.series
    assert len(series.at) == len(series.values)
    assert page.step >= (step or 1.0) - 1e-6
    assert all(later - earlier == page.step for earlier, later in zip(series.at, series.at[1:], strict=False))
    low, high = min(value for _, value in samples), max(value for _, value in samples)
    slack = max(abs(low), abs(high)) * 1e-9
    assert all(value is None or low - slack <= value <= high + slack for value in series.values)
    assert len(series.values) <= 8641


def test_a_gap_is_none_and_never_zero() -> None:
    history = History()
    history.add(START, {NAME: 5.0})
    history.add(START + 3, {NAME: 7.0})
    (series,) = history.page((NAME,), START).series
    assert series.values == (5.0, None, None, 7.0)
    assert series.at == (START, START + 1, START + 2, START + 3)
    assert (series.unit, series.title) == ("bytes", "RAM used")


def test_a_series_that_stopped_ends_in_gaps() -> None:
    history = History()
    history.add(START, {NAME: 5.0, "engine.e1.decode_rate": 40.0})
    history.add(START + 2, {NAME: 5.0})
    engine = history.page(("engine.e1.decode_rate",), START).series[0]
    assert engine.values == (40.0, None, None)


def test_two_samples_in_a_second_are_one_mean_or_the_peak() -> None:
    history = History()
    history.add(START + 0.1, {MEAN: 0.4, RATE: 1443.0})
    history.add(START + 0.6, {MEAN: 0.6, RATE: 0.0})
    mean, rate = history.page((MEAN, RATE), START).series
    assert (mean.values, mean.peaks) == ((0.5,), False)
    assert (rate.values, rate.peaks) == ((1443.0,), True)


@pytest.mark.parametrize("step", [1.0, 3.0, 10.0, 40.0, 600.0])
def test_a_prompt_of_one_second_is_as_high_in_every_graph(step: float) -> None:
    history = History()
    for second in range(3600):
        history.add(START + second, {RATE: 1443.0 if second == 3000 else 0.0, MEAN: float(second == 3000)})
    rate, mean = history.page((RATE, MEAN), START + 2700, step).series
    assert max(value or 0.0 for value in rate.values) == 1443.0
    assert max(value or 0.0 for value in mean.values) == pytest.approx(1 / step, rel=0.5)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("step", [1e9, 2.0**31, 1e-300])
def test_a_step_of_any_width_looks_at_what_is_kept_alone(step: float) -> None:
    history = History()
    for second in range(100):
        history.add(START + second, {RATE: float(second), MEAN: 0.5})
    rate, mean = history.page((RATE, MEAN), START, step).series
    assert max(value or 0.0 for value in rate.values) == 99.0
    assert max(value or 0.0 for value in mean.values) == 0.5


def test_older_than_the_fine_ring_comes_from_the_coarse_one() -> None:
    history = History()
    for second in range(2000):
        history.add(START + second, {NAME: float(second)})
    fine = history.page((NAME,))
    assert (fine.step, len(fine.series[0].values)) == (1.0, FINE_SPAN)
    old = history.page((NAME,), START)
    assert old.step == COARSE_STEP
    assert old.series[0].values[0] == 9.0
    assert history.page((NAME,), START + 1900, 60.0).step == 60.0


@pytest.mark.parametrize("back", [30.0, 1000.0, 3600.0, 1e8])
def test_a_clock_that_is_set_back_goes_on_with_what_is_measured_now(back: float) -> None:
    history = History()
    for second in range(2000):
        history.add(START + second, {NAME: 5.0, RATE: 40.0})
    now = START + 2000 - back
    for second in range(60):
        history.add(now + second, {NAME: 7.0})
    page = history.page((NAME, RATE))
    going, stopped = page.series
    assert page.step == 1.0
    assert going.at[-1] == stopped.at[-1] == now + 59
    assert going.values[-60:] == (7.0,) * 60
    assert set(going.values[:-60]) <= {5.0, None}
    assert stopped.values[-59:] == (None,) * 59, "what was measured later than now was not measured yet"
    coarse = history.page((NAME,), now - 100, COARSE_STEP).series[0]
    assert coarse.at[-1] == math.floor((now + 59) / COARSE_STEP) * COARSE_STEP
    assert coarse.values[-1] == 7.0


def test_a_clock_that_is_set_back_keeps_what_was_measured_before() -> None:
    history = History()
    for second in range(100):
        history.add(START + second, {NAME: float(second)})
    history.add(START + 39.5, {NAME: 1000.0})
    (series,) = history.page((NAME,), START).series
    assert series.values == (*map(float, range(39)), 1000.0)


@pytest.mark.parametrize("ahead", [5.0, 3600.0, 1e9])
@pytest.mark.parametrize("step", [1.0, 40.0])
def test_a_time_that_is_still_to_come_counts_as_now(ahead: float, step: float) -> None:
    history = History()
    for second in range(100):
        history.add(START + second, {NAME: 5.0})
    now = START + 50
    history.add(now, {NAME: 7.0})
    (coming,), (newest,) = (history.page((NAME,), since, step).series for since in (now + ahead, now))
    assert coming == newest
    assert coming.values, "it answers with what is measured now, not with nothing until then"


def test_a_clock_that_is_corrected_by_a_moment_loses_nothing() -> None:
    history = History()
    for second in (*range(10), *range(7, 12)):
        history.add(START + second, {NAME: 5.0})
    (series,) = history.page((NAME,), START).series
    assert series.values == (5.0,) * 12


def test_unknown_names_are_left_out_or_refused() -> None:
    history = History()
    assert history.page().series == ()
    history.add(START, {NAME: 1.0, "cpu.share": math.nan})
    assert [series.name for series in history.page().series] == [NAME]
    assert history.page(("nonsense",)).series == ()
    with pytest.raises(KeyError):
        history.add(START, {"nonsense": 1.0})


def test_memory_is_bounded() -> None:
    history = History()
    for number in range(MOST_SERIES + 20):
        history.add(START + number, {f"engine.e{number}.memory": 1.0})
    names = history.names()
    assert len(names) == MOST_SERIES
    assert "engine.e0.memory" not in names
    assert f"engine.e{MOST_SERIES + 19}.memory" in names
