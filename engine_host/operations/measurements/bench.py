"""The bench lab: a job that measures engines from a process of its own, and the runs that are kept."""

import asyncio
import contextlib
import os
import platform
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from engine_host import __version__
from engine_host.bench.lab import store
from engine_host.bench.lab.comparing import compared
from engine_host.bench.lab.workloads import WORKLOADS
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.outside import json_text
from engine_host.core.paths import Folders
from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.operations.measurements.engine_choice import ready_engine
from engine_host.operations.performs import performs
from engine_host.protocol.bench.comparison import CompareRuns, LabComparison
from engine_host.protocol.bench.lab import (
    PAIRED_ROUNDS,
    LabAsk,
    LabEngine,
    LabKept,
    LabMachine,
    LabPage,
    LabRun,
    LabStep,
    RunBench,
)
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.events import BenchChangedEvent
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.operations import bench as ops
from engine_host.telemetry.gpus import GpuReading
from engine_host.telemetry.machine import cpu_name

_SAVING = 10.0
# Its lines are short: of what it kept it only says the names.
_LONGEST_LINE = 1 << 20
_OF_ADDRESSES = "SNDR_API_KEY"


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
    ) -> None:
        self._jobs = jobs
        self._events = events
        self._log_buffer = log_buffer
        self._data = folders.data
        self._sockets = folders.run
        self._alive = alive
        self._gpus = gpus

    @performs(ops.BENCH_RUNS)
    async def page(self) -> LabPage:
        """Return the runs of this machine."""
        page = await asyncio.to_thread(store.page, store.folder_of(self._data))
        return page.model_copy(update={"seq": self._events.seq})

    @performs(ops.BENCH_RUN)
    async def show(self, run_id: str) -> LabRun:
        """Return one run with its samples. Raises HostError(not_found), HostError(bad_request)."""
        return await asyncio.to_thread(store.find, store.folder_of(self._data), run_id)

    @performs(ops.COMPARE_RUNS)
    async def compare(self, asked: CompareRuns) -> LabComparison:
        """Compare two runs. Raises HostError: not_found, bad_request, conflict for other workloads."""
        return await asyncio.to_thread(self._compared, asked)

    @performs(ops.REMOVE_BENCH_RUN)
    async def remove(self, run_id: str) -> LabPage:
        """Remove a run. Raises HostError: not_found, bad_request, not_writable."""
        await asyncio.to_thread(store.remove, store.folder_of(self._data), run_id)
        self._events.publish(BenchChangedEvent())
        return await self.page()

    @performs(ops.RUN_BENCH)
    async def run(self, asked: RunBench) -> Job:
        """Measure as a job whose result names the runs.

        Raises HostError: not_found, no_engine_runs, engine_not_ready, conflict where it is not clear which
        engine is meant, or for one engine against itself.
        """
        engine = ready_engine(self._alive(), asked.engine)
        other = None if asked.against is None else ready_engine(self._alive(), asked.against)
        if other is not None and other.id == engine.id:
            raise HostError(
                Reason.CONFLICT,
                f"{engine.name} cannot be measured in turns with itself.",
                cause="What one side asked would be in the cache for the other.",
                fix=Fix(text="Start another one beside it.", command="sndr run --help"),
                evidence={"engine": engine.id},
            )
        reading = await asyncio.to_thread(self._gpus)
        named = {"engine": engine.name, "against": None if other is None else other.name}
        command = asked.model_copy(update=named).command
        ask = LabAsk(
            workload=asked.workload,
            folder=str(self._data),
            seed=asked.seed,
            engine=self._facts(engine),
            machine=_machine(reading),
            socket=self._socket(engine),
            against=None if other is None else self._facts(other),
            against_socket=None if other is None else self._socket(other),
            rounds=asked.rounds or (None if other is None else PAIRED_ROUNDS),
            steps=True,
        )
        title = f"Bench {asked.workload} of {engine.name}"
        return self._jobs.start(
            JobKind.BENCH_RUN,
            title if other is None else f"{title} and {other.name} in turns",
            # Two at a time would measure each other.
            "bench",
            command,
            lambda control: self._measure(control, ask),
        )

    def _compared(self, asked: CompareRuns) -> LabComparison:
        folder = store.folder_of(self._data)
        return compared(store.find(folder, asked.a), store.find(folder, asked.b))

    async def _measure(self, control: JobControl, ask: LabAsk) -> dict[str, Any]:
        parts = WORKLOADS[ask.workload].parts
        control.step(1, len(parts), parts[0].name, "the first warm-up", 0.0)
        environment = {name: value for name, value in os.environ.items() if name != _OF_ADDRESSES}
        process = await asyncio.create_subprocess_exec(
            *command_of(OwnProgram.BENCH_LAB),
            "run",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            limit=_LONGEST_LINE,
        )
        reading = asyncio.create_task(self._read(control, process))
        cancelled = False
        try:
            assert process.stdin is not None
            # One that has ended says by its exit why.
            with contextlib.suppress(ConnectionError):
                process.stdin.write(ask.model_dump_json().encode() + b"\n")
                await process.stdin.drain()
            await asyncio.shield(reading)
        except asyncio.CancelledError:
            cancelled = True
        finally:
            said = await asyncio.shield(_ended(process, reading))
            self._events.publish(BenchChangedEvent())
        kept = _kept(said, process.returncode)
        if cancelled or not kept.complete:
            control.left = _left(kept)
            raise _cut_short(kept, cancelled=cancelled)
        return {"runs": list(kept.ids)}

    async def _read(self, control: JobControl, process: asyncio.subprocess.Process) -> bytes:
        """Follow what the measurement says; its last line."""
        last = b""
        assert process.stdout is not None
        async for line in process.stdout:
            last = line
            try:
                said = json_text.parse_object(line)
            except ValueError:
                self._log_buffer.add("bench", [line.decode("utf-8", "replace").rstrip()])
                continue
            if "step" in said:
                step = LabStep.model_validate(said["step"])
                control.step(step.number, step.of, step.part, step.words, step.progress)
        return last

    def _socket(self, engine: Engine) -> str:
        return str(self._sockets / f"{engine.plan.id}.sock")

    def _facts(self, engine: Engine) -> LabEngine:
        plan = engine.plan
        return LabEngine(
            address=self._socket(engine),
            model=engine.name,
            id=engine.id,
            engine=engine.engine,
            version=engine.server_version,
            model_path=plan.model_path,
            command=plan.command,
            argv=plan.argv,
            settings={setting.name: str(setting.value) for setting in plan.settings},
            patches=() if plan.patches is None else plan.patches.chosen,
        )


async def _ended(process: asyncio.subprocess.Process, reading: "asyncio.Task[bytes]") -> bytes:
    """Close the input of the measurement, on which it saves and ends; its last line."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(_SAVING):
            said = await reading
            await process.wait()
            return said
    except (TimeoutError, ValueError, ValidationError):
        # It hangs, or a line of it was none of its own.
        return b""
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _kept(said: bytes, code: int | None) -> LabKept:
    """Return what the measurement kept. Raises HostError: its own, or one that says how it ended."""
    try:
        found = json_text.parse_object(said)
        if "error" in found:
            raise HostError.from_problem(Problem.model_validate(found["error"]))
        return LabKept.model_validate(found["kept"])
    except (ValueError, KeyError) as error:
        raise HostError(
            Reason.INTERNAL,
            "The measurement ended without a result.",
            cause=f"Its process ended with {code}.",
            fix=Fix(text="See what it said.", command="sndr logs bench"),
        ) from error


def _left(kept: LabKept) -> str:
    return f"What was measured is kept as {' and '.join(kept.ids)}, marked as partial." if kept.ids else ""


def _cut_short(kept: LabKept, *, cancelled: bool) -> HostError:
    """Return the end of a job whose run is partial; it names what is kept of it."""
    how = "cancelled" if cancelled else f"cut short: {kept.ended_by}"
    return HostError(
        Reason.CANCELLED if cancelled else Reason.ENGINE_NOT_READY,
        f"The measurement was {how}. {_left(kept)}".strip(),
        fix=Fix(text="See it.", command=f"sndr bench report {kept.ids[0]}") if kept.ids else None,
        evidence={"runs": list(kept.ids)},
    )


def _machine(reading: GpuReading) -> LabMachine:
    return LabMachine(
        program=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor=cpu_name(),
        gpus=tuple(gpu.name for gpu in reading.gpus),
        driver=reading.driver or "",
    )
