"""History: means are right, gaps stay gaps, memory is bounded."""

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.telemetry import TelemetryPage
from engine_host.telemetry.history import MOST_SERIES, MOST_STEPS, SHOWN, History
from engine_host.telemetry.sample_store import SampleStore

START = 1_795_000_000.0
NAME = "ram.used"
MEAN = "cpu.share"
RATE = "engine.e1.prefill_rate"
VALUES = st.floats(-1e12, 1e12)


def page(history: History, *asked: Any) -> TelemetryPage:
    return asyncio.run(history.page(*asked))


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
    shown = page(history, (NAME,), None if since is None else START + since, step)
    (series,) = shown.series
    assert len(series.at) == len(series.values)
    assert shown.step >= (step or 1.0) - 1e-6
    assert all(
        later - earlier == shown.step for earlier, later in zip(series.at, series.at[1:], strict=False)
    )
    low, high = min(value for _, value in samples), max(value for _, value in samples)
    slack = max(abs(low), abs(high)) * 1e-9
    assert all(value is None or low - slack <= value <= high + slack for value in series.values)
    assert len(series.values) <= MOST_STEPS + 1


def test_a_gap_is_none_and_never_zero() -> None:
    history = History()
    history.add(START, {NAME: 5.0})
    history.add(START + 3, {NAME: 7.0})
    (series,) = page(history, (NAME,), START).series
    assert series.values == (5.0, None, None, 7.0)
    assert series.at == (START, START + 1, START + 2, START + 3)
    assert (series.unit, series.title) == ("bytes", "RAM used")


def test_a_series_that_stopped_ends_there() -> None:
    history = History()
    history.add(START, {NAME: 5.0, "engine.e1.decode_rate": 40.0})
    history.add(START + 2, {NAME: 5.0})
    engine = page(history, ("engine.e1.decode_rate",), START).series[0]
    assert engine.values == (40.0,)
    assert page(history, (NAME,), START).series[0].values == (5.0, None, 5.0)


def test_two_samples_in_a_second_are_one_mean_or_the_peak() -> None:
    history = History()
    history.add(START + 0.1, {MEAN: 0.4, RATE: 1443.0})
    history.add(START + 0.6, {MEAN: 0.6, RATE: 0.0})
    mean, rate = page(history, (MEAN, RATE), START).series
    assert (mean.values, mean.peaks) == ((0.5,), False)
    assert (rate.values, rate.peaks) == ((1443.0,), True)


@pytest.mark.parametrize("step", [1.0, 3.0, 10.0, 40.0, 600.0])
def test_a_prompt_of_one_second_is_as_high_in_every_graph(step: float) -> None:
    history = History()
    for second in range(3600):
        history.add(START + second, {RATE: 1443.0 if second == 3000 else 0.0, MEAN: float(second == 3000)})
    rate, mean = page(history, (RATE, MEAN), START + 2700, step).series
    assert max(value or 0.0 for value in rate.values) == 1443.0
    assert max(value or 0.0 for value in mean.values) == pytest.approx(1 / step, rel=0.5)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("step", [1e9, 2.0**31, 1e-300])
def test_a_step_of_any_width_looks_at_what_is_kept_alone(step: float) -> None:
    history = History()
    for second in range(100):
        history.add(START + second, {RATE: float(second), MEAN: 0.5})
    rate, mean = page(history, (RATE, MEAN), START, step).series
    assert max(value or 0.0 for value in rate.values) == 99.0
    assert max(value or 0.0 for value in mean.values) == 0.5


def test_older_than_the_fine_ring_comes_from_the_coarse_one() -> None:
    history = History()
    for second in range(4000):
        history.add(START + second, {NAME: float(second)})
    fine = page(history, (NAME,))
    assert (fine.step, len(fine.series[0].values)) == (1.0, SHOWN)
    old = page(history, (NAME,), START)
    assert old.step == 10.0
    assert old.series[0].values[0] == 9.0
    assert page(history, (NAME,), START + 3900, 60.0).step == 60.0


@pytest.mark.parametrize("back", [30.0, 1000.0, 3600.0, 1e8])
def test_a_clock_that_is_set_back_goes_on_with_what_is_measured_now(back: float) -> None:
    history = History()
    for second in range(2000):
        history.add(START + second, {NAME: 5.0, RATE: 40.0})
    now = START + 2000 - back
    for second in range(60):
        history.add(now + second, {NAME: 7.0})
    shown = page(history, (NAME, RATE))
    going, *stopped = shown.series
    assert shown.step == 1.0
    assert going.at[-1] == now + 59
    assert going.values[-60:] == (7.0,) * 60
    assert set(going.values[:-60]) <= {5.0, None}
    for one in stopped:
        assert one.at[-1] <= now, "what was measured later than now was not measured yet"
    coarse = page(history, (NAME,), now - 100, 10.0).series[0]
    assert coarse.at[-1] == math.floor((now + 59) / 10.0) * 10.0
    assert coarse.values[-1] == 7.0


def test_a_clock_that_is_set_back_keeps_what_was_measured_before() -> None:
    history = History()
    for second in range(100):
        history.add(START + second, {NAME: float(second)})
    history.add(START + 39.5, {NAME: 1000.0})
    (series,) = page(history, (NAME,), START).series
    assert series.values == (*map(float, range(39)), 1000.0)


@pytest.mark.parametrize("ahead", [5.0, 3600.0, 1e9])
@pytest.mark.parametrize("step", [1.0, 40.0])
def test_a_time_that_is_still_to_come_counts_as_now(ahead: float, step: float) -> None:
    history = History()
    for second in range(100):
        history.add(START + second, {NAME: 5.0})
    now = START + 50
    history.add(now, {NAME: 7.0})
    (coming,), (newest,) = (page(history, (NAME,), since, step).series for since in (now + ahead, now))
    assert coming == newest
    assert coming.values, "it answers with what is measured now, not with nothing until then"


def test_a_clock_that_is_corrected_by_a_moment_loses_nothing() -> None:
    history = History()
    for second in (*range(10), *range(7, 12)):
        history.add(START + second, {NAME: 5.0})
    (series,) = page(history, (NAME,), START).series
    assert series.values == (5.0,) * 12


def test_unknown_names_are_left_out_or_refused() -> None:
    history = History()
    assert page(history).series == ()
    history.add(START, {NAME: 1.0, "cpu.share": math.nan})
    assert [series.name for series in page(history).series] == [NAME]
    assert page(history, ("nonsense",)).series == ()
    with pytest.raises(KeyError):
        history.add(START, {"nonsense": 1.0})


def test_memory_is_bounded_and_loses_nothing(tmp_path: Path) -> None:
    store = SampleStore(tmp_path / "t.sqlite")
    history = History(store)
    for number in range(MOST_SERIES + 20):
        history.add(START + number, {f"engine.e{number}.memory": 1.0})
    assert len(history._series) == MOST_SERIES
    for _ in ("before it is written", "and after"):
        shown = {series.name: series.values for series in page(history, (), START).series}
        assert len(shown) == MOST_SERIES, "those that were measured last"
        assert "engine.e0.memory" not in shown
        assert page(history, ("engine.e0.memory",), START).series[0].values == (1.0,)
        asyncio.run(history.save())
    history.close()


def test_what_was_measured_is_there_after_a_restart_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    first = History(SampleStore(path))
    for second in range(100):
        first.add(START + second, {NAME: float(second)})
    asyncio.run(first.save())
    before = page(first, (NAME,), START)
    first.close()
    second_run = History(SampleStore(path), clock=lambda: START + 99)
    assert page(second_run, (NAME,), START) == before, "and before anything is measured again"
    second_run.add(START + 110, {NAME: 7.0})
    asyncio.run(second_run.save())
    for _ in range(2):
        (series,) = page(second_run, (NAME,), START).series
        assert series.values == (*map(float, range(100)), *(None,) * 10, 7.0)
        asyncio.run(second_run.save())
    second_run.close()


def test_an_hour_a_day_and_a_month(tmp_path: Path) -> None:
    history = History(SampleStore(tmp_path / "t.sqlite"))
    # A month at a sample in ten minutes, the last two hours at one a second.
    month = 31 * 86400
    for second in (*range(0, month, 600), *range(month - 7200, month)):
        history.add(START + second, {MEAN: 0.25, RATE: 1443.0 if second % 86400 == 0 else 1.0})
        if second % 3600 == 0:
            asyncio.run(history.save())
    now = START + month
    for back, step in ((3500, 1.0), (86000, 10.0), (month - 3600, 300.0)):
        shown = page(history, (RATE, MEAN), now - back)
        assert shown.step == step, "no page has more steps than ten thousand"
        assert {value for value in shown.series[1].values if value is not None} == {0.25}
        assert (shown.series[0].at[-1] - shown.series[0].at[0]) >= back - 2 * max(600, step)
    assert max(value or 0 for value in shown.series[0].values) == 1443.0
    assert not page(history, (NAME,), now - 60).series
    history.close()


def test_a_clock_that_is_set_back_is_forgotten_on_the_disk_too(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    history = History(SampleStore(path))
    for second in range(1000):
        history.add(START + second, {NAME: 5.0})
    asyncio.run(history.save())
    history.add(START + 500, {NAME: 7.0})
    history.close()
    # The host ended before it could save: the disk is cut by whoever reads first.
    history = History(SampleStore(path))
    history.add(START + 999, {RATE: 1.0})
    history.add(START + 500, {RATE: 1.0})
    (series,) = page(history, (NAME,), START).series
    assert series.values[-1] == 5.0
    for second in range(600, 700):
        history.add(START + second, {RATE: 1.0})
    (series,) = page(history, (NAME,), START).series
    assert series.at[-1] == START + 500
    history.close()


def test_a_disk_that_refuses_loses_nothing_for_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SampleStore(tmp_path / "t.sqlite")
    history = History(store)
    history.add(START, {NAME: 5.0})
    monkeypatch.setattr(store, "_write", refuse)
    with pytest.raises(HostError) as refused:
        asyncio.run(history.save())
    assert refused.value.reason is Reason.NOT_WRITABLE
    assert page(history, (NAME,), START).series[0].values == (5.0,)
    monkeypatch.undo()
    history.add(START + 1, {NAME: 6.0})
    asyncio.run(history.save())
    history.close()
    again = History(SampleStore(store.path), clock=lambda: START + 1)
    assert page(again, (NAME,), START).series[0].values == (5.0, 6.0)
    again.close()


def test_what_left_the_memory_outlives_a_disk_that_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SampleStore(tmp_path / "t.sqlite")
    history = History(store)
    for number in range(MOST_SERIES + 10):
        history.add(START + number, {f"engine.e{number}.memory": 1.0})
    monkeypatch.setattr(store, "_write", refuse)
    with pytest.raises(HostError):
        asyncio.run(history.save())
    monkeypatch.undo()
    asyncio.run(history.save())
    history.close()
    again = History(SampleStore(store.path), clock=lambda: START + MOST_SERIES + 100)
    names = tuple(f"engine.e{number}.memory" for number in range(MOST_SERIES + 10))
    assert len(page(again, names, START).series) == MOST_SERIES + 10
    again.close()


def refuse(*_asked: object) -> None:
    raise HostError(Reason.NOT_WRITABLE, "FAKE: the disk is gone")
