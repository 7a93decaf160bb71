"""Sweeps: an engine is started with each value in turn, measured, and started again as it was."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine_host.bench.kept import runs as kept_runs
from engine_host.bench.kept import sweeps
from engine_host.bench.kept.under_way import measuring
from engine_host.bench.lab.chosen import chosen
from engine_host.bench.lab.running import new_seed
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.paths import Folders
from engine_host.engines.manager import EngineManager
from engine_host.engines.unstartable import refuse_unstartable
from engine_host.operations.measurements.engine_choice import ready_engine
from engine_host.operations.measurements.lab_process import CutShortError, measured
from engine_host.operations.measurements.measured_engine import facts, machine_of, socket_of
from engine_host.operations.measurements.sweep_values import (
    PATCH_VALUES,
    arms_of,
    request_of,
    values_of,
    wrong_patches,
)
from engine_host.operations.performs import performs
from engine_host.operations.plans import PlanOperations
from engine_host.protocol.bench.lab import LabAsk, LabStep, RunBench
from engine_host.protocol.bench.sweeps import (
    ArmMemory,
    LabSweep,
    RunSweep,
    SweepArm,
    SweepKind,
    SweepPage,
    SweepReport,
)
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.events import BenchChangedEvent
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest
from engine_host.protocol.operations import bench as ops
from engine_host.telemetry.gpus import GpuReading

_GONE = {EngineState.FAILED, EngineState.UNLOADED}
# What is wrong with a value however much memory is free.
_OF_A_VALUE = {Reason.SETTING_INVALID, Reason.BAD_REQUEST, Reason.UNSUPPORTED, Reason.NOT_FOUND}


class SweepOperations:
    """Sweeps one engine at a time, and never beside another measurement."""

    def __init__(
        self,
        jobs: JobRunner,
        events: EventLog,
        log_buffer: LogBuffer,
        folders: Folders,
        engines: EngineManager,
        plans: PlanOperations,
        gpus: Callable[[], GpuReading],
        refuse_others: Callable[[], None],
        memory: Callable[[Engine], Awaitable[ArmMemory]],
    ) -> None:
        """`refuse_others` raises while starts of somebody else's are under way, `memory` reads a start's."""
        self._jobs = jobs
        self._events = events
        self._log_buffer = log_buffer
        self._folders = folders
        self._engines = engines
        self._plans = plans
        self._gpus = gpus
        self._refuse_others = refuse_others
        self._memory = memory

    @performs(ops.BENCH_SWEEPS)
    async def page(self) -> SweepPage:
        """Return the sweeps of this machine."""
        page = await asyncio.to_thread(sweeps.page, self._folder)
        return page.model_copy(update={"seq": self._events.seq})

    @performs(ops.BENCH_SWEEP)
    async def show(self, sweep_id: str) -> SweepReport:
        """Return one with its runs. Raises HostError(not_found), HostError(bad_request)."""
        return await asyncio.to_thread(sweeps.report, self._folder, sweep_id)

    @performs(ops.RUN_SWEEP)
    async def run(self, asked: RunSweep) -> Job:
        """Sweep as a job whose result names the sweep.

        Raises HostError: not_found, no_engine_runs, engine_not_ready, conflict where it is not clear which
        engine is meant and while a bisection or a sweep runs, unsupported where the engine has nothing to
        sweep, bad_request for a workload that does not fit.
        """
        self._refuse_others()
        engine = ready_engine(self._engines.alive(), asked.engine)
        request = self._request(engine)
        named = bool(asked.values)
        asked = asked.model_copy(update={"engine": engine.name, "values": values_of(asked, engine.plan)})
        chosen(RunBench(workload=asked.workload, rounds=asked.rounds), engine.context)
        await self._refuse_values(asked, engine, request, named=named)
        reading = await asyncio.to_thread(self._gpus)
        now = time.time()
        sweep = LabSweep(
            id=sweeps.new_id(asked.kind.value, now),
            kind=asked.kind,
            engine=engine.name,
            started_at=now,
            command=asked.command,
            values=PATCH_VALUES if asked.kind is SweepKind.PATCH else asked.values,
        )
        await asyncio.to_thread(sweeps.can_keep, self._folder, sweep)
        one = _Sweep(self, asked, engine, request, reading, sweep)
        return self._jobs.start(
            JobKind.BENCH_SWEEP,
            tr("Sweep {kind} of {engine}", kind=asked.kind, engine=engine.name),
            "bench",
            asked.command,
            one.run,
        )

    async def _refuse_values(
        self, asked: RunSweep, engine: Engine, request: LaunchRequest, *, named: bool
    ) -> None:
        """Refuse what cannot start while the engine still runs: a value that was `named`, or all but one."""
        arms = dict.fromkeys(
            arms_of(asked, asked.values if asked.kind is not SweepKind.PATCH else PATCH_VALUES)
        )
        problems: dict[str, Problem] = {}
        for value in arms:
            try:
                await self.plan_of(asked, request_of(asked, engine.plan, request, value), value)
            except HostError as error:
                problems[value] = error.problem
        comparable = len(arms) - len(problems) >= min(2, len(arms))
        for value, problem in problems.items():
            if not comparable or (named and problem.reason in _OF_A_VALUE):
                raise HostError.from_problem(
                    problem.model_copy(
                        update={
                            "message": f"{asked.kind} {value} cannot be started, so {engine.name} was left"
                            f" as it is: {problem.message}"
                        }
                    )
                )

    async def plan_of(self, asked: RunSweep, request: LaunchRequest, value: str) -> LaunchPlan:
        """Return the plan of one value. Raises HostError with what keeps it from being started."""
        plan = await self._plans.plan(request)
        refuse_unstartable(plan)
        if why := wrong_patches(asked, plan, value):
            raise HostError(Reason.UNSUPPORTED, why, fix=Fix(text="See why.", command="sndr patches list"))
        return plan

    @property
    def _folder(self) -> Path:
        return kept_runs.folder_of(self._folders.data)

    def _request(self, engine: Engine) -> LaunchRequest:
        """Return the request that an engine was started by, under its own name. Raises HostError."""
        try:
            request = self._plans.request(engine.plan.id)
        except HostError as error:
            raise HostError(
                Reason.CONFLICT,
                tr(
                    "How {engine} was started is not known any more, so it could not be restored.",
                    engine=engine.name,
                ),
                cause="The engine host was started anew since then.",
                fix=Fix(text="Start it anew, then sweep.", command=engine.plan.command),
                evidence={"engine": engine.id},
            ) from error
        # With a preset the patches are the preset's, which the request does not name.
        patches = engine.plan.choice if request.preset is not None else request.patches
        return request.model_copy(update={"name": engine.name, "patches": patches, "instead_of": None})


@dataclass
class _Sweep:
    """One sweep; `sweep` is what is known of it at any moment."""

    of: SweepOperations
    asked: RunSweep
    engine: Engine
    request: LaunchRequest
    reading: GpuReading
    sweep: LabSweep
    began: float = field(default_factory=time.monotonic)

    async def run(self, control: JobControl) -> dict[str, Any]:
        arms = arms_of(self.asked, self.sweep.values)
        seed = new_seed() if self.asked.seed is None else self.asked.seed
        ended_by, cancelled = "", False
        try:
            for number, value in enumerate(arms, 1):
                await self._arm(control, number, len(arms) + 1, value, seed)
        except asyncio.CancelledError:
            ended_by, cancelled = "cancelled", True
        except CutShortError as cut:
            ended_by, cancelled = str(cut), cut.cancelled
        finally:
            control.step(
                len(arms) + 1, len(arms) + 1, tr("Restore"), tr("starting the engine as it was"), None
            )
            await _to_its_end(self._restore())
        whole = not ended_by and all(arm.problem is None for arm in self.sweep.arms)
        self._keep(complete=whole, ended_by=ended_by)
        self.of._events.publish(BenchChangedEvent())
        if ended_by:
            control.left = tr(
                "What was measured is kept as the sweep {sweep}, marked as partial.", sweep=self.sweep.id
            )
            raise HostError(
                Reason.CANCELLED if cancelled else Reason.ENGINE_NOT_READY,
                tr("The sweep was {ended_by}. {left}", ended_by=ended_by, left=control.left),
                fix=Fix(text="See it.", command=f"sndr bench sweeps {self.sweep.id}"),
                evidence={"sweep": self.sweep.id, "restored": self.sweep.restored},
            )
        return {"sweep": self.sweep.id, "restored": self.sweep.restored}

    async def _arm(self, control: JobControl, number: int, of: int, value: str, seed: int) -> None:
        """Start with one value and measure. Raises CutShortError; a start that fails is told in its arm."""
        name = tr("{kind} {value}", kind=self.asked.kind, value=value)
        control.step(number, of, name, tr("starting the engine"), None)
        try:
            request = request_of(self.asked, self.engine.plan, self.request, value)
            plan = await self.of.plan_of(self.asked, request, value)
        except HostError as error:
            self._add(SweepArm(value=value, problem=error.problem, refused=True))
            return
        try:
            engine = await self._started(plan)
        except HostError as error:
            if error.reason is Reason.CANCELLED:
                raise CutShortError.before(error.problem.message) from error
            # The next value may do.
            self._add(SweepArm(value=value, problem=error.problem))
            return

        def tell(step: LabStep) -> None:
            self.of._engines.wake(engine.id)
            share = (step.number - 1 + step.progress) / max(1, step.of)
            control.step(number, of, name, tr("{part}, {words}", part=step.part, words=step.words), share)

        run_folder = self.of._folders.run
        ask = LabAsk(
            workload=self.asked.workload,
            folder=str(self.of._folders.data),
            seed=seed,
            engine=facts(engine, run_folder),
            machine=machine_of(self.reading),
            socket=socket_of(engine, run_folder),
            rounds=self.asked.rounds,
            steps=True,
        )
        try:
            kept = await measured(ask, self.of._log_buffer, tell)
        except CutShortError as cut:
            self._add(SweepArm(value=value, run=next(iter(cut.kept.ids), "")))
            raise
        except HostError as error:
            self._add(SweepArm(value=value, problem=error.problem))
            return
        engine = self.of._engines.get(engine.id)
        readings = engine.readings
        drafted = readings is not None and readings.draft_tokens_total
        length = readings.acceptance_length if readings is not None and drafted else None
        run = next(iter(kept.ids), "")
        memory = await self.of._memory(engine)
        self._add(SweepArm(value=value, run=run, complete=True, acceptance_length=length, memory=memory))

    async def _started(self, plan: LaunchPlan) -> Engine:
        """Start an engine in place of the one of its name. Raises HostError with what kept it from it."""
        engine = self.of._engines.start(plan)
        assert engine.job is not None
        try:
            job = await self.of._jobs.ended(engine.job)
        except asyncio.CancelledError:
            self.of._jobs.cancel(engine.job)
            raise
        engine = self.of._engines.get(engine.id)
        if job.state is JobState.DONE:
            return engine
        if engine.problem is not None:
            raise HostError.from_problem(engine.problem)
        raise HostError(Reason.CANCELLED, "cut off: somebody stopped its engine.")

    async def _restore(self) -> None:
        """Start the engine as it was, also after a cancel; not where the whole host ends."""
        running = self.of._engines.alive()
        if any(one.id == self.engine.id for one in running):
            self.sweep = self.sweep.model_copy(update={"restored": True})
            return
        if self.of._jobs.closing:
            problem = Problem(reason=Reason.HOST_RESTARTED, message="The engine host ended meanwhile.")
            self.sweep = self.sweep.model_copy(update={"not_restored": problem})
            return
        try:
            for one in running:
                if one.name == self.engine.name and one.state not in _GONE:
                    stopping = self.of._engines.stop(one.id, now=True)
                    if stopping.job is not None:
                        await self.of._jobs.ended(stopping.job)
            plan = await self.of._plans.plan(self.request)
            engine = self.of._engines.start(plan)
            assert engine.job is not None
            job = await self.of._jobs.ended(engine.job)
            if job.state is not JobState.DONE:
                raise HostError.from_problem(
                    self.of._engines.get(engine.id).problem
                    or Problem(reason=Reason.CANCELLED, message="Its start was cancelled.")
                )
            self.sweep = self.sweep.model_copy(update={"restored": True})
        except HostError as error:
            self.sweep = self.sweep.model_copy(update={"not_restored": error.problem})
            self.of._log_buffer.add("bench", [f"not restored: {error.problem.sentence()}"])

    def _add(self, arm: SweepArm) -> None:
        self.sweep = self.sweep.model_copy(update={"arms": (*self.sweep.arms, arm)})
        self._keep(going_on=True)

    def _keep(self, *, complete: bool = False, ended_by: str = "", going_on: bool = False) -> None:
        self.sweep = self.sweep.model_copy(
            update={
                "seconds": time.monotonic() - self.began,
                "complete": complete,
                "ended_by": ended_by,
                "measuring": measuring() if going_on else None,
            }
        )
        sweeps.save(self.of._folder, self.sweep)


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Do this to its end even if the job is cancelled once more meanwhile."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            continue
    task.result()
