"""The patches of running engines: ledgers followed, probes asked, what is kept after the end."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.engines.manager import EngineManager
from engine_host.operations.patches.of_engines import (
    OVERLAY,
    EnginePatchOperations,
    EnginePatchTracker,
    ledger_folder,
    remove_stale_ledgers,
)
from engine_host.operations.plans import PlanOperations
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import EventBase, PatchResultEvent, PatchSummaryEvent
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest
from engine_host.protocol.patches import (
    PatchChoice,
    PatchOutcome,
    PlannedPatches,
    ProcessRole,
)
from tests.plan_samples import engine_of, vllm_plan
from tests.unit.asynchronous import run, turns, until
from tests.unit.overlay.ledger_files import line, result, settled, write

PLANNED = PlannedPatches(digest="d", chosen=("one", "two"), required=("two",))


def engine(name: str = "demo", planned: PlannedPatches | None = PLANNED) -> Engine:
    plan = vllm_plan(id=f"plan-{name}", name=name, argv=("vllm",), patches=planned)
    return engine_of(plan, EngineState.STARTING, id=f"engine-{name}")


class Told(EventLog):
    """An event log that also keeps what was published."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[EventBase] = []

    def publish(self, event: EventBase) -> None:
        super().publish(event)
        self.all.append(event)

    def results(self) -> list[PatchResultEvent]:
        return [event for event in self.all if isinstance(event, PatchResultEvent)]

    def summaries(self) -> list[str]:
        return [event.patches.summary for event in self.all if isinstance(event, PatchSummaryEvent)]


@dataclass
class Desk:
    """A book, its events, its stages, and where engines write."""

    book: EnginePatchTracker
    events: Told
    run: Path
    stages: list[tuple[str, str, str]] = field(default_factory=list)

    def folder(self, of: Engine) -> Path:
        return ledger_folder(self.run, of.plan.id)


def at_a_desk(run_folder: Path, work: Callable[[Desk], Coroutine[Any, Any, None]]) -> None:
    @asynccontextmanager
    async def desk() -> AsyncIterator[Desk]:
        events = Told()
        built = Desk(EnginePatchTracker(events, run_folder), events, run_folder)
        built.book.stage = lambda *told: built.stages.append(told)
        yield built
        await built.book.close()
        events.close()

    async def act() -> None:
        async with desk() as opened:
            await work(opened)

    run(act())


def test_what_a_ledger_says_becomes_events(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        one = engine()
        desk.book.begin(one)
        await turns()
        assert desk.events.all == []
        write(desk.folder(one), line(7, "start"), result(7, "one"), settled(7, "one"))
        await until(desk.events.results)
        (event,) = desk.events.results()
        assert (event.engine, event.pid, event.role) == (one.id, 7, ProcessRole.ENGINE_CORE)
        assert (event.result.patch, event.result.outcome) == ("one", PatchOutcome.APPLIED)
        assert desk.events.summaries()[-1] == "EngineCore 1 applied"
        write(desk.folder(one), settled(7, "two", "skipped", "anchor_missing"))
        await until(lambda: len(desk.events.results()) == 2)
        assert desk.book.get(one).summary == "EngineCore 1 applied, 1 skipped (anchor moved)"

    at_a_desk(tmp_path, work)


def test_what_changes_nothing_is_not_told_twice(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        one = engine()
        desk.book.begin(one)
        write(desk.folder(one), settled(7, "one"))
        await until(desk.events.results)
        write(desk.folder(one), settled(7, "one"), line(7, "role", role="Worker", rank=3))
        await until(lambda: desk.events.summaries()[-1:] == ["Worker 3 1 applied"])
        assert len(desk.events.results()) == 1

    at_a_desk(tmp_path, work)


def test_the_stage_is_the_first_word_of_the_api_server(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        one = engine()
        desk.book.begin(one)
        write(desk.folder(one), settled(7, "one"))
        await until(desk.events.results)
        assert desk.stages == []
        write(desk.folder(one), *(settled(8, name, role="APIServer") for name in ("one", "two")))
        await until(lambda: len(desk.events.results()) == 3)
        assert desk.stages == [(one.id, OVERLAY, "2 patches chosen")]

    at_a_desk(tmp_path, work)


@pytest.mark.parametrize(
    ("outcome", "reason", "said"),
    [
        ("skipped", "anchor_missing", "anchor moved"),
        ("failed", "raised", "raised an error"),
        ("reverted", None, "reverted"),
    ],
)
def test_a_required_patch_that_is_not_applied_ends_the_start(
    tmp_path: Path, outcome: str, reason: str | None, said: str
) -> None:
    async def work(desk: Desk) -> None:
        one = engine()
        desk.book.begin(one)
        write(desk.folder(one), settled(7, "two", outcome, reason, detail="boom", role="Worker", rank=1))
        problem = await desk.book.refusal(one.id)
        assert problem.reason is Reason.PATCH_REQUIRED_FAILED
        assert problem.message == f"The patch two is required and was not applied in Worker 1: {said}."
        assert problem.cause == "boom"
        # The same in the next process is the same refusal.
        write(desk.folder(one), settled(8, "two", outcome, reason))
        await until(lambda: len(desk.events.results()) == 2)

    at_a_desk(tmp_path, work)


def test_a_start_goes_on_when_the_required_patch_is_applied_and_another_is_not(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        one = engine()
        desk.book.begin(one)
        waiting = asyncio.create_task(desk.book.refusal(one.id))
        write(desk.folder(one), settled(7, "two"), settled(7, "one", "failed", "raised"))
        await until(lambda: len(desk.events.results()) == 2)
        await turns()
        assert not waiting.done()
        waiting.cancel()

    at_a_desk(tmp_path, work)


@pytest.mark.parametrize("planned", [None, PlannedPatches(digest="", chosen=())])
def test_an_engine_without_patches_has_no_ledger(tmp_path: Path, planned: PlannedPatches | None) -> None:
    async def work(desk: Desk) -> None:
        one = engine(planned=planned)
        desk.book.begin(one)
        assert not desk.folder(one).exists()
        said = desk.book.get(one)
        assert (said.engine, said.planned, said.processes) == (one.id, planned, ())
        waiting = asyncio.create_task(desk.book.refusal(one.id))
        await turns()
        assert not waiting.done()
        waiting.cancel()
        assert await desk.book.probe(one) == said
        desk.book.end(one.id)

    at_a_desk(tmp_path, work)


def test_the_end_takes_the_last_lines_along_and_leaves_no_folder(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        one = engine()
        desk.book.begin(one)
        write(desk.folder(one), settled(7, "one"), settled(7, "two"))
        desk.book.end(one.id)
        assert not desk.folder(one).exists()
        assert len(desk.events.results()) == 2
        assert desk.events.summaries() == ["EngineCore 2 applied"]
        assert desk.book.get(one).summary == "EngineCore 2 applied"
        assert (await desk.book.probe(one)).summary == "EngineCore 2 applied"
        desk.book.end(one.id)

    at_a_desk(tmp_path, work)


def test_of_engines_that_ended_the_newest_are_remembered(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        made = [engine(f"e{number}") for number in range(25)]
        for one in made:
            desk.book.begin(one)
            write(desk.folder(one), settled(7, "one"))
            desk.book.end(one.id)
        assert [desk.book.get(one).summary != "" for one in made] == [False] * 5 + [True] * 20

    at_a_desk(tmp_path, work)


def test_an_engine_that_is_taken_up_again_has_its_ledger_from_the_beginning(tmp_path: Path) -> None:
    one = engine()

    async def first_host(desk: Desk) -> None:
        desk.book.begin(one)
        write(desk.folder(one), settled(7, "one"))
        await until(desk.events.results)

    async def next_host(desk: Desk) -> None:
        desk.book.begin(one)
        assert desk.book.get(one).summary == "EngineCore 1 applied"

    at_a_desk(tmp_path, first_host)
    at_a_desk(tmp_path, next_host)


def test_a_probe_says_what_is_live_and_leaves_out_who_is_gone(home: Path) -> None:
    async def work(desk: Desk) -> None:
        one = engine()
        desk.book.begin(one)
        folder = desk.folder(one)
        alive, gone = str(folder / "7.sock"), str(folder / "8.sock")

        async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            patches = {"one": {"live": True, "hits": 4}, "two": {"live": False, "why": "elsewhere"}}
            writer.write(json.dumps({"pid": 7, "patches": patches}).encode())
            writer.close()

        server = await asyncio.start_unix_server(answer, alive)
        try:
            write(folder, *(settled(pid, name) for pid in (7, 8) for name in ("one", "two")))
            write(folder, line(7, "probe", socket=alive), line(8, "probe", socket=gone))
            said = await desk.book.probe(one)
        finally:
            server.close()
            await server.wait_closed()
            os.unlink(alive)
        seven, eight = said.processes
        probes = [result.probe for result in seven.results]
        assert [(p.live, p.hits, p.why) for p in probes if p] == [(True, 4, ""), (False, None, "elsewhere")]
        assert [result.probe for result in eight.results] == [None, None]
        assert isinstance(desk.events.all[-1], PatchSummaryEvent)

    at_a_desk(home, work)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        (tmp_path / "ledger").write_text("a file where the folder belongs")
        with pytest.raises(HostError) as raised:
            desk.book.begin(engine())
        assert raised.value.reason is Reason.NOT_WRITABLE

    at_a_desk(tmp_path, work)


def test_ledgers_of_starts_that_are_over_are_removed(tmp_path: Path) -> None:
    for plan in ("plan-old", "plan-alive"):
        write(ledger_folder(tmp_path, plan), settled(7, "one"))
    remove_stale_ledgers(tmp_path, {"plan-alive": object()})
    assert [path.name for path in (tmp_path / "ledger").iterdir()] == ["plan-alive"]
    remove_stale_ledgers(tmp_path / "nowhere", {})


class FakePlanner(PlanOperations):
    """A FAKE planner that remembers what it was asked for."""

    def __init__(self, request: LaunchRequest) -> None:
        self._request = request
        self.asked: list[LaunchRequest] = []

    def request(self, plan_id: str) -> LaunchRequest:
        assert plan_id == "plan-demo"
        return self._request

    async def plan(self, request: LaunchRequest) -> LaunchPlan:
        self.asked.append(request)
        return engine().plan


class FakeManager(EngineManager):
    """A FAKE manager with one engine."""

    def __init__(self, choice: PatchChoice | None = None) -> None:
        self.started: list[LaunchPlan] = []
        self.choice = choice or PatchChoice()

    def get(self, engine_id: str) -> Engine:
        assert engine_id == "engine-demo"
        found = engine()
        return found.model_copy(update={"plan": found.plan.model_copy(update={"choice": self.choice})})

    def start(self, plan: LaunchPlan) -> Engine:
        self.started.append(plan)
        return engine()


def test_start_without_of_a_preset_keeps_what_the_preset_leaves_out(tmp_path: Path) -> None:
    request = LaunchRequest(preset="p")

    async def work(desk: Desk) -> None:
        planner, manager = FakePlanner(request), FakeManager(PatchChoice(off=("x",)))
        await EnginePatchOperations(desk.book, manager, planner, lambda: None).start_without(
            "engine-demo", "one"
        )
        assert planner.asked == [request.model_copy(update={"patches": PatchChoice(off=("x", "one"))})]

    at_a_desk(tmp_path, work)


def test_start_without_is_the_same_request_without_the_patch(tmp_path: Path) -> None:
    request = LaunchRequest(model="m", patches=PatchChoice(off=("x",), on=("one", "y"), only=("one", "z")))

    async def work(desk: Desk) -> None:
        planner, manager = FakePlanner(request), FakeManager()
        await EnginePatchOperations(desk.book, manager, planner, lambda: None).start_without(
            "engine-demo", "one"
        )
        (asked,) = planner.asked
        assert asked == request.model_copy(
            update={"patches": PatchChoice(off=("x", "one"), on=("y",), only=("one", "z"))}
        )
        assert len(manager.started) == 1

    at_a_desk(tmp_path, work)
