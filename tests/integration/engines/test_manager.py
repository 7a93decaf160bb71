"""Engines from start to end, with a FAKE engine in a real process: whatever happens, nothing is left."""

import asyncio
import os
import signal
import time

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.process.running import RunningEngine
from engine_host.protocol.base import Severity
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import EngineReadingsEvent
from engine_host.protocol.jobs import JobState
from engine_host.protocol.launch.plans import Finding
from tests.integration.engines.managed import collected, crash, gone, with_rig
from tests.unit.asynchronous import run, turns, until
from tests.unit.engines.rig import OUTLIVING, Rig, rig

__all__ = ["collected"]
pytestmark = pytest.mark.usefixtures("home", "collected")


def test_from_start_to_ready_to_busy_to_stopped() -> None:
    async def work(built: Rig) -> None:
        engine = built.start("one")
        assert engine.state is EngineState.PREPARING
        assert engine.job is not None
        job = await built.job(engine)
        assert job.state is JobState.DONE
        engine = built.manager.get("one")
        assert engine.state is EngineState.READY
        assert engine.verified is not None
        assert engine.ready_at is not None
        names = [stage.name for stage in engine.stages]
        assert names[0] == "Start process"
        assert names[-1] == "Verify"
        assert all(stage.ended_at is not None for stage in engine.stages)
        await until(
            lambda: (
                built.manager.get(engine.id).buffers or "stage Serve" in built.log_buffer.tail(engine.id, 9)
            )
        )
        await until(lambda: built.manager.get(engine.id).readings)
        readings = built.manager.get(engine.id).readings
        assert readings is not None
        assert readings.memory
        told = [event for event in built.events if isinstance(event, EngineReadingsEvent)]
        assert told[-1].engine == engine.id
        assert told[-1].readings.memory
        assert built.manager.serving() == [built.manager.get(engine.id)]
        built.manager.activity(engine.id, 1)
        assert built.state(engine) is EngineState.BUSY
        built.manager.activity(engine.id, 0)
        assert built.state(engine) is EngineState.READY
        built.manager.activity("engine-unknown", 1)
        built.manager.stop("one")
        assert (await built.job(engine)).state is JobState.DONE
        assert built.drained == [engine.id]
        assert built.states(engine) == [
            EngineState.PREPARING,
            EngineState.STARTING,
            EngineState.READY,
            EngineState.BUSY,
            EngineState.READY,
            EngineState.DRAINING,
            EngineState.STOPPING,
            EngineState.UNLOADED,
        ]
        assert built.manager.get(engine.id).pid is None
        await until(lambda: gone(engine.pid))
        built.nothing_left()
        assert built.manager.stop(engine.id).state is EngineState.UNLOADED, "again is nothing"

    with_rig(work)


@pytest.mark.parametrize("how", ["stop", "stop now", "job", "twice"])
@pytest.mark.parametrize("when", ["at once", "queued", "first step", "loading", "verifying"])
def test_is_cancelled_at_every_point_of_its_start(how: str, when: str) -> None:
    async def work(built: Rig) -> None:
        first: Engine | None = None
        if when == "queued":
            first = built.start("first", "never")
            await built.reached(first, EngineState.STARTING)
        engine = built.start("one", "slow" if when == "verifying" else "never")
        job = engine.job
        assert job is not None
        if when == "first step":
            await turns(2)
        if when == "loading":
            await until(lambda: "stage Load weights" in built.log_buffer.tail(engine.id, 9))
        if when == "verifying":
            await until(lambda: any(s.name == "Verify" for s in built.manager.get(engine.id).stages))
        pid = built.manager.get(engine.id).pid
        if how in {"job", "twice"}:
            built.jobs.cancel(job)
        else:
            built.manager.stop(engine.id, now=how == "stop now")
        if how == "twice":
            await turns(3)
            built.jobs.cancel(job)
            await turns(3)
            built.jobs.cancel(job)
        ended = await built.jobs.ended(job)
        assert ended.state is JobState.CANCELLED
        await built.reached(engine, EngineState.UNLOADED)
        await until(lambda: pid is None or gone(pid))
        if first is not None:
            assert built.state(first) is EngineState.STARTING
            built.manager.stop(first.id)
            await built.reached(first, EngineState.UNLOADED)
        await until(lambda: not built.manager._running)
        built.nothing_left()

    with_rig(work)


@pytest.mark.parametrize(
    ("mode", "last"),
    [
        ("crash-start", "fatal: no memory for the fake weights"),
        ("crash-verify", "fatal: crashed at its first token"),
    ],
)
def test_a_crash_while_it_starts_is_told_with_its_last_lines(mode: str, last: str) -> None:
    async def work(built: Rig) -> None:
        engine = built.start("one", mode)
        job = await built.job(engine)
        assert job.state is JobState.FAILED
        engine = built.manager.get(engine.id)
        assert engine.state is EngineState.FAILED
        assert engine.problem is not None
        assert engine.problem == job.error
        assert engine.problem.evidence["last"] == last
        assert engine.last_lines[-1] == last
        assert engine.pid is None
        built.nothing_left()

    with_rig(work)


def test_one_that_does_not_answer_is_ended() -> None:
    async def work(built: Rig) -> None:
        engine = built.start("one", "mute")
        job = await built.job(engine)
        assert job.error is not None
        assert job.error.reason is Reason.ENGINE_NOT_READY
        assert built.state(engine) is EngineState.FAILED
        built.nothing_left()

    with_rig(work)


def test_a_defect_of_ours_leaves_no_engine_behind(caplog: pytest.LogCaptureFixture) -> None:
    async def work(built: Rig) -> None:
        built.adapter.defect = KeyError("ours")
        engine = built.start("one")
        job = await built.job(engine)
        assert job.error is not None
        assert job.error.reason is Reason.INTERNAL
        failed = built.manager.get(engine.id)
        assert failed.state is EngineState.FAILED
        assert failed.problem is not None
        assert "KeyError" in failed.problem.message
        built.nothing_left()

    with_rig(work)
    assert "KeyError" in caplog.text


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_a_crash_while_it_serves_is_noticed(how: str) -> None:
    async def work(built: Rig) -> None:
        engine = await built.ready("one")
        assert engine.pid is not None
        if how == "exit":
            await crash(built, engine)
        else:
            os.kill(engine.pid, signal.SIGKILL)
        failed = await built.reached(engine, EngineState.FAILED)
        assert failed.problem is not None
        assert failed.problem.reason is Reason.ENGINE_CRASHED
        assert failed.problem.fix is not None
        assert failed.pid is None
        assert built.manager.alive() == []
        built.manager.activity(engine.id, 1)
        assert built.state(engine) is EngineState.FAILED
        await until(lambda: gone(engine.pid))
        built.nothing_left()

    with_rig(work)


def test_a_finding_that_stops_a_start_starts_nothing() -> None:
    async def work(built: Rig) -> None:
        finding = Finding(
            id="x", severity=Severity.ERROR, message="no", reason=Reason.UNSUPPORTED, evidence={"a": 1}
        )
        with pytest.raises(HostError) as raised:
            built.manager.start(built.plan("one", finding=finding))
        assert raised.value.reason is Reason.UNSUPPORTED
        assert raised.value.problem.evidence == {"a": 1}
        assert built.manager.all() == []
        assert built.jobs.all() == []

    with_rig(work)


def test_an_unknown_engine_is_named() -> None:
    async def work(built: Rig) -> None:
        with pytest.raises(HostError) as raised:
            built.manager.stop("engine-x")
        assert raised.value.reason is Reason.NOT_FOUND

    with_rig(work)


def test_what_cannot_be_remembered_is_not_left_running(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(built: Rig) -> None:
        def full(*_arguments: object) -> None:
            raise HostError(Reason.DISK_FULL, "The disk is full.")

        monkeypatch.setattr(built.store, "put", full)
        monkeypatch.setattr(built.store, "remove", full)
        engine = built.start("one", keep=True)
        job = await built.job(engine)
        assert job.error is not None
        assert job.error.reason is Reason.DISK_FULL
        assert built.state(engine) is EngineState.FAILED
        assert built.manager._running == {}

    with_rig(work)


def test_the_end_of_the_host_ends_its_engines_in_any_state() -> None:
    async def act() -> None:
        async with rig() as built:
            await built.ready("one")
            two = built.start("two", "never")
            built.start("three")
            await built.reached(two, EngineState.STARTING)
        assert built.manager.alive() == []
        assert list(built.folders.run.glob("*.sock")) == []

    run(act())


def test_a_kept_engine_survives_and_is_taken_up_again() -> None:
    async def act() -> None:
        async with rig() as built:
            before = await built.ready("one", keep=True)
            await until(lambda: "stage Serve" in built.log_buffer.tail(before.id, 9))
            before = built.manager.get(before.id)
        assert not gone(before.pid)
        async with rig() as built:
            await built.manager.adopt()
            await until(lambda: built.manager.get("one").state is EngineState.READY)
            engine = built.manager.get("one")
            assert (engine.id, engine.pid) == (before.id, before.pid)
            assert engine.adopted
            assert engine.job is None
            await until(lambda: "stage Serve" in built.log_buffer.tail(engine.id, 9))
            await until(lambda: built.manager.get(engine.id).readings)
            assert built.manager.get(engine.id).stages == before.stages, "its start was not measured twice"
            built.manager.stop("one")
            await built.job(engine)
            await until(lambda: gone(before.pid))
            built.nothing_left()

    run(act())


def test_requests_one_after_the_other_ask_for_no_readings_each() -> None:
    """Every look at an engine costs the request beside it: a burst is read by the clock."""

    async def act() -> None:
        async with rig() as built:
            engine = await built.ready("one")
            await until(lambda: built.manager.get(engine.id).readings)
            before, began = len(built.events), time.monotonic()
            for _ in range(100):
                built.manager.activity(engine.id, 1)
                await asyncio.sleep(0.01)
                built.manager.activity(engine.id, 0)
                await asyncio.sleep(0.01)
            most = 2 + (time.monotonic() - began) / 0.25
            assert sum(isinstance(event, EngineReadingsEvent) for event in built.events[before:]) <= most
            built.manager.stop("one")
            await built.job(engine)
            built.nothing_left()

    run(act())


def test_a_kept_engine_that_does_not_answer_any_more_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act() -> None:
        async with rig() as built:
            before = await built.ready("one", keep=True)

        async def silent(_engine: RunningEngine, _seconds: float | None) -> None:
            raise HostError(Reason.ENGINE_START_TIMEOUT, "It did not answer.")

        async with rig() as built:
            monkeypatch.setattr(RunningEngine, "wait_until_healthy", silent)
            await built.manager.adopt()
            await until(lambda: built.manager.get("one").state is not EngineState.STARTING)
            assert built.state(before) is EngineState.FAILED
            await until(lambda: gone(before.pid))
            built.nothing_left()

    run(act())


def test_what_a_killed_host_left_is_ended() -> None:
    async def act() -> None:
        async with rig() as built:
            engine = await built.ready("one")
            # As if the host were killed and the reaper with it: nothing is ended, nothing removed.
            running = built.manager._running.pop(engine.id)
            built.manager._engines.clear()
            built.reaper.forget(running.process.pid)
            OUTLIVING.append(running.process)
            await running.release()
        assert not gone(engine.pid)
        async with rig() as built:
            await built.manager.adopt()
            assert built.manager.all() == []
            await until(lambda: gone(engine.pid))
            built.nothing_left()

    run(act())


def test_records_of_processes_that_are_gone_or_unreadable_are_no_trouble() -> None:
    async def act() -> None:
        async with rig() as built:
            engine = await built.ready("one", keep=True)
        assert engine.pid is not None
        os.killpg(engine.pid, signal.SIGKILL)
        await until(lambda: gone(engine.pid))
        async with rig() as built:
            built.store.put("engine", "engine-other", 0.0, '{"pid": "many"}')
            await built.manager.adopt()
            assert built.manager.all() == []
            assert list(built.folders.run.glob("*.sock")) == []

    run(act())


def test_only_the_newest_of_the_ended_are_remembered() -> None:
    async def work(built: Rig) -> None:
        for number in range(25):
            engine = built.start(f"e{number}")
            assert engine.job
            built.jobs.cancel(engine.job)
            await built.jobs.ended(engine.job)
            await asyncio.sleep(0)
        assert len(built.manager.all()) == 20

    with_rig(work)
