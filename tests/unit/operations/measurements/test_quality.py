"""The job that measures KV types, over engines that are fakes; tests/integration has a real one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.store import Store
from engine_host.operations.measurements import quality as module
from engine_host.operations.measurements.quality import QualityOperations
from engine_host.protocol.bench.quality import MeasureQuality, QualityReport
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobState
from engine_host.protocol.launch.plans import EngineKind, LaunchRequest
from tests.plan_samples import plain_plan, vllm_plan
from tests.unit.asynchronous import run
from tests.unit.bench.quality.test_measuring import FakeSubject
from tests.unit.launch.vllm_desk import Venv

SMALL: dict[str, Any] = {"positions": 64, "context": 128, "answers": 1, "answer_tokens": 4}


class Desk:
    """The operations over plans and engines that are not there; a type in `broken` does not start."""

    def __init__(self, store: Store, texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = store
        self.texts = texts
        self.requests: list[LaunchRequest] = []
        self.broken: set[str] = set()
        self.running: list[Any] = []
        self.format = "GGUF"
        self.variables: list[dict[str, str]] = []
        self.venv = Venv(Path("/r"), id="0.32.0-cuda", build="cuda")

        @asynccontextmanager
        async def engine(plan: Any, _adapter: Any, _run: Path, variables: Any) -> AsyncIterator[Any]:
            self.variables.append(dict(variables))
            if plan.name in self.broken:
                raise HostError(Reason.ENGINE_CRASHED, f"{plan.name} is not for this GPU.")
            yield plan

        def subject(started: Any, _top: int) -> FakeSubject:
            return FakeSubject(0.9 if started.name in {"f16", "auto"} else 0.8, [1, 2])

        monkeypatch.setattr(module, "temporary_engine", engine)
        monkeypatch.setattr(module, "VllmSubject", subject)
        monkeypatch.setattr(module, "LlamaCppSubject", subject)

    async def plan(self, request: LaunchRequest) -> Any:
        self.requests.append(request)
        make = vllm_plan if request.engine is EngineKind.VLLM else plain_plan
        kv = request.overrides.kv_cache_dtype or request.overrides.kv_type_k
        return make(name=kv, engine=request.engine)

    async def _model(self, _name: str, _formats: Any) -> Any:
        return SimpleNamespace(
            info=SimpleNamespace(vocabulary=200, hybrid=False), file=SimpleNamespace(format=self.format)
        )

    async def _environment(self, _wanted: str | None) -> Venv:
        return self.venv

    def measure(self, **asked: Any) -> Job:
        async def work() -> Job:
            events = EventLog()
            jobs = JobRunner(events.publish, self.store)
            operations = QualityOperations(
                jobs,
                events,
                LogBuffer(events.publish),
                self.store,
                self,  # type: ignore[arg-type]
                self._model,
                self._environment,
                lambda: self.running,
                lambda: "a machine",
                lambda: self.texts,
                Path("/run"),
            )
            started = await operations.measure(MeasureQuality.model_validate(SMALL | asked))
            job = await jobs.ended(started.id)
            self.page = operations.page()
            return job

        return run(work())


@pytest.fixture
def desk(home: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    texts = home / "texts"
    texts.mkdir()
    for name in ("quality.txt", "quality-demo.txt"):
        (texts / name).write_text(name[0] * 600)
    return Desk(Store(home / "s.db"), texts, monkeypatch)


def test_the_bundled_model_is_measured_with_llama_cpp_and_kept(desk: Desk) -> None:
    job = desk.measure()
    assert job.state is JobState.DONE
    report = QualityReport.model_validate(job.result)
    assert [row.kv for row in report.rows] == ["f16", "q8_0", "q4_0"]
    assert report.text == "quality-demo.txt"
    assert report.rows[0].divergence is None
    assert report.rows[1].divergence is not None
    assert {one.overrides.kv_type_v for one in desk.requests} == {"f16", "q8_0", "q4_0"}
    assert [one.id for one in desk.page.reports] == [report.id]
    assert report.command.startswith("sndr bench quality sndr-demo --engine llama.cpp --positions 64")


def test_vllm_reads_in_chunks_and_a_type_may_fail(desk: Desk) -> None:
    desk.format, desk.broken = "safetensors", {"fp8"}
    job = desk.measure(
        model="/m/a b",
        kv=("fp8", "turboquant_k8v4+all-layers"),
        overrides=Overrides(extra_arguments=("--x=1",)).model_dump(),
    )
    report = QualityReport.model_validate(job.result)
    assert [row.problem is None for row in report.rows] == [True, False, True]
    assert report.text == "quality.txt"
    assert "--set extra_arguments=--x=1" in report.command
    assert "'/m/a b'" in report.command
    last = desk.requests[-1]
    assert last.patches.on == ("turboquant-boundary-layers",)
    assert last.overrides.batched_tokens == 128
    assert last.overrides.extra_arguments == ("--x=1", "--max-logprobs=64")
    assert desk.requests[0].patches.off == ("turboquant-boundary-layers",)


def test_on_the_cpu_types_are_rounded_by_a_patch_that_says_so(desk: Desk) -> None:
    desk.format, desk.venv = "safetensors", Venv(Path("/r"))
    report = QualityReport.model_validate(desk.measure(model="m").result)
    assert [row.kv for row in report.rows] == ["auto", "fp8", "turboquant_k8v4", "turboquant_4bit_nc"]
    assert [bool(row.how) for row in report.rows] == [False, True, True, True]
    assert [one.get("SNDR_KV_ROUND_TRIP") for one in desk.variables] == [None, "fp8", "k8v4", "4bit_nc"]
    assert {one.overrides.kv_cache_dtype for one in desk.requests} == {"auto"}
    assert desk.requests[-1].patches.on == ("cpu-kv-round-trip",)
    other = QualityReport.model_validate(desk.measure(model="m", kv=("nvfp4",)).result)
    assert other.rows[1].problem is not None
    assert other.rows[1].problem.reason is Reason.KV_TYPE_UNSUPPORTED


def test_without_the_reference_there_is_no_figure(desk: Desk) -> None:
    desk.broken = {"f16"}
    job = desk.measure()
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert desk.page.reports == ()


def test_what_cannot_be_read_or_run_is_refused_at_once(desk: Desk, home: Path) -> None:
    def refused(**asked: Any) -> Reason:
        with pytest.raises(HostError) as raised:
            desk.measure(**asked)
        return raised.value.reason

    assert refused(text=str(home / "none")) is Reason.BAD_REQUEST
    (home / "bytes").write_bytes(b"\xff\xfe\x00")
    assert refused(text=str(home / "bytes")) is Reason.BAD_REQUEST
    desk.format, desk.running = "safetensors", [SimpleNamespace(name="demo", id="e1")]
    assert refused(model="m") is Reason.CONFLICT
