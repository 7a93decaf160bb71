"""The clock is set back and forward while all is at work: nothing hangs, no time is negative.

INJECTED: the time of day that the host reads; the machine's own clock is nobody's to set.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from engine_host.protocol.endpoint.requests import RequestQuery
from engine_host.protocol.engines import EngineState, StopEngine
from engine_host.protocol.jobs import JobState
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from tests.integration.faults.test_stopped import ask
from tests.integration.host.conftest import RunningHost, new_host, wait_for
from tests.integration.host_process import sndr

__all__ = ["new_host"]
DAY = 86_400.0


@pytest.fixture
def clock(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], object]:
    """Sets the clock of what is started from here on, by seconds."""
    offset = home / "offset"
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "clock"))
    monkeypatch.setenv("SNDR_TEST_CLOCK", str(offset))
    return lambda seconds: offset.write_text(str(seconds))


@pytest.mark.parametrize("jump", [-DAY, DAY], ids=["back", "forward"])
def test_starts_answers_and_stops_go_on(
    jump: float, clock: Callable[[float], object], new_host: Callable[..., RunningHost]
) -> None:
    host = new_host().connect()
    first = host.start()
    assert ask(host, first).status_code == 200
    # In the middle of a start.
    second = host.start(wait=False)
    clock(jump)
    second = host.until(second.id, EngineState.READY)
    assert second.verified is not None
    assert 0.0 <= second.verified.ready_after < 60.0
    assert ask(host, second).status_code == 200
    for entry in host.client.call(endpoint_ops.REQUESTS, RequestQuery(engine=second.id)).requests:
        assert entry.ttft is None or 0.0 <= entry.ttft < 60.0
    readings = wait_for(lambda: host.engine(second.id).readings, "readings")
    assert readings.decode_rate is None or readings.decode_rate >= 0.0
    host.client.call(ops.STOP, StopEngine(), id=second.id)
    host.until(second.id, EngineState.UNLOADED)
    jobs = host.client.call(ops.JOBS).jobs
    assert {job.state for job in jobs} == {JobState.DONE}
    assert len(jobs) == 3
    shown = sndr("status", "--all")
    assert shown.code == 0
    assert " -8" not in shown.out, "no negative time"
    assert host.end() == 0


def test_a_kept_engine_is_found_by_a_host_of_yesterday(
    clock: Callable[[float], object], new_host: Callable[..., RunningHost]
) -> None:
    host = new_host().connect()
    engine = host.start(keep=True)
    host.end()
    clock(-DAY)
    again = new_host().connect()
    found = again.until(engine.id, EngineState.READY)
    assert (found.pid, found.adopted) == (engine.pid, True)
    again.client.call(ops.STOP, StopEngine(), id=engine.id)
    again.until(engine.id, EngineState.UNLOADED)
