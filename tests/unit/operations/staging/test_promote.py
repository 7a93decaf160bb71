"""What a promotion ends, and what it leaves alone."""

import asyncio

import pytest

from engine_host.operations.staging import places
from engine_host.protocol.endpoint.routes import Route, RouteTargets
from engine_host.protocol.engines import EngineState
from engine_host.protocol.jobs import JobState
from engine_host.protocol.remote.staging import Promotion
from tests.unit.asynchronous import until
from tests.unit.operations.staging.bench import Bench, asked, bench


def test_the_engine_of_that_name_ends_and_not_a_newer_one_of_its_model() -> None:
    async def go() -> None:
        with bench() as made:
            old, new = made.here.add("qwen", model="qwen"), made.here.add("qwen-2", model="qwen")
            made.lead("qwen")
            plan = await made.promotions.plan("local", asked("qwen-2"))
            assert [one.id for one in plan.ends] == [old.id]
            job = await made.jobs.ended((await made.promote("qwen-2")).id)
            assert job.state is JobState.DONE, job.error
            assert made.here.stopped == [old.id]
            assert new.id not in made.here.stopped

    asyncio.run(go())


def test_a_target_by_model_ends_all_that_it_means_but_the_new_one() -> None:
    async def go() -> None:
        with bench() as made:
            old, new = made.here.add("a", model="m"), made.here.add("b", model="m")
            made.lead("m")
            plan = await made.promotions.plan("local", asked("b"))
            assert [one.id for one in plan.ends] == [old.id]
            assert new.id not in [one.id for one in plan.ends]
            assert [one.id for one in plan.findings] == ["promote.kept"]

    asyncio.run(go())


def test_what_another_route_means_by_its_model_is_left() -> None:
    async def go() -> None:
        with bench() as made:
            made.here.add("a", model="m")
            made.here.add("b", model="other")
            made.lead("a")
            made.lead("m", route="second")
            plan = await made.promotions.plan("local", asked("b"))
            assert plan.ends == ()
            assert "second leads there" in plan.findings[0].message

    asyncio.run(go())


def test_what_a_route_of_that_machine_leads_to_is_left() -> None:
    async def go() -> None:
        with bench() as made:
            made.gpu1.add("old")
            made.gpu1.add("new")
            made.gpu1.led = [Route(id="theirs", targets=RouteTargets(engines=("old",)), changed_at=0)]
            made.lead("gpu1/old")
            plan = await made.promotions.plan("gpu1", asked("new"))
            assert plan.ends == ()
            assert "theirs on gpu1 leads there" in plan.findings[0].message

    asyncio.run(go())


async def _while_requests_go_on(made: Bench, change: str) -> Promotion:
    """A promotion whose old engine still answers while routes are changed."""
    old = made.here.add("old")
    made.here.add("new")
    made.lead("old")
    made.here.change(old.id, EngineState.BUSY)
    job = await made.promote("new")
    await until(lambda: (step := made.jobs.get(job.id).step) is not None and step.name == "end")
    if change == "back":
        made.routes.back("pub")
    elif change == "another":
        made.lead("old", route="second")
    else:
        made.routes.remove("pub")
    made.here.change(old.id, EngineState.READY)
    done = await made.jobs.ended(job.id)
    assert done.state is JobState.DONE, done.error
    assert made.here.stopped == []
    return Promotion.model_validate(done.result)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("back", "pub leads there"),
        ("another", "second leads there"),
        ("removed", "pub was changed meanwhile"),
    ],
)
def test_what_is_led_to_again_meanwhile_goes_on(change: str, why: str) -> None:
    async def go() -> None:
        with bench() as made:
            done = await _while_requests_go_on(made, change)
            assert done.ended == ()
            assert [one.id for one in done.findings] == ["promote.kept"]
            assert why in done.findings[0].message

    asyncio.run(go())


def test_an_end_that_is_broken_off_can_be_rolled_back() -> None:
    async def go() -> None:
        with bench() as made:
            old = made.here.add("old")
            made.here.add("new")
            made.lead("old")
            made.here.ends = False
            job = await made.promote("new")
            await until(lambda: made.here.stopped == [old.id])
            made.jobs.cancel(job.id)
            cut = await made.jobs.ended(job.id)
            assert cut.left == "pub leads to new; being ended: old."
            kept = made.promoted.of(made.routes.get("pub"))
            assert kept is not None
            assert [one.id for one in kept.ending] == [old.id]

            # It is still stopping: the roll-back waits until it is gone, and starts it.
            back = await made.rollbacks.roll_back("pub")
            await until(lambda: made.jobs.get(back.id).step is not None)
            assert made.here.started == []
            made.here.change(old.id, EngineState.UNLOADED)
            done = await made.jobs.ended(back.id)
            assert done.state is JobState.DONE, done.error
            assert len(made.here.started) == 1
            assert made.routes.get("pub").targets.engines == ("old",)

    asyncio.run(go())


def test_an_end_that_takes_too_long_can_be_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        with bench() as made:
            old = made.here.add("old")
            made.here.add("new")
            made.lead("old")
            made.here.ends = False
            done = await made.jobs.ended((await made.promote("new")).id)
            outcome = Promotion.model_validate(done.result)
            assert [one.id for one in outcome.findings] == ["promote.not-ended"]
            made.here.change(old.id, EngineState.UNLOADED)
            plan = await made.rollbacks.plan("pub")
            assert [one.id for one in plan.starts] == [old.id]

    monkeypatch.setattr(places, "_STOP", 0.0)
    asyncio.run(go())


def test_a_promotion_is_listed_while_its_route_leads_there() -> None:
    async def go() -> None:
        with bench() as made:
            made.gpu1.add("old")
            made.gpu1.add("new")
            made.lead("gpu1/old")
            job = await made.promotions.promote("gpu1", asked("new"))
            assert job.machines == ("gpu1",), "a window shows it among the jobs of that machine"
            await made.jobs.ended(job.id)
            assert [one.id for one in made.promotions.page("gpu1").promotions] == ["pub"]
            made.routes.back("pub")
            assert made.promotions.page("gpu1").promotions == ()
            made.routes.remove("pub")
            assert made.promotions.page("gpu1").promotions == ()

    asyncio.run(go())
