"""Sweeps: the starts that are made, what is kept of them, and that the engine is restored."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from engine_host.bench.kept import runs as kept_runs
from engine_host.bench.kept import sweeps as kept_sweeps
from engine_host.client.bench_reports.sweep import arm_table, memory_table, state_text
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.operations.measurements import sweeps
from engine_host.operations.measurements.lab_process import CutShortError
from engine_host.operations.measurements.sweep_values import arms_of, request_of, values_of
from engine_host.protocol.bench.lab import LabAsk, LabKept
from engine_host.protocol.bench.sweeps import ArmMemory, RunSweep, SweepKind, SweepReport
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest
from engine_host.protocol.patches import PatchChoice
from engine_host.telemetry.gpus import GpuReading
from tests.plan_samples import plain_plan
from tests.unit.asynchronous import run
from tests.unit.cli.bench.test_lab import a_run


class FakeEngines:
    """FAKE engines and plans: starts are recorded, and one of a refused type fails."""

    def __init__(self, jobs: JobRunner) -> None:
        self.jobs = jobs
        self.started: list[LaunchRequest] = []
        self.engines = [self._engine("first", plain_plan(name="a"))]
        self.large: tuple[str, ...] = ()
        self._requests = {self.engines[0].plan.id: LaunchRequest(model="m", keep=True)}

    def _engine(self, name: str, plan: LaunchPlan, job: str = "") -> Engine:
        return Engine(
            id=name,
            name="a",
            engine="llama.cpp",
            server="prebuilt",
            server_version="b1",
            state=EngineState.READY,
            plan=plan,
            created_at=1.0,
            job=job or None,
        )

    def alive(self) -> list[Engine]:
        return self.engines[-1:]

    def get(self, engine_id: str) -> Engine:
        return next(one for one in self.engines if one.id == engine_id)

    def request(self, plan_id: str) -> LaunchRequest:
        return self._requests[plan_id]

    async def plan(self, request: LaunchRequest) -> LaunchPlan:
        if "odd" in {request.overrides.kv_type_k, request.overrides.speculation}:
            raise HostError(Reason.SETTING_INVALID, "There is no type odd.")
        if request.overrides.kv_type_k in self.large:
            raise HostError(Reason.OUT_OF_MEMORY, "It does not fit.")
        plan = plain_plan(name="a").model_copy(update={"id": f"plan-{len(self._requests)}"})
        self._requests[plan.id] = request
        return plan

    def start(self, plan: LaunchPlan) -> Engine:
        async def work(_control: JobControl) -> dict[str, Any]:
            return {}

        self.started.append(self._requests[plan.id])
        job = self.jobs.start(JobKind.ENGINE_START, "Start a", "engine memory", "", work)
        self.engines.append(self._engine(f"engine-{len(self.started)}", plan, job.id))
        return self.engines[-1]

    def stop(self, engine_id: str, *, now: bool) -> Engine:
        assert now
        return self.get(engine_id)


HELD = ArmMemory(
    predicted_kv_cache_bytes=96 << 20, told_kv_cache_bytes=97 << 20, held_main_memory_bytes=1 << 30
)


async def held(_engine: Engine) -> ArmMemory:
    return HELD


async def swept(
    monkeypatch: pytest.MonkeyPatch, asked: RunSweep, *, cancel: bool = False, large: tuple[str, ...] = ()
) -> tuple[FakeEngines, Job, SweepReport]:
    folders = Folders.resolve()
    events = EventLog()
    jobs = JobRunner(events.publish, Store(folders.store))
    engines = FakeEngines(jobs)
    engines.large = large
    measuring = asyncio.Event()
    number = 0

    async def measured(ask: LabAsk, *_others: object) -> LabKept:
        nonlocal number
        number += 1
        one = a_run(id=f"20260101-00000{number}-quick-aaaa", complete=not cancel)
        kept_runs.save(kept_runs.folder_of(folders.data), one)
        if cancel:
            measuring.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise CutShortError(LabKept(ids=(one.id,), complete=False), cancelled=True) from None
        return LabKept(ids=(one.id,), complete=True)

    monkeypatch.setattr(sweeps, "measured", measured)
    operations = sweeps.SweepOperations(
        jobs,
        events,
        LogBuffer(events.publish),
        folders,
        engines,  # type: ignore[arg-type]
        engines,  # type: ignore[arg-type]
        GpuReading,
        lambda: None,
        held,
    )
    job = await operations.run(asked)
    if cancel:
        await measuring.wait()
        jobs.cancel(job.id)
    ended = await jobs.ended(job.id)
    return engines, ended, await operations.show("latest")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNDR_HOME", str(tmp_path))


def test_each_value_is_started_and_the_engine_restored_also_behind_one_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = RunSweep(kind=SweepKind.KV, values=("f16", "q4_0", "q8_0"))
    engines, job, report = run(swept(monkeypatch, asked, large=("q4_0",)))
    assert job.state is JobState.DONE
    assert [one.overrides.kv_type_v for one in engines.started] == ["f16", "q8_0", None]
    assert [one.keep for one in engines.started] == [False, False, True]
    assert [(arm.value, arm.problem is None) for arm in report.sweep.arms] == [
        ("f16", True),
        ("q4_0", False),
        ("q8_0", True),
    ]
    assert (report.sweep.complete, report.sweep.restored, len(report.runs)) == (False, True, 2)
    # Nothing was started for it, so no start failed.
    assert state_text(report.sweep) == "1 of 3 refused before a start"
    assert arm_table(report)[1][1][-1] == "refused: It does not fit."
    tried = report.sweep.model_copy(
        update={"arms": tuple(arm.model_copy(update={"refused": False}) for arm in report.sweep.arms)}
    )
    assert state_text(tried) == "1 of 3 starts failed"
    assert arm_table(report.model_copy(update={"sweep": tried}))[1][1][-1] == "failed: It does not fit."
    # Of what nobody told there is no column.
    headings, rows = memory_table(report)
    assert headings == ["value", "KV cache, predicted", "KV cache, told", "main memory, held"]
    assert rows == [[value, "96.0 MiB", "97.0 MiB", "1.0 GiB"] for value in ("f16", "q8_0")]
    assert {one.value for one in report.changes} == {"q8_0"}
    assert any("not judged: struck" in one.words for one in report.changes)


@pytest.mark.parametrize(
    ("asked", "large"),
    [
        (RunSweep(kind=SweepKind.KV, values=("f16", "odd")), ()),
        (RunSweep(kind=SweepKind.KV), ("f16", "q8_0", "q4_0")),
        # What is left is one, and nothing to compare it with.
        (RunSweep(kind=SweepKind.SPECULATION, speculation="odd"), ()),
    ],
)
def test_what_cannot_be_started_is_refused_before_the_engine_is_stopped(
    monkeypatch: pytest.MonkeyPatch, asked: RunSweep, large: tuple[str, ...]
) -> None:
    started: list[LaunchPlan] = []
    monkeypatch.setattr(FakeEngines, "start", lambda _self, plan: started.append(plan))
    with pytest.raises(HostError, match="cannot be started, so a was left as it is"):
        run(swept(monkeypatch, asked, large=large))
    assert not started


def test_a_cancelled_sweep_is_partial_and_the_engine_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    engines, job, report = run(swept(monkeypatch, RunSweep(kind=SweepKind.KV), cancel=True))
    assert (job.state, job.error is not None) == (JobState.CANCELLED, True)
    assert (report.sweep.complete, report.sweep.ended_by) == (False, "cancelled")
    assert [(arm.value, arm.complete, bool(arm.run)) for arm in report.sweep.arms] == [("f16", False, True)]
    assert (report.sweep.restored, engines.started[-1].overrides.kv_type_k) == (True, None)
    with pytest.raises(HostError, match="There is no sweep"):
        kept_sweeps.report(kept_runs.folder_of(Folders.resolve().data), "../x")


def test_where_no_sweep_was_kept_the_latest_says_so_and_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="No sweep of speculation, kv or patch was kept here yet") as caught:
        kept_sweeps.report(tmp_path, "latest")
    fix = caught.value.problem.fix
    assert fix is not None
    assert (caught.value.reason, fix.command) == (Reason.NOT_FOUND, "sndr bench sweep --help")


def test_the_values_make_the_starts() -> None:
    plan = plain_plan(name="a")
    request = LaunchRequest(model="m", patches=PatchChoice(on=("p", "q")))
    asked = RunSweep(kind=SweepKind.SPECULATION, speculation="ngram-mod")
    assert values_of(asked, plan) == ("0", "1", "2", "3")
    none, two = (request_of(asked, plan, request, value).overrides for value in ("0", "2"))
    assert (none.speculation, none.draft_tokens) == ("off", None)
    assert (two.speculation, two.draft_tokens) == ("ngram-mod", 2)
    with pytest.raises(HostError, match="without speculation") as refused:
        values_of(RunSweep(kind=SweepKind.SPECULATION), plan)
    assert refused.value.problem.fix is not None
    assert refused.value.problem.fix.command == "sndr bench sweep speculation --speculation ngram-mod"
    patch = RunSweep(kind=SweepKind.PATCH, values=("p",))
    assert arms_of(patch, ("off", "on")) == ("off", "on", "on", "off")
    assert request_of(patch, plan, request, "off").patches == PatchChoice(on=("q",), off=("p",))
    assert request_of(patch, plan, request, "on").patches == PatchChoice(on=("q", "p"))
    with pytest.raises(HostError, match="no patches"):
        values_of(patch, plan)


@pytest.mark.parametrize(
    "asked",
    [
        {"kind": "patch"},
        {"kind": "speculation", "values": ("17",)},
        {"kind": "speculation", "values": ("x",)},
        {"kind": "kv", "values": ("f16", "f16")},
    ],
)
def test_values_that_are_none_are_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        RunSweep(**asked)
