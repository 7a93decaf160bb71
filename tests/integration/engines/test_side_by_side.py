"""Engines beside and instead of each other, with a FAKE engine in a real process."""

import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import JobState
from tests.integration.engines.managed import collected, crash, gone, with_rig
from tests.unit.asynchronous import turns, until
from tests.unit.engines.rig import Rig

__all__ = ["collected"]
pytestmark = pytest.mark.usefixtures("home", "collected")


def test_engines_run_side_by_side_and_end_alone() -> None:
    async def work(built: Rig) -> None:
        one, two = await built.ready("one"), await built.ready("two")
        assert [engine.id for engine in built.manager.serving()] == [two.id, one.id]
        assert built.drained == []
        built.manager.activity(one.id, 1)
        assert (built.state(one), built.state(two)) == (EngineState.BUSY, EngineState.READY)
        await crash(built, built.manager.get(one.id))
        await built.reached(one, EngineState.FAILED)
        assert built.state(two) is EngineState.READY
        assert not gone(two.pid)
        built.manager.stop("two")
        await built.job(two)
        built.nothing_left()

    with_rig(work)


def test_an_engine_is_stopped_while_another_loads() -> None:
    async def work(built: Rig) -> None:
        one = await built.ready("one")
        loading = built.start("two", "never")
        await built.reached(loading, EngineState.STARTING)
        built.manager.stop(one.id)
        assert (await built.job(one)).state is JobState.DONE
        assert built.state(loading) is EngineState.STARTING
        built.manager.stop(loading.id)
        await built.reached(loading, EngineState.UNLOADED)

    with_rig(work)


def test_one_loads_at_a_time_and_fits_when_its_turn_comes() -> None:
    async def work(built: Rig) -> None:
        loading = built.start("one", "never")
        waiting = built.start("two")
        await built.reached(loading, EngineState.STARTING)
        assert built.state(waiting) is EngineState.PREPARING
        built.no_room = HostError(Reason.OUT_OF_MEMORY, "No room any more.")
        built.manager.stop(loading.id)
        job = await built.job(waiting)
        assert job.error is not None
        assert job.error.reason is Reason.OUT_OF_MEMORY
        assert built.state(waiting) is EngineState.FAILED
        built.nothing_left()

    with_rig(work)


def test_a_start_waits_for_what_is_being_stopped() -> None:
    async def work(built: Rig) -> None:
        one = await built.ready("one")
        built.may_drain.clear()
        built.manager.stop(one.id)
        await built.reached(one, EngineState.DRAINING)
        two = built.start("two")
        await turns()
        assert built.state(two) is EngineState.PREPARING, "its memory was counted as free"
        built.may_drain.set()
        assert (await built.job(two)).state is JobState.DONE
        assert built.state(one) is EngineState.UNLOADED

    with_rig(work)


def test_a_start_ends_what_it_is_instead_of_and_nothing_else() -> None:
    async def work(built: Rig) -> None:
        other = await built.ready("other")
        one = await built.ready("one")
        two = built.start("two", instead_of=[one])
        await until(lambda: built.manager.get(two.id).pid)
        assert built.state(one) is EngineState.UNLOADED
        await until(lambda: gone(one.pid))
        await built.job(two)
        assert built.state(two) is EngineState.READY
        assert built.drained == [one.id]
        assert [engine.id for engine in built.manager.all()] == [two.id, other.id, one.id]
        assert built.state(other) is EngineState.READY

    with_rig(work)


def test_calling_off_a_replacement_leaves_what_serves() -> None:
    async def work(built: Rig) -> None:
        one = await built.ready("one")
        built.may_drain.clear()
        two = built.start("two", instead_of=[one])
        await built.reached(one, EngineState.DRAINING)
        built.manager.stop(two.id)
        await built.reached(two, EngineState.UNLOADED)
        assert built.state(one) is EngineState.READY
        assert not gone(one.pid)

    with_rig(work)


def test_calling_off_a_stop_leaves_what_serves() -> None:
    async def work(built: Rig) -> None:
        one = await built.ready("one")
        built.may_drain.clear()
        job = built.manager.stop(one.id).job
        await built.reached(one, EngineState.DRAINING)
        assert job is not None
        built.jobs.cancel(job)
        ended = await built.jobs.ended(job)
        assert ended.state is JobState.CANCELLED
        assert "keeps running" in ended.undone
        assert built.state(one) is EngineState.READY

    with_rig(work)


def test_two_starts_of_one_plan_run_one_after_the_other() -> None:
    async def work(built: Rig) -> None:
        one = built.start("same")
        with pytest.raises(HostError, match="from this very plan") as raised:
            built.start("same")
        assert raised.value.reason is Reason.CONFLICT
        two = built.start("same", instead_of=[one])
        await built.job(two)
        assert built.state(one) is EngineState.UNLOADED
        assert built.state(two) is EngineState.READY
        assert list(built.folders.run.glob("*.sock")) != []

    with_rig(work)


def test_a_stop_asked_twice_is_one_stop() -> None:
    async def work(built: Rig) -> None:
        one = await built.ready("one")
        built.may_drain.clear()
        first = built.manager.stop(one.id)
        await built.reached(one, EngineState.DRAINING)
        assert built.manager.stop(one.id).job == first.job
        built.may_drain.set()
        await built.reached(one, EngineState.UNLOADED)
        assert built.states(one)[-3:] == [EngineState.DRAINING, EngineState.STOPPING, EngineState.UNLOADED]

    with_rig(work)


def test_a_stop_now_does_not_wait_for_requests_or_for_sigterm() -> None:
    async def work(built: Rig) -> None:
        one = await built.ready("one", "deaf")
        built.may_drain.clear()
        patient = built.manager.stop(one.id)
        await built.reached(one, EngineState.DRAINING)
        now = built.manager.stop(one.id, now=True)
        assert now.job != patient.job
        assert (await built.job(now)).state is JobState.DONE
        await until(lambda: gone(one.pid))
        assert built.state(one) is EngineState.UNLOADED
        built.may_drain.set()
        assert patient.job is not None
        await built.jobs.ended(patient.job)
        assert built.state(one) is EngineState.UNLOADED, "nothing comes back to life"
        built.nothing_left()

    with_rig(work)


def test_a_stop_beside_a_replacement_does_not_bring_it_back() -> None:
    async def work(built: Rig) -> None:
        one = await built.ready("one")
        two = built.start("two", "never", instead_of=[one])
        built.manager.stop(one.id)
        await built.reached(two, EngineState.STARTING)
        built.manager.stop(two.id)
        assert (await built.job(one)).state is JobState.DONE
        assert built.states(one)[-1] is EngineState.UNLOADED
        assert built.states(one).count(EngineState.UNLOADED) == 1

    with_rig(work)
