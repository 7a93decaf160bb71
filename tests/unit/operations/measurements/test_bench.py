"""The bench lab of a host: which engine is meant, and the runs that are kept."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine_host.bench.kept import runs as kept_runs
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.operations.measurements import bench
from engine_host.operations.measurements.bench import BenchOperations
from engine_host.protocol.bench.comparison import CompareFile, CompareRuns
from engine_host.protocol.bench.lab import LabAsk, LabKept, LabPage, LabStep, RunBench, WorkloadName
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.telemetry.gpus import GpuReading
from tests.plan_samples import plain_plan
from tests.unit.asynchronous import run
from tests.unit.cli.bench.test_lab import a_run

Desk = Callable[..., BenchOperations]


WOKEN: list[str] = []


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The operations over engines that are not there."""
    monkeypatch.setenv("SNDR_HOME", str(tmp_path))
    folders = Folders.resolve()

    def made(*engines: Engine) -> BenchOperations:
        events = EventLog()
        jobs = JobRunner(events.publish, Store(folders.store))
        return BenchOperations(
            jobs, events, LogBuffer(events.publish), folders, lambda: engines, GpuReading, WOKEN.append
        )

    return made


def engine(name: str, state: EngineState = EngineState.READY) -> Engine:
    return Engine(
        id=f"id-{name}",
        name=name,
        engine="llama.cpp",
        server="prebuilt",
        server_version="b1",
        state=state,
        plan=plain_plan(name=name),
        created_at=1.0,
    )


@pytest.mark.parametrize(
    ("engines", "asked", "reason"),
    [
        ((), {}, Reason.NO_ENGINE_RUNS),
        ((engine("a"),), {"engine": "nobody"}, Reason.NOT_FOUND),
        ((engine("a"), engine("b")), {}, Reason.CONFLICT),
        ((engine("a", EngineState.STARTING),), {"engine": "a"}, Reason.ENGINE_NOT_READY),
        ((engine("a"),), {"engine": "a", "against": "id-a"}, Reason.CONFLICT),
        ((engine("a"),), {"engine": "a", "against": "b"}, Reason.NOT_FOUND),
    ],
)
def test_what_cannot_be_measured_is_refused(
    desk: Desk, engines: tuple[Engine, ...], asked: dict[str, Any], reason: Reason
) -> None:
    with pytest.raises(HostError) as raised:
        run(desk(*engines).run(RunBench(workload=WorkloadName.QUICK, **asked)))
    assert raised.value.reason is reason
    assert raised.value.problem.fix is not None
    if reason is Reason.NOT_FOUND:
        assert raised.value.problem.cause == "These run: a."


def test_kept_runs_are_listed_compared_and_removed(desk: Desk) -> None:
    operations = desk()
    folder = kept_runs.folder_of(Folders.resolve().data)
    first, second = a_run(), a_run(id="20260103-000000-quick-cccc")
    kept_runs.save(folder, first)
    kept_runs.save(folder, second)
    (folder / "20260102-000000-quick-bbbb.json").write_text("{")

    async def work() -> LabPage:
        assert [one.id for one in (await operations.page()).runs] == [second.id, first.id]
        found = await operations.compare(CompareRuns(a="aaaa", b="latest"))
        assert (found.a.id, found.b.id) == (first.id, second.id)
        assert await operations.show("cccc") == second
        await operations.remove("bbbb")
        return await operations.remove(first.id)

    left = run(work())
    assert ([one.id for one in left.runs], left.unreadable) == ([second.id], ())
    with pytest.raises(HostError, match="There is no run"):
        run(operations.remove("../secret"))


def test_a_run_of_somebody_else_stands_on_either_side_and_is_not_kept(desk: Desk) -> None:
    operations = desk()
    own, theirs = a_run(), a_run(id="20260103-000000-quick-cccc")
    kept_runs.save(kept_runs.folder_of(Folders.resolve().data), own)
    for first in (True, False):
        found = run(operations.compare_file(CompareFile(run=theirs, other="latest", first=first)))
        assert (found.a.id, found.b.id) == ((theirs.id, own.id) if first else (own.id, theirs.id))
    assert [one.id for one in run(operations.page()).runs] == [own.id]


@pytest.mark.parametrize(
    ("asked", "command"),
    [
        ({"engine": "a b"}, "sndr bench run quick --engine 'a b'"),
        ({"seed": 7, "rounds": 3}, "sndr bench run quick --rounds 3 --seed 7"),
        ({"engine": "a", "against": "b"}, "sndr bench compare a b --repeat 24 --workload quick"),
    ],
)
def test_a_run_says_the_command_that_does_the_same(asked: dict[str, Any], command: str) -> None:
    assert RunBench(workload=WorkloadName.QUICK, **asked).command == command


def test_engines_that_are_measured_are_woken_at_the_beginning_and_with_each_round(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    WOKEN.clear()

    async def measured(ask: LabAsk, _log: LogBuffer, tell: Callable[[LabStep], None]) -> LabKept:
        assert WOKEN == ["id-a", "id-b"]
        tell(LabStep(part="story", number=1, of=1, progress=0.5, words="FAKE"))
        return LabKept(ids=("x",), complete=True)

    monkeypatch.setattr(bench, "measured", measured)

    async def work() -> None:
        operations = desk(engine("a"), engine("b"))
        job = await operations.run(RunBench(workload=WorkloadName.QUICK, engine="a", against="b"))
        await operations._jobs.ended(job.id)

    run(work())
    assert WOKEN == ["id-a", "id-b"] * 2


@pytest.mark.parametrize(
    ("workload", "said"),
    [(WorkloadName.QUICK, "the first warm-up"), (WorkloadName.AGENTIC, "the first request")],
)
def test_a_warm_up_is_announced_only_where_there_is_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, workload: WorkloadName, said: str
) -> None:
    async def measured(_ask: LabAsk, _log: LogBuffer, _tell: Callable[[LabStep], None]) -> LabKept:
        return LabKept(ids=("x",), complete=True)

    monkeypatch.setattr(bench, "measured", measured)

    async def work() -> str:
        one = engine("a")
        operations = desk(one.model_copy(update={"plan": one.plan.model_copy(update={"context": 32_768})}))
        job = await operations.run(RunBench(workload=workload))
        step = (await operations._jobs.ended(job.id)).step
        return step.detail if step is not None else ""

    assert run(work()) == said
