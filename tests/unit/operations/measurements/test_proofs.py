"""The job of a proof over parts that are fakes, for there is no GPU; their order and the record are real."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from engine_host.bench import proof as parts
from engine_host.bench.proof import PATCH
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.store import Store
from engine_host.launch.proofs import KernelProofs
from engine_host.operations.measurements import proofs as module
from engine_host.operations.measurements.proofs import ProofOperations
from engine_host.protocol.bench.proofs import DecodeSpeed, Proof, ProofVerdict, ProveKernels, SelfTest
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import GpuAbsence
from engine_host.protocol.jobs import Job, JobState
from engine_host.protocol.launch.plans import LaunchRequest
from engine_host.telemetry.gpus import GpuReading
from tests.plan_samples import vllm_plan
from tests.unit.asynchronous import run
from tests.unit.launch.vllm_desk import Venv, gpu

GOOD = SelfTest(passed=True, shapes=4, worst_error=1e-3)
SPEED = DecodeSpeed(shape="128", ours=0.1, bf16=0.2, error=1e-3)
READING = GpuReading((gpu(0, used=1 << 30), gpu(1)), driver="580.1")

T = TypeVar("T")


class Desk:
    """The operations over one GPU that is not there; `tested`, `said` and `timed` are what parts answer."""

    def __init__(self, folder: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = store
        self.heads = [parts.HEAD_SIZE]
        self.tested: SelfTest | HostError = GOOD
        self.said: Callable[[bool], parts.Answered | HostError] = lambda drafts: parts.Answered(
            [[1], [2]], 9 * drafts, 3 * drafts
        )
        self.ran: list[str] = []
        self.requests: list[LaunchRequest] = []
        self.reading = READING
        self.running: list[Any] = []
        self.venv = Venv(Path("/r"), id="0.32.0-cuda", build="cuda")

        async def self_test(_tools: parts.Tools, _kv: str, _tell: Any) -> SelfTest:
            return self._answer("self-test", self.tested)

        async def make_model(_tools: parts.Tools) -> Path:
            return self._answer("model", Path("/m"))

        async def speed(_tools: parts.Tools, _kv: str) -> DecodeSpeed:
            return self._answer("speed", SPEED)

        async def ask(engine: Any, told: Callable[[int], None]) -> parts.Answered:
            told(40)
            return self._answer("answers", self.said(engine.drafts))

        @asynccontextmanager
        async def engine(plan: Any, _adapter: Any, _run: Path) -> AsyncIterator[Any]:
            drafts = plan.speculation == "mtp"
            ledger = folder / f"ledger-{drafts}"
            ledger.mkdir(exist_ok=True)
            told = {
                "patch": PATCH,
                "values": {"head_sizes": self.heads},
                "detail": "the kernels for Hopper run",
            }
            where = {"v": 1, "at": 1.0, "pid": 7, "role": "EngineCore"}
            lines = ({"event": "settled", "patch": PATCH, "outcome": "applied"}, {"event": "note", **told})
            text = "".join(json.dumps(where | one) + "\n" for one in lines)
            (ledger / "7.jsonl").write_text(text, encoding="utf-8")
            yield SimpleNamespace(plan=plan, drafts=drafts, ready_after=1.0, ledger=ledger)

        for name, part in (("self_test", self_test), ("make_model", make_model), ("speed", speed)):
            monkeypatch.setattr(parts, name, part)
        monkeypatch.setattr(parts, "ask", ask)
        monkeypatch.setattr(module, "temporary_engine", engine)

    def _answer(self, name: str, found: T | HostError) -> T:
        self.ran.append(name)
        if isinstance(found, HostError):
            raise found
        return found

    async def plan(self, request: LaunchRequest) -> Any:
        self.requests.append(request)
        return vllm_plan(speculation=str(request.overrides.speculation))

    async def _environment(self, _wanted: str | None) -> Venv:
        return self.venv

    def prove(self, asked: ProveKernels | None = None) -> Job:
        async def work() -> Job:
            events = EventLog()
            jobs = JobRunner(events.publish, self.store)
            proofs = KernelProofs(self.store, lambda: "k1")
            operations = ProofOperations(
                jobs,
                events,
                LogBuffer(events.publish),
                self,  # type: ignore[arg-type]
                proofs,
                lambda: self.reading,
                self._environment,
                lambda: self.running,
                Path("/run"),
            )
            job = await jobs.ended((await operations.prove(asked or ProveKernels())).id)
            self.page = await operations.page()
            return job

        return run(work())


@pytest.fixture
def desk(home: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(home, Store(home / "s.db"), monkeypatch)


def test_a_proof_runs_its_parts_and_is_kept(desk: Desk) -> None:
    job = desk.prove()
    assert job.state is JobState.DONE
    made = Proof.model_validate(job.result)
    assert (made.verdict, made.why) == (ProofVerdict.RIGHT, "")
    assert made.summary() == "self-test ok, 2 of 2 answers equal, 2.0 × bf16"
    assert (made.gpu, made.uuid, made.driver, made.vllm) == ("H200", "GPU-1", "580.1", "0.32.0")
    assert desk.ran == ["self-test", "model", "answers", "answers", "speed"]
    assert {one.gpus for one in desk.requests} == {("GPU-1",)}
    assert [one.id for one in desk.page.proofs] == [made.id]
    assert job.command == "sndr prove --gpu GPU-1"


def test_wrong_kernels_are_neither_asked_nor_timed(desk: Desk) -> None:
    desk.tested = SelfTest(passed=False, shapes=4, why="off by 0.5")
    made = Proof.model_validate(desk.prove().result)
    assert (made.verdict, made.why) == (ProofVerdict.WRONG, "the self-test failed: off by 0.5")
    assert desk.ran == ["self-test"]
    desk.tested, desk.ran = GOOD, []
    desk.said = lambda drafts: parts.Answered([[1], [2 + drafts]], 9, 3)
    made = Proof.model_validate(desk.prove().result)
    assert made.verdict is ProofVerdict.WRONG
    assert "speed" not in desk.ran


def test_a_part_that_cannot_be_run_leaves_the_others_and_no_verdict(desk: Desk) -> None:
    desk.said = lambda _drafts: HostError(Reason.ENGINE_CRASHED, "There is no FlashAttention 2.")
    made = Proof.model_validate(desk.prove().result)
    assert made.verdict is ProofVerdict.UNDECIDED
    assert "There is no FlashAttention 2." in made.why
    assert desk.ran[-1] == "speed"
    assert made.speed == SPEED


def test_answers_of_other_heads_or_other_kernels_prove_nothing(desk: Desk) -> None:
    assert Proof.model_validate(desk.prove().result).answers.kernels == "the kernels for Hopper run"  # type: ignore[union-attr]
    for heads in ([64], [64, 128], []):
        desk.heads = heads
        made = Proof.model_validate(desk.prove().result)
        assert (made.verdict, made.answers) == (ProofVerdict.UNDECIDED, None)
        assert "does not run these kernels on heads of 128" in made.why


def test_what_cannot_be_proven_is_refused_at_once(desk: Desk) -> None:
    def refused(asked: ProveKernels | None = None) -> Reason:
        with pytest.raises(HostError) as raised:
            desk.prove(asked)
        return raised.value.reason

    assert refused(ProveKernels(gpu="7; rm -rf /")) is Reason.NOT_FOUND
    desk.running = [SimpleNamespace(name="demo", id="e1")]
    assert refused() is Reason.CONFLICT
    desk.running = []
    desk.venv = Venv(Path("/r"))
    assert refused() is Reason.ENGINE_UNUSABLE
    desk.reading = GpuReading(absence=GpuAbsence.NO_DRIVER, detail="no driver")
    assert refused() is Reason.NOT_FOUND
    assert desk.ran == []
