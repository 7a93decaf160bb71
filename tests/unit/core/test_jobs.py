"""Jobs: in order on one thing, cancelled at any moment, and never running for ever."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.core.jobs import JobControl, JobRunner, Work
from engine_host.core.store import Store
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import EventBase, JobDoneEvent, JobStepEvent
from engine_host.protocol.jobs import Job, JobKind, JobState
from tests.unit.asynchronous import run, turns
from tests.unit.full_disk import small_disk


class Desk:
    """A runner with what it published, and work that waits until it is told to go on."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.published: list[EventBase] = []
        self.runner = JobRunner(self.published.append, store)
        self.ran: list[str] = []
        self.go: dict[str, asyncio.Event] = {}

    def waiting(self, name: str, touches: str = "memory") -> Job:
        """A job that runs until `go` is set for it."""
        self.go[name] = asyncio.Event()

        async def work(_control: JobControl) -> dict[str, Any]:
            self.ran.append(name)
            await self.go[name].wait()
            return {"name": name}

        return self.start(work, name, touches)

    def start(self, work: Work, name: str = "job", touches: str = "memory") -> Job:
        return self.runner.start(JobKind.ENGINE_START, name, touches, f"sndr {name}", work)

    def state(self, job: Job) -> JobState:
        return self.runner.get(job.id).state


@pytest.fixture
def desk(home: Path) -> Iterator[Desk]:
    store = Store(home / "s.sqlite")
    yield Desk(store)
    store.close()


def test_tells_its_steps_and_its_result(desk: Desk) -> None:
    async def work(control: JobControl) -> dict[str, Any]:
        control.step(1, 2, "first")
        control.step(2, 2, "second", "detail", 0.5)
        return {"answer": 42}

    async def act() -> None:
        job = desk.start(work)
        assert job.state is JobState.QUEUED
        ended = await desk.runner.ended(job.id)
        assert (ended.state, ended.result) == (JobState.DONE, {"answer": 42})
        assert ended.started_at is not None
        assert ended.ended_at is not None
        assert ended.step is not None
        assert (ended.step.name, ended.step.progress) == ("second", 0.5)
        reported = [
            (type(event), event.job.state, event.job.step.name if event.job.step else None)
            for event in desk.published
            if isinstance(event, JobStepEvent | JobDoneEvent)
        ]
        assert reported == [
            (JobStepEvent, JobState.QUEUED, None),
            (JobStepEvent, JobState.RUNNING, None),
            (JobStepEvent, JobState.RUNNING, "first"),
            (JobStepEvent, JobState.RUNNING, "second"),
            (JobDoneEvent, JobState.DONE, "second"),
        ]

    run(act())


def test_progress_is_told_ten_times_a_second_and_the_last_is_kept(desk: Desk) -> None:
    async def work(control: JobControl) -> dict[str, Any]:
        for number in range(1000):
            control.step(1, 1, "compile", progress=number / 1000)
        return {}

    async def act() -> None:
        ended = await desk.runner.ended(desk.start(work).id)
        assert ended.step is not None
        assert ended.step.progress == 0.999
        assert len(desk.published) < 100

    run(act())


def test_runs_in_order_on_one_thing_and_beside_on_another(desk: Desk) -> None:
    async def act() -> None:
        one, two, three = (desk.waiting(name) for name in ("one", "two", "three"))
        other = desk.waiting("other", "disk")
        assert (one.behind, two.behind, three.behind, other.behind) == (None, one.id, two.id, None)
        await turns()
        assert desk.ran == ["one", "other"]
        for name in ("one", "two", "three", "other"):
            desk.go[name].set()
        for job in (one, two, three, other):
            assert (await desk.runner.ended(job.id)).state is JobState.DONE
        assert desk.ran == ["one", "other", "two", "three"]
        assert desk.runner.get(three.id).behind is None

    run(act())


def test_a_cancelled_one_in_the_middle_lets_nobody_pass_the_first(desk: Desk) -> None:
    async def act() -> None:
        one, two, three = (desk.waiting(name) for name in ("one", "two", "three"))
        await turns()
        desk.runner.cancel(two.id)
        await desk.runner.ended(two.id)
        await turns()
        assert desk.state(two) is JobState.CANCELLED
        assert desk.state(three) is JobState.QUEUED, "the first still runs"
        assert desk.runner.get(three.id).behind == one.id
        desk.go["one"].set()
        desk.go["three"].set()
        assert (await desk.runner.ended(three.id)).state is JobState.DONE
        assert desk.ran == ["one", "three"]

    run(act())


def test_the_next_one_starts_when_the_one_before_it_fails(desk: Desk) -> None:
    async def fails(_control: JobControl) -> dict[str, Any]:
        raise HostError(Reason.PORT_IN_USE, "taken", fix="another")

    async def act() -> None:
        failed = desk.start(fails)
        after = desk.waiting("after")
        desk.go["after"].set()
        assert (await desk.runner.ended(after.id)).state is JobState.DONE
        ended = desk.runner.get(failed.id)
        assert ended.state is JobState.FAILED
        assert ended.error is not None
        assert (ended.error.reason, ended.error.message) == (Reason.PORT_IN_USE, "taken")

    run(act())


def test_a_defect_ends_as_a_failed_job(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_control: JobControl) -> dict[str, Any]:
        raise KeyError("missing")

    async def act() -> None:
        ended = await desk.runner.ended(desk.start(broken).id)
        assert ended.state is JobState.FAILED
        assert ended.error is not None
        assert ended.error.reason is Reason.INTERNAL
        assert "KeyError" in ended.error.message
        assert "KeyError" in caplog.text

    run(act())


@pytest.mark.parametrize("rounds", range(4))
def test_is_cancelled_at_any_moment_and_tells_whoever_asked(desk: Desk, rounds: int) -> None:
    """0 rounds of the loop: before it ran at all."""
    reported: list[Job] = []

    async def work(control: JobControl) -> dict[str, Any]:
        control.undone = "everything"
        control.left = "nothing"
        await asyncio.Event().wait()
        return {}

    async def act() -> None:
        job = desk.runner.start(JobKind.ENGINE_START, "t", "memory", "", work, reported.append)
        await turns(rounds)
        desk.runner.cancel(job.id)
        ended = await desk.runner.ended(job.id)
        await turns()
        ended = desk.runner.get(job.id)
        assert ended.state is JobState.CANCELLED
        assert ended.ended_at is not None
        if ended.started_at:
            assert (ended.undone, ended.left) == ("everything", "nothing")
        assert [(one.id, one.state) for one in reported] == [(job.id, JobState.CANCELLED)]
        assert desk.runner.cancel(job.id) == ended, "what has ended stays as it is"
        assert sum(isinstance(event, JobDoneEvent) for event in desk.published) == 1

    run(act())


def test_work_that_says_it_was_cancelled_is_cancelled(desk: Desk) -> None:
    async def work(_control: JobControl) -> dict[str, Any]:
        raise HostError(Reason.CANCELLED, "by hand")

    async def act() -> None:
        assert (await desk.runner.ended(desk.start(work).id)).state is JobState.CANCELLED

    run(act())


def test_a_step_after_the_end_is_not_told(desk: Desk) -> None:
    kept: list[JobControl] = []

    async def work(control: JobControl) -> dict[str, Any]:
        kept.append(control)
        return {}

    async def act() -> None:
        job = await desk.runner.ended(desk.start(work).id)
        count = len(desk.published)
        kept[0].step(1, 1, "late")
        assert desk.runner.get(job.id).step is None
        assert len(desk.published) == count

    run(act())


def test_close_cancels_all_in_any_state(desk: Desk) -> None:
    async def act() -> None:
        jobs = [desk.waiting(name) for name in ("one", "two", "three")]
        await turns()
        jobs.append(desk.waiting("just now", "disk"))
        await desk.runner.close()
        await turns()
        assert {desk.state(job) for job in jobs} == {JobState.CANCELLED}

    run(act())


def test_an_unknown_job_is_named(desk: Desk) -> None:
    with pytest.raises(HostError) as raised:
        desk.runner.get("job-x")
    assert raised.value.reason is Reason.NOT_FOUND


def test_after_a_restart_no_job_runs(desk: Desk) -> None:
    async def act() -> list[Job]:
        done = desk.waiting("done", "a")
        desk.go["done"].set()
        await desk.runner.ended(done.id)
        running, queued = desk.waiting("running"), desk.waiting("queued")
        await turns()
        # The host is killed now: what the store holds is all that is left.
        again = JobRunner(desk.published.append, desk.store)
        again.restore()
        states = {job.id: (job.state, job.error and job.error.reason) for job in again.all()}
        assert states == {
            done.id: (JobState.DONE, None),
            running.id: (JobState.FAILED, Reason.HOST_RESTARTED),
            queued.id: (JobState.FAILED, Reason.HOST_RESTARTED),
        }
        await desk.runner.close()
        return again.all()

    assert {job.ended for job in run(act())} == {True}


def test_a_job_of_another_version_does_not_stop_the_host(desk: Desk) -> None:
    desk.store.put("job", "job-1", 1.0, '{"id": "job-1", "kind": "engine.invented"}')
    desk.store.put("job", "job-2", 2.0, "damaged")
    desk.runner.restore()
    assert desk.runner.all() == []


def test_only_the_newest_are_remembered(desk: Desk) -> None:
    async def nothing(_control: JobControl) -> dict[str, Any]:
        return {}

    async def act() -> None:
        for number in range(230):
            await desk.runner.ended(desk.start(nothing, touches=str(number)).id)
        assert len(desk.runner.all()) == 200
        assert len(desk.store.newest("job", 1000)) <= 200

    run(act())


def test_a_full_disk_stops_no_job(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    with small_disk(home / "disk") as disk:
        store = Store(disk.folder / "s.sqlite")
        desk = Desk(store)

        async def work(control: JobControl) -> dict[str, Any]:
            control.step(1, 1, "x" * 1_000_000)
            return {}

        async def act() -> None:
            ended = await desk.runner.ended(desk.start(work).id)
            assert ended.state is JobState.DONE

        if not disk.real:
            store.close()
            pytest.skip("needs a disk of its own")
        with disk.full():
            run(act())
        assert "could not be used" in caplog.text
        store.close()
