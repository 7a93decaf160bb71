"""Engines: started from a plan, verified, watched, drained, stopped, and found again after a restart."""

import asyncio
import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from engine_host.core.did_you_mean import meant_or
from engine_host.core.errors import HostError, defect
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.engines.adapter import Adapter
from engine_host.engines.beginnings import is_refusal, new_engine
from engine_host.engines.process.log_pipe import prune_logs, remove_log
from engine_host.engines.process.reaper import Reaper
from engine_host.engines.process.running import START, RunningEngine, connection
from engine_host.engines.process.saved_engine import SavedEngines
from engine_host.engines.process.spawn import EngineProcess
from engine_host.engines.temporary_folder import make_temporary_folder
from engine_host.engines.unstartable import refuse_running, refuse_unstartable
from engine_host.engines.vllm.environment_changing import refuse_changing
from engine_host.engines.watcher import Watcher
from engine_host.protocol.engines import DRAIN_SECONDS, Engine, EngineState
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.events import EngineReadingsEvent, EngineStageEvent, EngineStateEvent, EventBase
from engine_host.protocol.jobs import JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan
from engine_host.telemetry.machine import ProcessMemory, process_memory

_log = logging.getLogger(__name__)
_KEPT_ENDED = 20
_GONE = {EngineState.UNLOADED, EngineState.FAILED}
_SERVING = {EngineState.READY, EngineState.BUSY}
_LEAVING = {EngineState.DRAINING, EngineState.STOPPING}
# Starts share the machine's memory, which is measured before each: one waits for the one before.
_TOUCHES = "engine memory"

Drain = Callable[[str, float], Awaitable[bool]]
Room = Callable[[LaunchPlan], Awaitable[None]]
Explain = Callable[[Engine, Problem], Awaitable[Problem]]


async def _any_room(_plan: LaunchPlan) -> None:
    return None


class EngineManager:
    """Owns every engine process; publishes each change of state."""

    def __init__(
        self,
        folders: Folders,
        publish: Callable[[EventBase], None],
        jobs: JobRunner,
        store: Store,
        log_buffer: LogBuffer,
        reaper: Reaper,
        adapters: Mapping[str, Adapter],
        drain: Drain,
        watcher: Watcher | None = None,
        gone: Callable[[str], None] = lambda _engine: None,
        room: Room = _any_room,
    ) -> None:
        """`drain` lets an engine's requests finish; `gone` is told the id of each engine that ended.

        `room` raises HostError when a start whose turn has come would not fit any more.
        """
        self._folders = folders
        self._publish = publish
        self._jobs = jobs
        self.saved = SavedEngines(store)
        self._log_buffer = log_buffer
        self._reaper = reaper
        self._adapters = adapters
        self._drain = drain
        self._gone = gone
        self._room = room
        self._watcher = watcher
        self.explain: Explain | None = None
        self._engines: dict[str, Engine] = {}
        self._running: dict[str, RunningEngine] = {}
        self._sockets: dict[str, str] = {}
        self._endings: set[asyncio.Task[None]] = set()
        self._reattaching: set[asyncio.Task[None]] = set()

    def all(self) -> list[Engine]:
        """Every engine of this run, those that run first, then the newest."""
        return sorted(self._engines.values(), key=lambda engine: (engine.state in _GONE, -engine.created_at))

    def get(self, engine_id: str) -> Engine:
        """One engine by id or public name. Raises HostError(not_found)."""
        if engine_id in self._engines:
            return self._engines[engine_id]
        for engine in self.all():
            if engine.name == engine_id:
                return engine
        missing = tr("There is no engine {engine}.", engine=engine_id)
        see = Fix(text="See what runs.", command="sndr status")
        fix = meant_or(see, engine_id, [engine.name for engine in self.all()])
        raise HostError(
            Reason.NOT_FOUND,
            missing,
            cause=tr("Known are those that run and the last {count} that ended.", count=_KEPT_ENDED),
            fix=fix,
        )

    def alive(self) -> list[Engine]:
        """Engines that have a process or are about to; also read on other threads."""
        return [engine for engine in list(self._engines.values()) if engine.state not in _GONE]

    def serving(self) -> list[Engine]:
        """Engines that answer requests."""
        return [engine for engine in self.all() if engine.state in _SERVING]

    def memory(self, engine: Engine) -> ProcessMemory | None:
        """The main memory that an engine's processes hold now; None for one without a process."""
        return process_memory(engine.pid) if engine.pid is not None else None

    def start(self, plan: LaunchPlan) -> Engine:
        """Start a plan, after stopping what it is instead of; answers at once, the job does the work.

        Raises HostError with the plan's first finding that stops a start, HostError(consent_needed), and
        HostError(conflict) for a plan that runs already.
        """
        refuse_unstartable(plan)
        refuse_running(plan, self.alive())
        refuse_changing(plan, self._jobs.all())
        engine = new_engine(plan)
        self._engines[engine.id] = engine
        job = self._jobs.start(
            JobKind.ENGINE_START,
            tr("Start {plan}", plan=plan.name),
            _TOUCHES,
            plan.command,
            lambda control: self._start(engine.id, control),
            lambda _job: self._unload_unstarted(engine.id),
        )
        return self._change(engine.id, job=job.id)

    def refused(self, plan: LaunchPlan, problem: Problem) -> Engine:
        """Keep a start that was refused before it had a process as one that failed; the same again is one."""
        engine = new_engine(plan)
        same = (one for one in self._engines.values() if is_refusal(one, plan.name, problem.reason))
        if (old := next(same, None)) is not None:
            engine = engine.model_copy(update={"id": old.id})
        self._engines[engine.id] = engine
        return self._change(engine.id, state=EngineState.FAILED, problem=problem, ended_at=time.time())

    def stop(self, engine_id: str, *, now: bool = False, drain: float = DRAIN_SECONDS) -> Engine:
        """Drain and stop an engine (`now`: at once); answers at once. Raises HostError(not_found).

        `drain`: seconds that requests at work have to end.
        """
        engine = self.get(engine_id)
        if engine.state in _GONE:
            return engine
        if engine.state in {EngineState.PREPARING, EngineState.STARTING} and engine.job:
            self._jobs.cancel(engine.job)
            return self.get(engine.id)
        if not now and engine.job and self._is_stop_job(engine.job):
            return engine
        job = self._jobs.start(
            JobKind.ENGINE_STOP,
            tr("Stop {engine}", engine=engine.name),
            f"stop {engine.id}{' now' if now else ''}",
            f"sndr stop {engine.name}{' --now' if now else ''}",
            lambda control: self._stop(engine.id, control, 0.0 if now else drain),
        )
        return self._change(engine.id, job=job.id)

    def activity(self, engine_id: str, active: int) -> None:
        """Told by the endpoint: how many requests this engine answers now."""
        if (engine := self._engines.get(engine_id)) and engine.state in _SERVING:
            self._running[engine_id].set_busy(active > 0)
            state = EngineState.BUSY if active else EngineState.READY
            if state is not engine.state:
                self._change(engine_id, state=state)

    def wake(self, engine_id: str) -> None:
        """Told by a measurement that it asks this engine directly, past the endpoint."""
        if engine_id in self._running:
            self._running[engine_id].wake()

    def socket(self, engine: Engine) -> str:
        """The engine's own Unix socket."""
        return self._sockets.get(engine.id) or f"{self._folders.run}/{engine.plan.id}.sock"

    async def adopt(self) -> None:
        """Find the engines of an earlier run: kept ones are re-attached in the background, others ended."""
        for remembered in self.saved.running():
            engine = remembered.engine
            if engine.engine not in self._adapters:
                _log.warning("an engine of another version of this program is left alone: %s", engine.engine)
                continue
            # The host before may have had another run folder.
            self._sockets[engine.id] = remembered.socket
            served = self._adapters[engine.engine].served_lines
            process = remembered.process(self._log_file(engine.id), served)
            if process is None:
                # Nobody ended it in order: the machine went down, or host and engine were killed.
                if engine.ready_at:
                    self.saved.ended_with_host(engine)
                self._forget(engine)
                continue
            if not engine.keep or remembered.unreachable:
                _log.warning("ending %s (pid %d), which nobody can reach", engine.name, process.pid)
                await process.stop(leader_only=self._adapters[engine.engine].stops_by_leader)
                await process.release()
                self._forget(engine)
                continue
            self._engines[engine.id] = engine.model_copy(
                update={"adopted": True, "job": None, "state": EngineState.STARTING}
            )
            if self._watcher is not None:
                self._watcher.begin(self._engines[engine.id])
            task = asyncio.create_task(
                self._reattach(engine.id, self._attach(engine.id, process)), name=f"reattach {engine.id}"
            )
            self._reattaching.add(task)
            task.add_done_callback(self._reattaching.discard)
        prune_logs(self._folders.logs / "engines", _KEPT_ENDED, self._engines)

    async def _reattach(self, engine_id: str, running: RunningEngine) -> None:
        """Re-attach to an engine of an earlier run, once it answers."""
        try:
            await running.wait_until_healthy(30.0)
            if not running.process.running:
                raise HostError.from_problem(await running.exit_problem())
            await running.process.withhold_requests()
        except HostError as error:
            if engine_id in self._running:
                # A process that does not answer would hold its memory where nobody can stop it.
                await self._fail(engine_id, error.problem)
            return
        engine = self._change(engine_id, state=EngineState.READY)
        running.poll()
        _log.info("re-attached %s (pid %d)", engine.name, running.process.pid)

    async def close(self) -> None:
        """Stop every engine that is not kept and let go of the others."""
        for task in self._reattaching:
            task.cancel()
        await asyncio.gather(*self._endings, *self._reattaching, return_exceptions=True)
        ending = [engine for engine in self.alive() if not engine.keep]
        served = [engine for engine in self.serving() if not engine.keep]
        await asyncio.gather(*(self._end(engine.id, 3.0) for engine in ending))
        for engine in served:
            self.saved.ended_with_host(engine, time.time())
        for running in list(self._running.values()):
            self._reaper.forget(running.process.pid)
            await running.release()
        self._running.clear()

    async def _start(self, engine_id: str, control: JobControl) -> dict[str, Any]:
        plan = self._engines[engine_id].plan
        try:
            await self._make_room(plan, control)
            control.step(2, 4, tr("Start the process"), plan.server_version)
            running = self._spawn(engine_id, plan)
            control.step(3, 4, tr("Load the model"), plan.model_path)
            running.on_stage = lambda name, detail: control.step(3, 4, tr("Load the model"), detail or name)
            await self._healthy_or_refused(running)
            running.on_stage = lambda _name, _detail: None
            control.step(4, 4, tr("Verify"), tr("one token, the model's id, the speculation counters"))
            verified = await running.verify(plan)
            await running.process.withhold_requests()
            if not running.process.running:
                raise HostError.from_problem(await running.exit_problem())
            self._change(engine_id, state=EngineState.READY, ready_at=time.time(), verified=verified)
            running.poll()
        except asyncio.CancelledError:
            await self._end(engine_id, 0.0)
            control.undone = tr("The engine's process was ended; nothing of it is left.")
            raise
        except HostError as error:
            await self._fail(engine_id, error.problem)
            raise HostError.from_problem(self._engines[engine_id].problem or error.problem) from error
        except Exception as error:
            await self._fail(engine_id, defect(error))
            raise
        try:
            self._remember(engine_id)
        except HostError as error:
            # It serves, and what was saved when it was started finds its process again.
            _log.warning("%s", error.problem.sentence())
        return {"engine": engine_id, "name": plan.name, "ready_after": verified.ready_after}

    async def _make_room(self, plan: LaunchPlan, control: JobControl) -> None:
        """End the engines that a start is instead of. Raises HostError when it does not fit even so."""
        for other in plan.instead_of:
            if other.id not in self._running:
                continue  # It was stopped meanwhile, or never had a process.
            control.step(1, 4, tr("Stop what runs"), other.name)
            await self._drained(other.id, DRAIN_SECONDS)
            await self._end(other.id, 5.0)
        for leaving in self.alive():
            if leaving.state in _LEAVING and leaving.job is not None:
                # Its memory was counted as free.
                control.step(1, 4, tr("Wait for the end of what is being stopped"), leaving.name)
                await self._jobs.ended(leaving.job)
        await self._room(plan)

    async def _healthy_or_refused(self, running: RunningEngine) -> None:
        """Wait until it can answer. Raises HostError when it ends, or must be ended, before."""
        if self._watcher is None:
            await running.wait_until_healthy(None)
            return
        healthy = asyncio.ensure_future(running.wait_until_healthy(None))
        refusal = asyncio.ensure_future(self._watcher.refusal(running.id))
        try:
            await asyncio.wait({healthy, refusal}, return_when=asyncio.FIRST_COMPLETED)
            if refusal.done():
                raise HostError.from_problem(refusal.result())
            await healthy
        finally:
            for task in (healthy, refusal):
                task.cancel()
            await asyncio.gather(healthy, refusal, return_exceptions=True)

    def stage(self, engine_id: str, name: str, detail: str) -> None:
        """Record a stage of a start that another service observed."""
        if engine_id in self._running and self._engines[engine_id].state is EngineState.STARTING:
            self._running[engine_id].begin_stage(name, detail)

    async def _stop(self, engine_id: str, control: JobControl, drain: float) -> dict[str, Any]:
        if engine_id not in self._running:
            return {"engine": engine_id}
        if not drain:
            control.step(1, 1, tr("End the process"))
            await self._end(engine_id, 0.0)
        else:
            control.step(1, 2, tr("Let running requests finish"), tr("at most {drain:.0f} s", drain=drain))
            control.undone = tr("Nothing was ended; the engine keeps running.")
            await self._drained(engine_id, drain)
            control.undone = ""
            control.step(2, 2, tr("End the process"))
            await self._end(engine_id, 5.0)
        return {"engine": engine_id}

    async def _drained(self, engine_id: str, seconds: float) -> None:
        """Let an engine's requests finish; cancelled meanwhile, it serves on."""
        before = self._change(engine_id, state=EngineState.DRAINING)
        try:
            await self._drain(engine_id, seconds)
        except asyncio.CancelledError:
            if self._engines[engine_id].state is EngineState.DRAINING:
                self._change(engine_id, state=EngineState.READY if before.ready_at else EngineState.STARTING)
            raise

    def _is_stop_job(self, job_id: str) -> bool:
        """Return True if this job is a stop that has not ended."""
        known = [job for job in self._jobs.all() if job.id == job_id and not job.ended]
        return any(job.kind is JobKind.ENGINE_STOP for job in known)

    def _unload_unstarted(self, engine_id: str) -> None:
        """Unload an engine whose start was cancelled while its job was still queued."""
        engine = self._engines.get(engine_id)
        if engine and engine.state is EngineState.PREPARING:
            self._change(engine_id, state=EngineState.UNLOADED, ended_at=time.time())

    def _spawn(self, engine_id: str, plan: LaunchPlan) -> RunningEngine:
        self._reaper.ensure()
        if self._watcher is not None:
            self._watcher.begin(self._engines[engine_id])
        Path(self.socket(self._engines[engine_id])).unlink(missing_ok=True)
        make_temporary_folder(plan.environment)
        process = EngineProcess.start(
            plan.argv,
            plan.environment,
            self._log_file(engine_id),
            keep=plan.keep,
            without=self._adapters[plan.engine].stripped_environment,
            served=self._adapters[plan.engine].served_lines,
        )
        if not plan.keep:
            self._reaper.watch(process.pid, Path(self.socket(self._engines[engine_id])))
        self._change(engine_id, state=EngineState.STARTING, pid=process.pid)
        running = self._attach(engine_id, process)
        running.begin_stage(START)
        self._remember(engine_id)
        return running

    def _attach(self, engine_id: str, process: EngineProcess) -> RunningEngine:
        engine = self._engines[engine_id]
        running = RunningEngine(
            engine_id,
            process,
            self._adapters[engine.engine],
            connection(self.socket(engine)),
            engine,
        )
        running.log = lambda texts: self._log_buffer.add(engine_id, texts)
        running.changed = lambda **update: self._change(engine_id, **update)
        running.stage_ended = lambda stage: self._publish(EngineStageEvent(engine=engine_id, stage=stage))
        running.ended = lambda problem: self._crashed(engine_id, problem)
        self._running[engine_id] = running
        running.follow()
        return running

    def _crashed(self, engine_id: str, problem: Problem) -> None:
        """Handle a process that ended while it served; a failing start is reported by its job."""
        engine = self._engines[engine_id]
        if engine.state in _SERVING | {EngineState.DRAINING}:
            again = engine.plan.command
            problem = problem.model_copy(
                update={"fix": problem.fix or Fix(text="Start it again.", command=again)}
            )
            self._track(self._failed(engine_id, problem))

    async def _fail(self, engine_id: str, problem: Problem) -> None:
        await self._to_completion(self._failed(engine_id, problem))

    async def _end(self, engine_id: str, grace: float) -> None:
        await self._to_completion(self._ended(engine_id, grace))

    async def _to_completion(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this to its end even if the caller is cancelled; the cancellation is raised after it."""
        task = self._track(work)
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
        task.result()
        if cancelled is not None:
            raise cancelled

    def _track(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin work on an engine that the end of the host waits for."""
        task = asyncio.create_task(work)
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)
        return task

    async def _failed(self, engine_id: str, problem: Problem) -> None:
        await self._take_down(engine_id, 0.0)
        if self._engines[engine_id].state in _GONE:
            return
        if self.explain is not None:
            problem = await self.explain(self._engines[engine_id], problem)
        self._change(
            engine_id,
            state=EngineState.FAILED,
            problem=problem,
            ended_at=time.time(),
            pid=None,
            last_lines=self._log_buffer.tail(engine_id, 200),
        )

    async def _ended(self, engine_id: str, grace: float) -> None:
        if self._engines[engine_id].state not in _GONE:
            self._change(engine_id, state=EngineState.STOPPING)
        await self._take_down(engine_id, grace)
        if self._engines[engine_id].state not in _GONE:
            self._change(engine_id, state=EngineState.UNLOADED, ended_at=time.time(), pid=None)

    async def _take_down(self, engine_id: str, grace: float) -> None:
        if running := self._running.get(engine_id):
            adapter = self._adapters[self._engines[engine_id].engine]
            await running.process.stop(grace, leader_only=adapter.stops_by_leader)
            self._reaper.forget(running.process.pid)
            await running.release()
            self._running.pop(engine_id, None)
            self._gone(engine_id)
            if self._watcher is not None:
                self._watcher.end(engine_id)
            self._forget(self._engines[engine_id])

    def _forget(self, engine: Engine) -> None:
        self.saved.forget(engine)
        (socket := Path(self.socket(engine))).unlink(missing_ok=True)
        shutil.rmtree(socket.with_suffix(".tmp"), ignore_errors=True)

    def _remember(self, engine_id: str) -> None:
        engine = self._engines[engine_id]
        self.saved.save(engine, self._running[engine_id].process.record, self.socket(engine))

    def _change(self, engine_id: str, **update: Any) -> Engine:
        engine = self._engines[engine_id].model_copy(update=update)
        self._engines[engine_id] = engine
        if set(update) == {"readings"} and engine.readings is not None:
            self._publish(EngineReadingsEvent(engine=engine_id, readings=engine.readings))
        else:
            self._publish(EngineStateEvent(engine=engine))
        ended = [one for one in self.all() if one.state in _GONE]
        for old in ended[_KEPT_ENDED:]:
            del self._engines[old.id]
            self._log_buffer.forget(old.id)
            remove_log(self._log_file(old.id))
        return engine

    def _log_file(self, engine_id: str) -> Path:
        return self._folders.logs / "engines" / f"{engine_id}.log"
