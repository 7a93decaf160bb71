"""The bench lab: a job that measures engines from a process of its own, and the runs that are kept."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from engine_host.bench.kept import runs as kept_runs
from engine_host.bench.lab.chosen import chosen
from engine_host.bench.lab.comparing import compared
from engine_host.bench.lab.workloads import Part
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.paths import Folders
from engine_host.operations.measurements.engine_choice import ready_engine
from engine_host.operations.measurements.lab_process import CutShortError, measured
from engine_host.operations.measurements.measured_engine import facts, machine_of, socket_of
from engine_host.operations.performs import performs
from engine_host.protocol.bench.comparison import CompareFile, CompareRuns, LabComparison
from engine_host.protocol.bench.lab import (
    PAIRED_ROUNDS,
    LabAsk,
    LabKept,
    LabPage,
    LabRun,
    LabStep,
    MarkBaseline,
    RunBench,
)
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.events import BenchChangedEvent
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.operations import bench as ops
from engine_host.telemetry.gpus import GpuReading


class BenchOperations:
    """Measures the engines of this host, one run at a time, and keeps the runs in files."""

    def __init__(
        self,
        jobs: JobRunner,
        events: EventLog,
        log_buffer: LogBuffer,
        folders: Folders,
        alive: Callable[[], Sequence[Engine]],
        gpus: Callable[[], GpuReading],
        wake: Callable[[str], object],
    ) -> None:
        self._jobs = jobs
        self._events = events
        self._log_buffer = log_buffer
        self._data = folders.data
        self._sockets = folders.run
        self._alive = alive
        self._gpus = gpus
        self._wake = wake

    @performs(ops.BENCH_RUNS)
    async def page(self) -> LabPage:
        """Return the runs of this machine."""
        machine = machine_of(await asyncio.to_thread(self._gpus))
        now = [(facts(engine, self._sockets), machine) for engine in self._alive()]
        page = await asyncio.to_thread(kept_runs.page, kept_runs.folder_of(self._data), now)
        return page.model_copy(update={"seq": self._events.seq})

    @performs(ops.BENCH_RUN)
    async def show(self, run_id: str) -> LabRun:
        """Return one run with its samples. Raises HostError(not_found), HostError(bad_request)."""
        return await asyncio.to_thread(kept_runs.find, kept_runs.folder_of(self._data), run_id)

    @performs(ops.COMPARE_RUNS)
    async def compare(self, asked: CompareRuns) -> LabComparison:
        """Compare two runs. Raises HostError: not_found, bad_request, conflict for other workloads."""
        return await asyncio.to_thread(self._compared, asked)

    @performs(ops.COMPARE_FILE)
    async def compare_file(self, asked: CompareFile) -> LabComparison:
        """Compare a run of somebody else. Raises HostError: not_found, bad_request, conflict."""
        return await asyncio.to_thread(self._compared_file, asked)

    @performs(ops.MARK_BASELINE)
    async def mark(self, run_id: str, asked: MarkBaseline) -> LabPage:
        """Mark a baseline, or take that back. Raises HostError: not_found, bad_request, conflict."""
        await asyncio.to_thread(kept_runs.mark, kept_runs.folder_of(self._data), run_id, on=asked.on)
        self._events.publish(BenchChangedEvent())
        return await self.page()

    @performs(ops.REMOVE_BENCH_RUN)
    async def remove(self, run_id: str) -> LabPage:
        """Remove a run. Raises HostError: not_found, bad_request, not_writable."""
        await asyncio.to_thread(kept_runs.remove, kept_runs.folder_of(self._data), run_id)
        self._events.publish(BenchChangedEvent())
        return await self.page()

    @performs(ops.RUN_BENCH)
    async def run(self, asked: RunBench) -> Job:
        """Measure as a job whose result names the runs.

        Raises HostError: not_found, no_engine_runs, engine_not_ready, conflict where it is not clear which
        engine is meant, or for one engine against itself, bad_request for choices that do not fit.
        """
        engine = ready_engine(self._alive(), asked.engine)
        other = None if asked.against is None else ready_engine(self._alive(), asked.against)
        if other is not None and other.id == engine.id:
            raise HostError(
                Reason.CONFLICT,
                tr("{engine} cannot be measured in turns with itself.", engine=engine.name),
                cause="What one side asked would be in the cache for the other.",
                fix=Fix(text="Start another one beside it.", command="sndr run --help"),
                evidence={"engine": engine.id},
            )
        parts = chosen(asked, engine.context).parts
        reading = await asyncio.to_thread(self._gpus)
        named = {"engine": engine.name, "against": None if other is None else other.name}
        command = asked.model_copy(update=named).command
        ask = LabAsk(
            workload=asked.workload,
            folder=str(self._data),
            seed=asked.seed,
            engine=facts(engine, self._sockets),
            machine=machine_of(reading),
            socket=socket_of(engine, self._sockets),
            against=None if other is None else facts(other, self._sockets),
            against_socket=None if other is None else socket_of(other, self._sockets),
            rounds=asked.rounds or (None if other is None else PAIRED_ROUNDS),
            streams=asked.streams,
            only=asked.only,
            steps=True,
        )
        title = tr("Bench {workload} of {engine}", workload=asked.workload, engine=engine.name)
        return self._jobs.start(
            JobKind.BENCH_RUN,
            title if other is None else tr("{title} and {other} in turns", title=title, other=other.name),
            # Two at a time would measure each other.
            "bench",
            command,
            lambda control: self._measure(control, ask, parts),
        )

    def _wake_asked(self, ask: LabAsk) -> None:
        # No request of it comes through the endpoint, so nothing else says that they work.
        for engine in (ask.engine, ask.against):
            if engine is not None:
                self._wake(engine.id)

    def _compared(self, asked: CompareRuns) -> LabComparison:
        folder = kept_runs.folder_of(self._data)
        return compared(kept_runs.find(folder, asked.a), kept_runs.find(folder, asked.b))

    def _compared_file(self, asked: CompareFile) -> LabComparison:
        own = kept_runs.find(kept_runs.folder_of(self._data), asked.other)
        return compared(asked.run, own) if asked.first else compared(own, asked.run)

    async def _measure(self, control: JobControl, ask: LabAsk, parts: Sequence[Part]) -> dict[str, Any]:
        said = tr("the first warm-up") if parts[0].warm else tr("the first request")
        control.step(1, len(parts), parts[0].name, said, 0.0)

        def tell(step: LabStep) -> None:
            self._wake_asked(ask)
            _tell(control, step)

        self._wake_asked(ask)
        try:
            kept = await measured(ask, self._log_buffer, tell)
        except CutShortError as cut:
            control.left = _left(cut.kept)
            raise _cut_short(cut) from cut
        finally:
            self._events.publish(BenchChangedEvent())
        return {"runs": list(kept.ids)}


def _left(kept: LabKept) -> str:
    # Who cancelled knows what was cut; the report of a run that is kept tells all of it.
    told = None if kept.cut is None else kept.cut.brief
    if not kept.ids:
        return tr("Nothing was measured yet, so nothing is kept.[ {told}]", told=told)
    return tr(
        "What was measured is kept as {runs}, marked as partial.[ {told}]",
        runs=", ".join(kept.ids),
        told=told,
    )


def _tell(control: JobControl, step: LabStep) -> None:
    control.step(step.number, step.of, step.part, step.words, step.progress)


def _cut_short(cut: CutShortError) -> HostError:
    """Return the end of a job whose run is partial; it names what is kept of it."""
    kept = cut.kept
    return HostError(
        Reason.CANCELLED if cut.cancelled else Reason.ENGINE_NOT_READY,
        f"The measurement was {cut}. {_left(kept)}".strip(),
        fix=Fix(text="See it.", command=f"sndr bench report {kept.ids[0]}") if kept.ids else None,
        evidence={"runs": list(kept.ids)},
    )
