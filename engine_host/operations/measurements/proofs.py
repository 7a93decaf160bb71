"""Proofs of the TurboQuant kernels: a job that makes one on a GPU of this machine, and those kept."""

import asyncio
import os
import secrets
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from engine_host.bench import proof as parts
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.engines.temporary import TemporaryEngine, temporary_engine
from engine_host.engines.vllm.status import VllmAdapter
from engine_host.launch.dependencies import Environment
from engine_host.launch.proofs import KernelProofs
from engine_host.operations.performs import performs
from engine_host.operations.plans import PlanOperations
from engine_host.overlay.ledger import LedgerReader
from engine_host.protocol.base import Severity
from engine_host.protocol.bench.proofs import (
    DecodeSpeed,
    EqualAnswers,
    Proof,
    ProofPage,
    ProofVerdict,
    ProveKernels,
    SelfTest,
)
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.events import NoticeEvent, ServersChangedEvent
from engine_host.protocol.host import Gpu
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan
from engine_host.protocol.operations import table as ops
from engine_host.telemetry.gpus import GpuReading

T = TypeVar("T")
_STEPS = 4
_TITLES = ("Self-test of the kernels", "Make a model", "Answers with MTP on and off", "Speed against bf16")


class ProofOperations:
    """Proves the kernels, one GPU at a time, and remembers what came out."""

    def __init__(
        self,
        jobs: JobRunner,
        events: EventLog,
        log_buffer: LogBuffer,
        plans: PlanOperations,
        proofs: KernelProofs,
        reading: Callable[[], GpuReading],
        find_environment: Callable[[str | None], Awaitable[Environment]],
        running: Callable[[], Sequence[Engine]],
        run_folder: Path,
    ) -> None:
        self._jobs = jobs
        self._events = events
        self._log_buffer = log_buffer
        self._plans = plans
        self._proofs = proofs
        self._reading = reading
        self._find_environment = find_environment
        self._running = running
        self._run_folder = run_folder

    @performs(ops.PROOFS)
    async def page(self) -> ProofPage:
        """Return the proofs of this machine, newest first."""
        reading = await asyncio.to_thread(self._reading)
        return ProofPage(seq=self._events.seq, proofs=tuple(self._proofs.all(reading.driver or "")))

    @performs(ops.PROVE)
    async def prove(self, asked: ProveKernels) -> Job:
        """Prove the kernels as a job whose result is a Proof.

        Raises HostError: not_found without such a GPU or vLLM, engine_unusable for vLLM's CPU build, conflict
        while an engine runs.
        """
        reading = await asyncio.to_thread(self._reading)
        gpu = _chosen(reading, asked.gpu)
        environment = await self._find_environment(asked.installation)
        if environment.build != "cuda":
            raise HostError(
                Reason.ENGINE_UNUSABLE,
                tr("{environment} runs on the processor.", environment=environment.label),
                cause="The kernels are for NVIDIA GPUs.",
                fix=Fix(text="Install vLLM for CUDA.", command="sndr engine install vllm --build cuda"),
                evidence={"installation": environment.id},
            )
        if running := list(self._running()):
            raise HostError(
                Reason.CONFLICT,
                tr("{running} is running.", running=running[0].name),
                cause="A proof measures a GPU, and wants it for itself for some minutes.",
                fix=Fix(text="Stop it first.", command="sndr stop"),
                evidence={"engine": running[0].id},
            )
        blank = Proof(
            id=f"proof-{secrets.token_hex(4)}",
            at=time.time(),
            gpu=gpu.name,
            uuid=gpu.uuid,
            compute_capability=gpu.compute_capability or "",
            driver=reading.driver or "",
            vllm=environment.version,
            installation=environment.id,
            kernels=self._proofs.kernels(),
            kv_cache_dtype=asked.kv_cache_dtype,
            verdict=ProofVerdict.UNDECIDED,
            command=asked.model_copy(update={"gpu": gpu.uuid}).command,
        )
        job = self._jobs.start(
            JobKind.KERNEL_PROOF,
            tr("Prove TurboQuant on {gpu}", gpu=gpu.name),
            "engine memory",
            blank.command,
            lambda control: self._prove(control, blank, gpu, environment),
        )
        text = tr(
            "TurboQuant is being proven on {gpu}, which takes some minutes: sndr jobs follows it.",
            gpu=gpu.name,
        )
        self._events.publish(NoticeEvent(key=job.id, severity=Severity.INFO, text=text))
        return job

    async def _prove(
        self, control: JobControl, blank: Proof, gpu: Gpu, environment: Environment
    ) -> dict[str, Any]:
        began = time.monotonic()
        control.left = tr("Nothing of it was kept: a proof that was cut off says nothing.")
        variables = {"CUDA_VISIBLE_DEVICES": str(gpu.index), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        with tempfile.TemporaryDirectory(prefix="sndr-") as name:
            tools = parts.Tools(
                environment.python, environment.site_packages, variables, Path(name), dict(os.environ)
            )
            run = _Run(control, self._log_buffer, tools, blank.kv_cache_dtype)
            tested = await run.attempt(1, run.self_test)
            equal = None
            if tested is None or tested.passed:
                model = await run.attempt(2, run.model)
                if model is not None:
                    equal = await run.attempt(3, lambda: self._equal(run, model, environment, gpu))
            # Wrong kernels are not timed.
            right = (tested is None or tested.passed) and (equal is None or equal.equal == equal.of)
            speed = await run.attempt(4, run.speed) if right else None
        verdict, why = parts.judged(tested, equal, run.failures)
        update = {
            "verdict": verdict,
            "why": why,
            "self_test": tested,
            "answers": equal,
            "speed": speed,
            "seconds": round(time.monotonic() - began, 1),
        }
        made = blank.model_copy(update=update)
        self._proofs.keep(made)
        # Plans have something else to say now.
        self._events.publish(ServersChangedEvent())
        control.left = ""
        return made.model_dump(mode="json")

    async def _equal(self, run: "_Run", model: Path, environment: Environment, gpu: Gpu) -> EqualAnswers:
        """Ask two starts side by side, MTP on and off. Raises HostError."""
        found = await asyncio.gather(
            *(self._answers(run, model, environment, gpu, drafts=drafts) for drafts in (True, False)),
            return_exceptions=True,
        )
        for one in found:
            if isinstance(one, BaseException):
                raise one
        first, second = (one for one in found if isinstance(one, parts.Answered))
        return parts.compared(first, second)

    async def _answers(
        self,
        run: "_Run",
        model: Path,
        environment: Environment,
        gpu: Gpu,
        *,
        drafts: bool,
    ) -> parts.Answered:
        asked = parts.start(model, environment.id, gpu.uuid, run.kv, drafts=drafts)
        plan = await self._plans.plan(asked)
        refuse_errors(plan)
        where = "with MTP" if drafts else "without MTP"
        run.tell(3, f"{where}: starting the engine")
        async with temporary_engine(plan, VllmAdapter(), self._run_folder) as engine:
            run.tell(3, f"{where}: ready after {engine.ready_after:.0f} s")
            kernels = await asyncio.to_thread(_kernels_of, engine)
            answered = await parts.ask(engine, lambda done: run.tell(3, f"{where}: answer {done} of 40"))
            return replace(answered, kernels=kernels)


class _Run:
    """One proof while it is made: a part that cannot be run does not keep the next from running."""

    def __init__(self, control: JobControl, log_buffer: LogBuffer, tools: parts.Tools, kv: str) -> None:
        self._control = control
        self._log_buffer = log_buffer
        self._tools = tools
        self.kv = kv
        self.failures: list[str] = []

    def tell(self, step: int, detail: str) -> None:
        self._control.step(step, _STEPS, _TITLES[step - 1], detail)

    async def attempt(self, step: int, part: Callable[[], Awaitable[T]]) -> T | None:
        self.tell(step, "")
        try:
            found = await part()
        except HostError as error:
            self.failures.append(error.problem.sentence())
            said = error.problem.evidence.get("said") or error.problem.evidence.get("lines") or ()
            self._log_buffer.add("proof", [error.problem.sentence(), *map(str, said)])
            return None
        if isinstance(found, BaseModel):
            self._log_buffer.add("proof", [f"{_TITLES[step - 1]}: {found.model_dump_json()}"])
        return found

    async def self_test(self) -> SelfTest:
        return await parts.self_test(self._tools, self.kv, lambda line: self.tell(1, line[:200]))

    async def model(self) -> Path:
        return await parts.make_model(self._tools)

    async def speed(self) -> DecodeSpeed:
        return await parts.speed(self._tools, self.kv)


def _kernels_of(engine: TemporaryEngine) -> str:
    chosen = engine.plan.patches.chosen if engine.plan.patches is not None else ()
    ledger = LedgerReader(engine.ledger, chosen)
    ledger.read()
    return parts.kernels_of(ledger.processes())


def refuse_errors(plan: LaunchPlan) -> None:
    """Raise HostError with the first finding that stops a start."""
    for finding in plan.findings:
        if finding.severity is Severity.ERROR:
            raise HostError(
                finding.reason or Reason.UNSUPPORTED,
                finding.message,
                fix=finding.fix,
                evidence={"finding": finding.id},
            )


def _chosen(reading: GpuReading, wanted: str | None) -> Gpu:
    """The GPU that was named by its UUID, number or the end of its UUID; else the freest."""
    if not reading.gpus:
        raise HostError(
            Reason.NOT_FOUND,
            "There is no NVIDIA GPU here.",
            cause=reading.detail,
            fix=Fix(text="See what the program sees.", command="sndr status"),
        )
    if wanted is None:
        return max(reading.gpus, key=lambda gpu: gpu.memory_free)
    for gpu in reading.gpus:
        if wanted in {gpu.uuid, str(gpu.index)}:
            return gpu
    raise HostError(
        Reason.NOT_FOUND,
        tr("There is no GPU {wanted}.", wanted=wanted),
        cause=tr("Here are {gpus}.", gpus=[f"{gpu.index} ({gpu.name}, {gpu.uuid})" for gpu in reading.gpus]),
        fix="Name one of them by its number or its UUID.",
        evidence={"wanted": wanted},
    )
