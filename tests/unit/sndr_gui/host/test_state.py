"""The window's picture of the host stays small, however long it is open."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from types import SimpleNamespace

import pytest

from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.events import EngineStateEvent, JobDoneEvent, MissedEvent, TelemetryEvent
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.patches import EnginePatches
from engine_host.protocol.telemetry import Sample
from sndr_gui.host.notices import Notices
from sndr_gui.host.session import Session
from sndr_gui.host.state import MOST_SERIES, RECENT_ENGINES, RECENT_JOBS, HostState
from sndr_gui.host.tasks import Tasks
from tests.unit.sndr_gui.host.test_choice import snapshot
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


def test_what_ended_before_the_answer_came_does_not_run_again() -> None:
    state = HostState()
    running = samples.engine(EngineState.READY, id="e", created_at=0.0)
    state.set_engine(running)
    stopping = samples.job(JobKind.ENGINE_STOP, JobState.RUNNING, id="j")

    async def overtaken(answer: Engine | Job) -> Engine | Job:
        ended = running.model_copy(update={"state": EngineState.UNLOADED})
        state.apply(EngineStateEvent(seq=state.seq + 1, engine=ended))
        done = stopping.model_copy(update={"state": JobState.DONE})
        state.apply(JobDoneEvent(seq=state.seq + 1, job=done))
        return answer

    assert asyncio.run(state.take(overtaken(running))) == running
    assert state.live == ()
    assert asyncio.run(state.take(overtaken(stopping))) == stopping
    assert state.jobs["j"].state is JobState.DONE


def test_an_answer_that_came_before_its_event_is_shown_at_once() -> None:
    state = HostState()
    state.apply(EngineStateEvent(seq=7, engine=samples.engine(EngineState.STARTING, id="e", created_at=0.0)))

    async def answered() -> Engine:
        return samples.engine(EngineState.READY, id="e", created_at=0.0)

    asyncio.run(state.take(answered()))
    assert state.engines["e"].state is EngineState.READY


def test_what_changed_while_all_was_read_again_is_not_undone() -> None:
    state = HostState()
    running = samples.engine(EngineState.READY, id="e", created_at=0.0)
    state.load(replace(snapshot(running), seq=1))
    state.apply(MissedEvent(first=2, last=4))
    state.apply(EngineStateEvent(seq=6, engine=running.model_copy(update={"state": EngineState.UNLOADED})))
    # It was read before the engine ended, and comes after that was told.
    state.load(replace(snapshot(running), seq=5))
    assert state.live == ()
    assert state.seq == 6


def test_reads_of_one_name_follow_each_other_and_the_newest_stays() -> None:
    async def go() -> list[str]:
        shown: list[str] = []
        first = asyncio.Event()

        def read(text: str, wait: bool = False) -> Callable[[object], Coroutine[None, None, None]]:
            async def work(_client: object) -> None:
                if wait:
                    await first.wait()
                shown.append(text)

            return work

        tasks = Tasks(lambda error: pytest.fail(str(error)))
        connection = SimpleNamespace(client=None)
        session = Session(HostState(), connection, tasks, Notices())  # type: ignore[arg-type]
        session.read("part", read("before", wait=True))
        session.read("part", read("between"))
        session.read("part", read("newest"))
        await asyncio.sleep(0)
        first.set()
        while tasks.names:  # noqa: ASYNC110 - what is waited for has no event to offer
            await asyncio.sleep(0)
        return shown

    assert asyncio.run(go()) == ["before", "newest"]
