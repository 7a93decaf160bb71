"""The job that finds a culprit: a real manager and real jobs; the engine and the planner are FAKE."""

import sys
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.launch.placement import place, references
from engine_host.operations.patches.bisect import BisectOperations, EndpointAddress
from engine_host.operations.plans import PlanOperations
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobState
from engine_host.protocol.launch.plans import (
    BisectRequest,
    BisectResult,
    BisectVerdict,
    LaunchPlan,
    LaunchRequest,
)
from engine_host.protocol.patches import BisectCheck, PatchChoice, PlannedPatches
from tests.unit.asynchronous import run, until
from tests.unit.engines.rig import Rig, rig

pytestmark = pytest.mark.usefixtures("home")
STARTS = BisectCheck(builtin="starts")
PATCHES = ("a", "b", "c", "d", "guard")


@dataclass
class Trouble(PlanOperations):
    """A FAKE planner: an engine with all of one of the `guilty` sets does not start, or fails the check."""

    rig: Rig
    guilty: Collection[Collection[str]] = ()
    patches: PlannedPatches | None = field(
        default_factory=lambda: PlannedPatches(digest="d", chosen=PATCHES, required=("guard",))
    )
    mode: str = "crash-start"
    mark: Path | None = None
    asked: list[LaunchRequest] = field(default_factory=list)

    async def plan(self, request: LaunchRequest) -> LaunchPlan:
        self.asked.append(request)
        running = self.rig.manager.alive()
        plan = self.rig.plan(f"trial{len(self.asked)}")
        if self.patches is None:
            return plan
        only = request.patches.only
        chosen = tuple(
            name
            for name in self.patches.chosen
            if name not in request.patches.off and (only is None or name in only)
        )
        fails = any(set(names) <= set(chosen) for names in self.guilty)
        if self.mark is not None:
            self.mark.write_text("1" if fails else "0")
        elif fails:
            plan = self.rig.plan(f"trial{len(self.asked)}", self.mode)
        return plan.model_copy(
            update={
                "name": request.model,
                "patches": self.patches.model_copy(update={"chosen": chosen}),
                "keep": request.keep,
                "instead_of": references(place(request.model, request.instead_of, running).ended),
            }
        )


@dataclass
class Desk:
    """A bisection that can be started, and what its engines do."""

    rig: Rig
    planner: Trouble
    service: BisectOperations

    async def start(self, check: BisectCheck = STARTS, **launch: Any) -> Job:
        return await self.service.start(BisectRequest(launch=LaunchRequest(model="m", **launch), check=check))

    async def ended(self, check: BisectCheck = STARTS, **launch: Any) -> Job:
        return await self.rig.jobs.ended((await self.start(check, **launch)).id)

    async def found(self, check: BisectCheck = STARTS, **launch: Any) -> BisectResult:
        job = await self.ended(check, **launch)
        assert job.state is JobState.DONE, job.error
        return BisectResult.model_validate(job.result)


def at_a_desk(work: Callable[[Desk], Coroutine[Any, Any, None]], *guilty: Collection[str]) -> None:
    async def act() -> None:
        async with rig() as built:
            planner = Trouble(built, guilty)
            door = EndpointAddress("http://endpoint/v1", "key-1")
            await work(
                Desk(built, planner, BisectOperations(built.jobs, built.manager, planner, lambda: door))
            )

    run(act())


def test_the_patch_that_keeps_an_engine_from_starting_is_named() -> None:
    async def work(desk: Desk) -> None:
        found = await desk.found()
        assert found.verdict is BisectVerdict.FOUND
        assert found.culprits == (("c",),)
        assert found.sentence == "The culprit is c. All others passed without it."
        assert "--without c" in found.command
        assert [trial.passed for trial in found.trials[:2]] == [True, False]
        assert found.trials[1].reason is Reason.ENGINE_CRASHED
        assert "ended with 3" in found.trials[1].why
        assert all("guard" in trial.patches for trial in found.trials)
        assert found.engine is not None
        running = desk.rig.manager.get(found.engine)
        assert running.state is EngineState.READY
        assert running.plan.patches is not None
        assert running.plan.patches.chosen == ("a", "b", "d", "guard")

    at_a_desk(work, "c")


def test_patches_that_fail_only_together_are_named_together() -> None:
    async def work(desk: Desk) -> None:
        found = await desk.found()
        assert found.culprits == (("a", "d"),)
        assert found.sentence.startswith("The culprits are a together with d. All others passed without them")

    at_a_desk(work, "ad")


def test_several_culprits_are_all_found() -> None:
    async def work(desk: Desk) -> None:
        found = await desk.found()
        assert {names[0] for names in found.culprits} == {"a", "c"}
        assert found.engine is not None

    at_a_desk(work, "a", "c")


def test_when_it_fails_without_patches_they_are_not_the_cause() -> None:
    async def work(desk: Desk) -> None:
        found = await desk.found()
        assert (found.verdict, found.engine) == (BisectVerdict.NOT_PATCHES, None)
        assert "ended with 3" in found.sentence
        assert len(found.trials) == 1
        desk.rig.nothing_left()

    at_a_desk(work, ())


def test_when_nothing_fails_there_is_nothing_to_find() -> None:
    async def work(desk: Desk) -> None:
        found = await desk.found()
        assert found.verdict is BisectVerdict.NO_FAILURE
        assert found.engine is not None
        assert desk.rig.manager.get(found.engine).state is EngineState.READY
        assert len(found.trials) == 2

    at_a_desk(work)


def test_a_command_judges_by_its_exit(tmp_path: Path) -> None:
    mark = tmp_path / "fails"
    script = (
        "import os, pathlib, sys; "
        "assert os.environ['SNDR_ENDPOINT'] == 'http://endpoint/v1'; "
        "assert os.environ['SNDR_API_KEY'] == 'key-1'; "
        "assert os.environ['SNDR_MODEL'] == 'm' and os.environ['SNDR_SOCKET'].endswith('.sock'); "
        "print('looked'); sys.exit(int(pathlib.Path('fails').read_text()))"
    )
    check = BisectCheck(command=(sys.executable, "-c", script), folder=str(tmp_path))

    async def work(desk: Desk) -> None:
        desk.planner.mark = mark
        found = await desk.found(check)
        assert found.culprits == (("b",),)
        assert found.trials[0].why == "ended with 0: looked"
        assert found.trials[1].why == "ended with 1: looked"
        assert found.trials[1].reason is None

    at_a_desk(work, "b")


def test_a_command_that_cannot_judge_ends_the_search_and_leaves_no_engine(tmp_path: Path) -> None:
    check = BisectCheck(command=(sys.executable, "-c", "raise SystemExit(125)"), folder=str(tmp_path))

    async def work(desk: Desk) -> None:
        job = await desk.ended(check)
        assert job.state is JobState.FAILED
        assert job.error is not None
        assert job.error.reason is Reason.BAD_REQUEST
        desk.rig.nothing_left()

    at_a_desk(work, "b")


def test_a_trial_is_never_kept() -> None:
    async def work(desk: Desk) -> None:
        found = await desk.found(keep=True)
        assert found.verdict is BisectVerdict.NO_FAILURE
        assert [asked.keep for asked in desk.planner.asked] == [True, False, False]

    at_a_desk(work)


def test_what_the_person_left_out_stays_out_in_every_trial() -> None:
    async def work(desk: Desk) -> None:
        found = await desk.found(patches=PatchChoice(off=("a",), on=("c", "d")))
        assert found.culprits == (("c",),)
        assert all("a" not in trial.patches for trial in found.trials)
        assert "--without a" in found.command
        assert "--without c" in found.command

    at_a_desk(work, "c", "a")


def test_a_cancelled_bisection_leaves_no_engine() -> None:
    async def work(desk: Desk) -> None:
        desk.planner.mode = "never"
        job = await desk.start()
        await until(lambda: len(desk.planner.asked) == 3 and desk.rig.manager.alive())
        desk.rig.jobs.cancel(job.id)
        assert (await desk.rig.jobs.ended(job.id)).state is JobState.CANCELLED
        await until(lambda: not desk.rig.manager.alive())
        desk.rig.nothing_left()

    at_a_desk(work, "c")


def test_an_engine_that_somebody_stops_ends_the_search() -> None:
    async def work(desk: Desk) -> None:
        desk.planner.mode = "never"
        job = await desk.start()
        await until(lambda: any(one.state is EngineState.STARTING for one in desk.rig.manager.alive()))
        await until(lambda: len(desk.planner.asked) == 3)
        await until(lambda: any(one.state is EngineState.STARTING for one in desk.rig.manager.alive()))
        for one in desk.rig.manager.alive():
            desk.rig.manager.stop(one.id, now=True)
        ended = await desk.rig.jobs.ended(job.id)
        assert ended.state is JobState.CANCELLED
        assert ended.error is not None
        assert "somebody stopped its engine" in ended.error.message
        desk.rig.nothing_left()

    at_a_desk(work, "c")


def test_engines_that_nobody_named_go_on() -> None:
    async def work(desk: Desk) -> None:
        other = await desk.rig.ready("other")
        found = await desk.found()
        assert found.culprits == (("c",),)
        assert desk.rig.state(other) is EngineState.READY
        assert [one.name for one in desk.rig.manager.serving()] == ["m", "other"]

    at_a_desk(work, "c")


def test_an_engine_of_the_name_is_ended_only_where_it_is_named() -> None:
    async def work(desk: Desk) -> None:
        same = await desk.rig.ready("m")
        with pytest.raises(HostError, match="m runs already") as raised:
            await desk.start()
        assert raised.value.reason is Reason.CONFLICT
        assert (await desk.found(instead_of=("m",))).culprits == (("c",),)
        assert desk.rig.state(same) is EngineState.UNLOADED

    at_a_desk(work, "c")


def test_one_bisection_at_a_time() -> None:
    async def work(desk: Desk) -> None:
        desk.planner.mode = "never"
        job = await desk.start()
        with pytest.raises(HostError) as raised:
            await desk.start()
        assert raised.value.reason is Reason.CONFLICT
        assert raised.value.problem.evidence == {"job": job.id}
        desk.rig.jobs.cancel(job.id)
        await desk.rig.jobs.ended(job.id)
        await desk.found()

    at_a_desk(work)


@pytest.mark.parametrize(
    "patches",
    [None, PlannedPatches(digest="", chosen=()), PlannedPatches(digest="d", chosen=("g",), required=("g",))],
)
def test_a_start_without_anything_to_leave_out_is_refused(patches: PlannedPatches | None) -> None:
    async def work(desk: Desk) -> None:
        desk.planner.patches = patches
        with pytest.raises(HostError) as raised:
            await desk.start()
        assert raised.value.reason is Reason.UNSUPPORTED
        assert desk.rig.jobs.all() == []

    at_a_desk(work)


def test_a_check_that_cannot_be_run_is_refused_before_anything_starts(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        for check in (
            BisectCheck(command=("no-such-program",), folder=str(tmp_path)),
            BisectCheck(command=(sys.executable,), folder=str(tmp_path / "nowhere")),
        ):
            with pytest.raises(HostError) as raised:
                await desk.start(check)
            assert raised.value.reason is Reason.BAD_REQUEST
        assert desk.planner.asked == []

    at_a_desk(work)


@pytest.mark.parametrize(
    ("check", "equivalent_command"),
    [
        (BisectCheck(builtin="starts"), "sndr patches bisect m --check starts"),
        (
            BisectCheck(builtin="answers", prompt="Two and two?"),
            "sndr patches bisect m --check answers --prompt 'Two and two?'",
        ),
        (BisectCheck(command=("true", "a b")), "sndr patches bisect m -- true 'a b'"),
    ],
)
def test_the_job_names_its_command(check: BisectCheck, equivalent_command: str) -> None:
    async def work(desk: Desk) -> None:
        # A bisection keeps nothing, and its command has no word for it.
        job = await desk.start(check, keep=True)
        assert job.command == equivalent_command
        desk.rig.jobs.cancel(job.id)
        await desk.rig.jobs.ended(job.id)

    at_a_desk(work)
