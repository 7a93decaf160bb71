"""The decode rate is of the time that was worked, however seldom an idle engine is read."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from engine_host.engines.adapter import Adapter
from engine_host.engines.process import running as module
from engine_host.engines.process.running import RunningEngine
from engine_host.engines.process.spawn import EngineProcess
from engine_host.engines.process.worked_time import WorkedTime
from engine_host.protocol.engines import Engine, Readings
from tests.unit.engines.process.test_reading import Waiting


def told(generated: int | None, busy: int | None = 0) -> Readings:
    return Readings(at=0.0, generated_tokens_total=generated, slots_busy=busy)


def test_the_pause_before_a_request_dilutes_nothing() -> None:
    worked = WorkedTime()
    assert worked.rate(told(100), 0.0) is None, "the first reading is compared with nothing"
    worked.set(True, 29.8)
    worked.set(False, 30.0)
    assert worked.rate(told(142), 30.3) == pytest.approx(42 / 0.2)
    assert worked.rate(told(142), 30.8) == 0.0, "nothing was written since"


def test_a_request_that_goes_on_is_counted_up_to_the_reading_and_from_it() -> None:
    worked = WorkedTime()
    worked.rate(told(0), 0.0)
    worked.set(True, 20.0)
    assert worked.rate(told(50, busy=1), 20.5) == pytest.approx(100.0)
    worked.set(False, 20.75)
    assert worked.rate(told(75), 21.0) == pytest.approx(100.0)


def test_requests_one_after_the_other_leave_the_pauses_out() -> None:
    worked = WorkedTime()
    worked.rate(told(0), 0.0)
    for begin in (1.0, 2.0, 3.0):
        worked.set(True, begin)
        worked.set(True, begin + 0.05)  # A second one beside it.
        worked.set(False, begin + 0.1)
    assert worked.rate(told(60), 4.0) == pytest.approx(200.0)


def test_work_of_others_is_measured_only_where_it_filled_the_time() -> None:
    worked = WorkedTime()
    worked.rate(told(0), 0.0)
    assert worked.rate(told(40, busy=1), 30.0, others=True) is None, "it began at some time in between"
    assert worked.rate(told(90, busy=1), 30.5, others=True) == pytest.approx(100.0)
    assert worked.rate(told(100), 31.0) is None, "it ended at some time in between"
    assert worked.rate(told(130), 61.0) is None, "somebody came and went unseen"


def test_a_request_missed_at_its_end_is_not_counted_into_the_next_one() -> None:
    """llama-server adds a request to its counter at its end: one reading may see it in neither place."""
    worked = WorkedTime()
    worked.set(True, 0.0)
    worked.rate(told(100, busy=1), 1.0)
    worked.set(False, 1.5)
    assert worked.rate(told(60), 1.5) is None
    worked.set(True, 1.8)
    assert worked.rate(told(180, busy=1), 2.0) == pytest.approx(80.0)


def test_tokens_that_were_given_up_hold_no_later_rate_up() -> None:
    worked = WorkedTime()
    worked.set(True, 0.0)
    worked.rate(told(100, busy=1), 1.0)
    assert worked.rate(told(10, busy=1), 1.5) is None
    assert worked.rate(told(20, busy=1), 2.0) is None
    assert worked.rate(told(70, busy=1), 2.5) == pytest.approx(100.0)


@pytest.mark.parametrize("generated", [None, 5])
def test_no_counter_and_no_time_give_no_rate(generated: int | None) -> None:
    worked = WorkedTime()
    worked.rate(told(generated), 0.0)
    assert worked.rate(told(9), 0.0) is None
    assert WorkedTime().rate(told(None), 1.0) is None


class _Counting:
    """A FAKE adapter whose engine generated as many tokens as it is told."""

    generated = 100

    async def read(self, _client: httpx.AsyncClient) -> Readings:
        return Readings(at=time.time(), generated_tokens_total=self.generated, slots_busy=0)


def test_an_answer_after_a_pause_is_told_at_its_own_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_READ_BUSY", 0.3)
    adapter, rates = _Counting(), list[float | None]()

    async def asked() -> None:
        process: Any = SimpleNamespace(running=True, memory=lambda: None, working=Waiting)
        engine: Any = SimpleNamespace(plan=None, stages=(), buffers={}, attention=None)
        async with httpx.AsyncClient() as client:
            running = RunningEngine(
                "engine-x",
                cast("EngineProcess", process),
                cast("Adapter", adapter),
                client,
                cast("Engine", engine),
            )
            running.changed = lambda **update: rates.append(cast("Any", update["readings"]).decode_rate)
            running.poll()
            await asyncio.sleep(2.0)
            before = len(rates)
            assert before == 3, "an idle engine is left alone"
            running.set_busy(True)
            began = time.monotonic()
            await asyncio.sleep(0.2)
            adapter.generated += 42
            running.set_busy(False)
            took = time.monotonic() - began
            await asyncio.sleep(1.2)
            for task in running._tasks:
                task.cancel()
        assert rates[-1] == 0.0, "nor is its speed told for the silence after it"
        highest = max(rate for rate in rates[before:] if rate is not None)
        assert highest >= 42 / took * 0.99, "no pause is in it"

    asyncio.run(asked())
