"""Roll-backs and the starts that they need."""

import asyncio
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.jobs import JobControl
from engine_host.operations.staging.places import bring_up
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import JobKind, JobState
from engine_host.protocol.launch.plans import StartRequest
from tests.unit.asynchronous import until
from tests.unit.operations.staging.bench import Bench, bench


async def _promoted(made: Bench) -> None:
    made.here.add("qwen", model="qwen")
    made.here.add("qwen-2", model="qwen")
    made.lead("qwen")
    done = await made.jobs.ended((await made.promote("qwen-2")).id)
    assert done.state is JobState.DONE, done.error


def test_another_engine_of_the_model_is_not_taken_for_the_one_that_was_ended() -> None:
    async def go() -> None:
        with bench() as made:
            await _promoted(made)
            plan = await made.rollbacks.plan("pub")
            assert [one.name for one in plan.starts] == ["qwen"]

    asyncio.run(go())


def test_a_start_that_failed_leaves_nothing_and_says_so() -> None:
    async def go() -> None:
        with bench() as made:
            await _promoted(made)
            made.here.comes_up = EngineState.FAILED
            done = await made.jobs.ended((await made.rollbacks.roll_back("pub")).id)
            assert done.state is not JobState.DONE
            assert (done.undone, done.left) == ("pub was not changed.", "")
            assert done.error is not None
            assert done.error.message.endswith(" pub was not changed.")

    asyncio.run(go())


def test_a_machine_that_does_not_answer_cannot_be_asked() -> None:
    async def go() -> None:
        with bench() as made:
            made.lead("gpu1/old")
            made.lead("gpu1/new")
            made.gpu1.lost = HostError(Reason.SSH_LOST, "gpu1 is not connected.")
            plan = await made.rollbacks.plan("pub")
            assert [one.id for one in plan.findings] == ["rollback.not-asked"]
            assert plan.findings[0].fix is not None
            assert plan.findings[0].fix.command == "sndr host connect gpu1"
            assert "cannot be started" not in plan.findings[0].message

    asyncio.run(go())


def test_a_start_that_is_cancelled_before_its_answer_is_ended() -> None:
    async def go() -> None:
        with bench() as made:
            made.gpu1.answers.clear()

            async def work(control: JobControl) -> dict[str, Any]:
                asked = StartRequest(plan="plan-a")
                await bring_up(made.gpu1, asked, control, "a may load.", lambda _: None)
                return {}

            job = made.jobs.start(JobKind.HOST_STAGE, "Stage", "stage gpu1", "sndr", work)
            await until(lambda: made.gpu1.started != [])
            made.jobs.cancel(job.id)
            await asyncio.sleep(0)
            made.gpu1.answers.set()
            done = await made.jobs.ended(job.id)
            assert done.state is JobState.CANCELLED
            assert made.gpu1.stopped == made.gpu1.started
            assert done.left == ""

    asyncio.run(go())


def test_a_start_whose_answer_is_lost_may_be_loading() -> None:
    async def go() -> None:
        with bench() as made:
            for reason, left in ((Reason.SSH_LOST, "a may load."), (Reason.CONFLICT, "")):
                made.gpu1.lost = HostError(reason, "no")

                async def work(control: JobControl) -> dict[str, Any]:
                    await bring_up(
                        made.gpu1, StartRequest(plan="plan-a"), control, "a may load.", lambda _: None
                    )
                    return {}

                job = made.jobs.start(JobKind.HOST_STAGE, "Stage", "stage gpu1", "sndr", work)
                assert (await made.jobs.ended(job.id)).left == left

    asyncio.run(go())


def test_what_was_ended_by_hand_is_said_with_its_own_command() -> None:
    async def go() -> None:
        with bench() as made:
            old = made.here.add("old")
            made.lead("old")
            made.lead("new")
            made.here.change(old.id, EngineState.UNLOADED)
            (found,) = (await made.rollbacks.plan("pub")).findings
            assert (found.id, found.reason) == ("rollback.no-start", Reason.CONFLICT)
            assert found.fix is not None
            assert found.fix.command == "sndr run old"
            made.here.known.clear()
            (found,) = (await made.rollbacks.plan("pub")).findings
            assert found.fix is not None
            assert found.fix.command == "sndr host rollback pub"

    asyncio.run(go())
