"""The window's picture of the host stays small, however long it is open."""

import time

from engine_host.protocol.engines import EngineState
from engine_host.protocol.events import TelemetryEvent
from engine_host.protocol.jobs import JobKind, JobState
from engine_host.protocol.patches import EnginePatches
from engine_host.protocol.telemetry import Sample
from sndr_gui.host.state import MOST_SERIES, RECENT_ENGINES, RECENT_JOBS, HostState
from tests.views.samples import host as samples


def test_engines_jobs_and_series_that_are_over_go() -> None:
    state = HostState()
    live = samples.engine(EngineState.READY, id="live", created_at=0.0)
    state.set_engine(live)
    at_work = samples.job(JobKind.ENGINE_START, JobState.RUNNING, id="at-work")
    state.set_job(at_work)
    for number in range(1_000):
        state.set_engine(samples.engine(EngineState.FAILED, id=f"e{number}", created_at=1.0 + number))
        state.set_applies(EnginePatches(seq=0, engine=f"e{number}", planned=None))
        state.set_job(samples.job(JobKind.ENGINE_START, JobState.DONE, id=f"j{number}"))
        sample = Sample(at=time.time(), values={f"engine.e{number}.decode_rate": 1.0, "ram.used": 2.0})
        state.apply(TelemetryEvent(sample=sample))
    assert list(state.engines) == ["live", *(f"e{number}" for number in range(1_000 - RECENT_ENGINES, 1_000))]
    assert len(state.jobs) == RECENT_JOBS + 1
    assert state.live_job(JobKind.ENGINE_START) == at_work
    assert len(state.applies) == RECENT_ENGINES
    assert len(state._values) == MOST_SERIES
    assert state.measured("ram.used") == 2.0
    assert state.measured("engine.e999.decode_rate") == 1.0
    assert state.running == live
