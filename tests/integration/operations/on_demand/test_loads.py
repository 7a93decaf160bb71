"""Loads on demand over a real manager with real processes; the engine is FAKE, and so is who finds room."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.operations.on_demand.entries import Entries, Entry, check_launch, check_name
from engine_host.operations.on_demand.loads import OnDemandModels, RunningLoad
from engine_host.protocol.endpoint.on_demand import NEVER, OnDemandChange, OnDemandState
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import OnDemandEvent
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest
from tests.unit.asynchronous import run, until
from tests.unit.engines.rig import Rig, rig


@dataclass
class Loads:
    """The models of a rig; `mode` is what the next engine does, and `go` lets plans through."""

    rig: Rig
    models: OnDemandModels = field(init=False)
    mode: str = "ok"
    go: asyncio.Event = field(default_factory=asyncio.Event)
    planned: list[LaunchRequest] = field(default_factory=list)
    at_work: dict[str, int] = field(default_factory=dict)

    async def plan(self, request: LaunchRequest) -> LaunchPlan:
        """Find room as soon as the test lets it."""
        self.planned.append(request)
        await self.go.wait()
        return self.rig.plan(f"{request.name}-{len(self.planned)}", self.mode).model_copy(
            update={"name": request.name}
        )

    def add(self, name: str, keep_alive: float = NEVER, *, pinned: bool = False) -> None:
        """Let requests load a model."""
        launch = LaunchRequest(model="m", name=name)
        entry = Entry(name=name, launch=launch, keep_alive=keep_alive, pinned=pinned)
        self.models.put(entry, "sndr on-demand add m", None)

    def changes(self, name: str) -> list[OnDemandChange]:
        """The changes of a model so far."""
        return [
            event.change
            for event in self.rig.events
            if isinstance(event, OnDemandEvent) and event.model.name == name
        ]

    def state(self, name: str) -> OnDemandState:
        """The state of a model."""
        return self.models.get(name).state

    async def loaded(self, name: str) -> str:
        """Load a model; the id of its engine."""
        self.go.set()
        load = self.models.join(name)
        await load.done
        self.models.leave(load)
        engine = self.models.get(name).engine
        assert engine is not None
        return engine


@asynccontextmanager
async def loads() -> AsyncIterator[Loads]:
    """Models on demand over a rig."""
    async with rig() as built:
        made = Loads(built)
        made.models = OnDemandModels(
            built.manager,
            built.jobs,
            built.events.append,
            made.plan,
            built.manager.start,
            lambda engine: made.at_work.get(engine, 0),
        )
        made.models.open()
        try:
            yield made
        finally:
            await made.models.close()


Work = Callable[[Loads], Awaitable[None]]


def over(work: Work) -> None:
    """Do this over loads of their own."""

    async def go() -> None:
        async with loads() as made:
            await work(made)

    run(go())


def test_all_who_wait_share_a_load_and_the_last_to_leave_ends_it(home: Path) -> None:
    async def work(made: Loads) -> None:
        made.add("one")
        first, second = made.models.join("one"), made.models.join("one")
        assert first is second
        assert (made.state("one"), made.models.get("one").waiting) == (OnDemandState.LOADING, 2)
        await until(lambda: made.planned)
        made.models.leave(first)
        assert not first.done.done()
        made.models.leave(second)
        await until(first.done.cancelled)
        assert made.state("one") is OnDemandState.LOADABLE
        assert made.changes("one")[-1] is OnDemandChange.NOT_WANTED
        assert not made.rig.manager.all(), "its start had not begun"
        await made.loaded("one")
        assert made.state("one") is OnDemandState.LOADED

    over(work)


def test_one_that_is_to_go_on_does_so_without_anybody(home: Path) -> None:
    async def work(made: Loads) -> None:
        made.add("one")
        load = made.models.join("one")
        made.models.leave(load, goes_on=True)
        made.go.set()
        await until(lambda: made.state("one") is OnDemandState.LOADED)

    over(work)


def test_one_load_at_a_time(home: Path) -> None:
    async def work(made: Loads) -> None:
        made.add("one")
        made.add("two")
        one, two = made.models.join("one"), made.models.join("two")
        await until(lambda: made.planned)
        assert [request.name for request in made.planned] == ["one"]
        made.go.set()
        await asyncio.gather(one.done, two.done)
        assert [request.name for request in made.planned] == ["one", "two"]

    over(work)


def test_an_idle_one_ends_and_one_that_works_or_is_pinned_does_not(home: Path) -> None:
    async def work(made: Loads) -> None:
        made.add("works", 0)
        made.add("pinned", 0, pinned=True)
        made.go.set()
        load = made.models.join("works")
        await load.done
        engine = made.models.get("works").engine
        assert engine is not None
        made.at_work[engine] = 1
        made.models.activity(engine, 1)
        made.models.leave(load)
        pinned = await made.loaded("pinned")
        assert made.models.evictable().keys() == {engine}
        assert not made.models.is_idle(engine)
        assert made.models.is_idle(pinned)
        assert made.models.get("works").unloads_at is None
        made.at_work[engine] = 0
        made.models.activity(engine, 0)
        await until(lambda: made.state("works") is OnDemandState.LOADABLE)
        await until(lambda: made.changes("works")[-1] is OnDemandChange.ENDED)
        assert OnDemandChange.IDLE in made.changes("works")
        assert made.state("pinned") is OnDemandState.LOADED
        with pytest.raises(HostError) as refused:
            made.models.unload("pinned")
        assert refused.value.reason is Reason.CONFLICT
        made.models.end("pinned")
        await until(lambda: made.state("pinned") is OnDemandState.LOADABLE)
        assert min(made.rig.drain_limits) >= 600, "answers at work are written to their end"

    over(work)


def test_one_that_is_removed_and_added_again_keeps_its_engine(home: Path) -> None:
    async def work(made: Loads) -> None:
        made.add("one")
        engine = await made.loaded("one")
        made.models.remove("one")
        made.add("one", 0)
        model = made.models.get("one")
        assert (model.engine, model.by_hand) == (engine, False)
        await until(lambda: made.state("one") is OnDemandState.LOADABLE)
        # The same while it is being loaded.
        load = made.models.join("one")
        await until(lambda: load.begun)
        made.models.remove("one")
        made.add("one")
        await load.done
        made.models.leave(load)
        assert not made.models.get("one").by_hand
        # One that had not begun is called off, and what a person starts afterwards stays theirs.
        made.models.end("one")
        await until(lambda: made.state("one") is OnDemandState.LOADABLE)
        await until(lambda: not made.rig.manager.alive())
        made.go.clear()
        load = made.models.join("one")
        made.models.remove("one")
        made.add("one", 0)
        started = made.rig.manager.start(made.rig.plan("one"))
        assert started.job is not None
        await made.rig.jobs.ended(started.job)
        assert made.models.get("one").by_hand
        made.models.leave(load)

    over(work)


def test_a_failed_load_is_not_tried_again_at_once(home: Path) -> None:
    async def work(made: Loads) -> None:
        made.add("one")
        made.mode = "crash-start"
        made.go.set()
        load = made.models.join("one")
        with pytest.raises(HostError) as failed:
            await load.done
        made.models.leave(load)
        with pytest.raises(HostError) as again:
            made.models.join("one")
        assert again.value.reason is failed.value.reason
        assert len(made.planned) == 1
        problem = made.models.get("one").problem
        assert problem is not None
        assert problem.reason is failed.value.reason
        assert made.state("one") is OnDemandState.LOADABLE

    over(work)


def test_what_a_person_started_is_left_alone(home: Path) -> None:
    async def work(made: Loads) -> None:
        made.add("one", 0)
        engine = made.rig.manager.start(made.rig.plan("one"))
        assert engine.job is not None
        await made.rig.jobs.ended(engine.job)
        model = made.models.get("one")
        assert (model.state, model.by_hand, model.unloads_at) == (OnDemandState.LOADED, True, None)
        assert not made.models.evictable()
        with pytest.raises(HostError) as refused:
            made.models.end("one")
        assert refused.value.reason is Reason.CONFLICT
        load = made.models.join("one")
        await load.done
        made.models.leave(load)
        assert not made.planned, "it runs"

    over(work)


def test_a_program_that_ends_lets_everybody_go_and_begins_nothing(home: Path) -> None:
    async def work(made: Loads) -> None:
        made.add("one")
        load = made.models.join("one")
        await made.models.close()
        assert load.done.cancelled()
        with pytest.raises(HostError) as closed:
            made.models.join("one")
        assert closed.value.reason is Reason.CANCELLED
        with pytest.raises(HostError) as unknown:
            made.models.get("\x1b[2J")
        assert unknown.value.reason is Reason.NOT_FOUND
        assert isinstance(load, RunningLoad)

    over(work)


def test_entries_are_kept_and_what_is_none_is_left_out(home: Path) -> None:
    async def work(made: Loads) -> None:
        entries = Entries(made.rig.store)
        entry = Entry(name="one", launch=LaunchRequest(model="m", name="one"), keep_alive=60, pinned=True)
        entries.put(entry)
        for body in ("{}", "no JSON", '{"name": 1}', '{"name": "x", "launch": {"model": "m", "evil": 1}}'):
            made.rig.store.put("on demand", body, 0.0, body)
        assert entries.read() == [entry]
        entries.remove("one")
        assert entries.read() == []

    over(work)


@pytest.mark.parametrize("name", ["a/b", "a:b", "../a", "http://x"])
def test_names_that_are_paths_or_tags_are_refused(name: str) -> None:
    with pytest.raises(HostError) as refused:
        check_name(name)
    assert refused.value.reason is Reason.SETTING_INVALID
    check_name("a-b.c_d e")


@pytest.mark.parametrize("fields", [{"keep": True}, {"instead_of": ("other",)}])
def test_starts_that_make_no_sense_on_demand_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(HostError) as refused:
        check_launch(LaunchRequest.model_validate({"model": "m", **fields}))
    assert refused.value.reason is Reason.SETTING_INVALID
