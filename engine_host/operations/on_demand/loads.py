"""Models that requests load: one load at a time, engines that end when nobody asks them, and who waits."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from engine_host.core.errors import HostError, defect
from engine_host.core.jobs import JobRunner
from engine_host.engines.manager import EngineManager
from engine_host.gateway.directory import LOADING, UNLOADED, Target
from engine_host.gateway.loading.loader import Load
from engine_host.operations.on_demand import refusals
from engine_host.operations.on_demand.entries import Entry
from engine_host.protocol.endpoint.on_demand import OnDemandChange, OnDemandModel, OnDemandState
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Problem
from engine_host.protocol.events import EventBase, OnDemandEvent
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest

_log = logging.getLogger(__name__)
_SERVING = {EngineState.READY, EngineState.BUSY}
_STARTING = {EngineState.PREPARING, EngineState.STARTING}
_GONE = {EngineState.UNLOADED, EngineState.FAILED}
_EVERY = 1.0
_PAUSE = 10.0
"""Seconds after a failed load in which a request gets its failure, and none begins another."""
_DRAIN = 600.0
"""Seconds that answers at work get to end where a model is unloaded."""


@dataclass(eq=False)
class RunningLoad:
    """One load that requests wait for; `begun` once its engine has been started."""

    name: str
    done: "asyncio.Future[None]"
    overrides: Overrides | None = None
    waiting: int = 0
    begun: bool = False
    wanted: bool = False
    task: "asyncio.Task[None] | None" = None


@dataclass(eq=False)
class _Model:
    """One model and how it is: `engine` is the id of the engine that a load of it started."""

    entry: Entry
    command: str
    shown: Target | None = None
    engine: str | None = None
    load: RunningLoad | None = None
    loaded_by: RunningLoad | None = None
    keep_alive: float | None = None
    last_used: float | None = None
    used: float = field(default_factory=time.monotonic)
    busy: bool = False
    problem: Problem | None = None
    failed: float = 0.0


class OnDemandModels:
    """Every model that requests may load; the loader of the endpoint."""

    def __init__(
        self,
        engines: EngineManager,
        jobs: JobRunner,
        publish: Callable[[EventBase], None],
        plan: Callable[[LaunchRequest], Awaitable[LaunchPlan]],
        start: Callable[[LaunchPlan], Engine],
        at_work: Callable[[str], int],
    ) -> None:
        """`plan` finds the plan of a load for which there is room, `start` carries it out.

        `at_work` are the requests that an engine answers, and that wait for it.
        """
        self._engines = engines
        self._jobs = jobs
        self._publish = publish
        self._plan = plan
        self._start = start
        self._at_work = at_work
        self._models: dict[str, _Model] = {}
        self._removed: dict[str, _Model] = {}
        self._turn = asyncio.Lock()
        self._wake = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self._closing = False

    def open(self) -> None:
        """Begin to look after the engines that loads start."""
        self._watch = asyncio.create_task(self._look_after(), name="on demand")

    async def close(self) -> None:
        """Begin nothing any more, and let every waiting request go."""
        self._closing = True
        models = (*self._models.values(), *self._removed.values())
        tasks = [model.load.task for model in models if model.load and model.load.task]
        tasks += [self._watch] if self._watch is not None else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Entries

    def put(self, entry: Entry, command: str, shown: Target | None, problem: Problem | None = None) -> None:
        """Take in an entry; `shown` is how the endpoint lists it, `problem` why it cannot be planned now."""
        known = self._models.get(entry.name)
        if known is None:
            known = self._removed.pop(entry.name, None)
            if known is None or not self._is_there(known):
                self._models[entry.name] = _Model(entry, command, shown, problem=problem)
                return
            # What a load of it started before is still its own.
            self._models[entry.name] = known
            known.used = time.monotonic()
        known.entry, known.command, known.shown, known.problem = entry, command, shown, problem
        known.keep_alive = None

    def remove(self, name: str) -> None:
        """Forget an entry; an engine of it that runs goes on, and a load that has not begun ends."""
        model = self._found(name)
        shown = self._shown(model)
        if model.load is not None and not model.load.begun:
            self._call_off(model.load)
        del self._models[name]
        self._removed = {old: left for old, left in self._removed.items() if self._is_there(left)}
        self._removed[name] = model
        self._publish(OnDemandEvent(change=OnDemandChange.REMOVED, model=shown))

    def entry(self, name: str) -> Entry:
        """Return an entry. Raises HostError(not_found)."""
        return self._found(name).entry

    def get(self, name: str) -> OnDemandModel:
        """Return one model as it is now. Raises HostError(not_found)."""
        return self._shown(self._found(name))

    def running(self, name: str) -> Engine | None:
        """Return the engine that answers for a model; None while none does. Raises HostError(not_found)."""
        engine = self._engine_of(self._found(name))
        return engine if engine is not None and engine.state in _SERVING else None

    def all(self) -> tuple[OnDemandModel, ...]:
        """Return every model as it is now, by name."""
        return tuple(self._shown(self._models[name]) for name in sorted(self._models))

    def announce(self, name: str, change: OnDemandChange) -> None:
        """Publish a change of an entry."""
        self._tell(self._found(name), change)

    # The loader of the endpoint

    def is_known(self, name: str) -> bool:
        """Return True for a model that requests may load."""
        return name in self._models

    def is_being_planned(self, name: str) -> bool:
        """Return True for a model of which it is not known yet whether it can be loaded."""
        model = self._models.get(name)
        return model is not None and model.shown is None and model.problem is None

    def loadable(self) -> Sequence[Target]:
        """Return the models that do not answer now, as the endpoint lists them."""
        found = []
        for model in self._models.values():
            engine = self._engine_of(model)
            if model.shown is None or (engine is not None and engine.state in _SERVING):
                continue
            loading = model.load is not None or (engine is not None and engine.state in _STARTING)
            found.append(replace(model.shown, state=LOADING if loading else UNLOADED))
        return found

    def expires_at(self, engine_id: str) -> float | None:
        """Return when an engine is stopped if no request comes; None for one that stays, or is at work."""
        model = self._of_engine(engine_id)
        return None if model is None else self._unloads_at(model)

    def join(
        self, name: str, keep_alive: float | None = None, overrides: Overrides | None = None
    ) -> RunningLoad:
        """Wait for a model, and begin its load where nobody did.

        Raises HostError(not_found), and for a while after a load that failed the same again.
        """
        model = self._found(name)
        if self._closing:
            raise refusals.closing()
        if keep_alive is not None:
            model.keep_alive = keep_alive
        if model.load is None:
            if model.problem is not None and time.monotonic() - model.failed < _PAUSE:
                raise HostError.from_problem(model.problem)
            model.load = RunningLoad(name, asyncio.get_running_loop().create_future(), overrides)
            # Nobody may be there any more to read how it ended.
            model.load.done.add_done_callback(lambda done: done.cancelled() or done.exception())
            load = model.load
            load.task = asyncio.create_task(self._carry_out(model, load), name=f"load {name}")
            # One that was cancelled before its first step never came to telling it.
            load.task.add_done_callback(lambda _task: self._ended_unrun(model, load))
            change = OnDemandChange.REQUESTED
        else:
            change = OnDemandChange.USED
        model.load.waiting += 1
        model.last_used, model.used = time.time(), time.monotonic()
        self._tell(model, change)
        return model.load

    def leave(self, load: Load, *, goes_on: bool = False) -> None:
        """Wait no longer; a load that has not begun ends with the last, unless it is to go on."""
        assert isinstance(load, RunningLoad)
        load.waiting -= 1
        load.wanted = load.wanted or goes_on
        nobody = load.waiting == 0 and not load.wanted and not load.begun
        if nobody and not load.done.done():
            self._call_off(load)
        self._wake.set()

    def touch(self, engine: str, keep_alive: float | None = None) -> None:
        """Note that an engine is used now; a keep-alive holds for those that a load started."""
        model = self._of_engine(engine)
        if model is None:
            return
        model.last_used, model.used = time.time(), time.monotonic()
        if keep_alive is not None:
            model.keep_alive = keep_alive
            self._wake.set()

    def activity(self, engine: str, active: int) -> None:
        """Told by the endpoint: how many requests an engine answers now."""
        self.touch(engine)
        model = self._of_engine(engine)
        if model is None or model.busy is bool(active):
            return
        model.busy = bool(active)
        self._tell(model, OnDemandChange.USED)
        if not active:
            self._wake.set()

    def unload(self, name: str) -> None:
        """Drain and stop a model that a load started, for a client.

        Raises HostError(not_found), HostError(conflict) for one that a person started or pinned.
        """
        if self._found(name).entry.pinned:
            raise refusals.pinned(name)
        self.end(name)

    def end(self, name: str) -> None:
        """Drain and stop a model that a load started, pinned or not.

        Raises HostError(not_found), HostError(conflict) for one that a person started.
        """
        model = self._found(name)
        engine = self._engine_of(model)
        if model.load is not None and not model.load.begun:
            self._call_off(model.load)
        if engine is None:
            return
        if engine.id != model.engine:
            raise refusals.started_by_hand(name, engine.id)
        self._end(model, engine, OnDemandChange.ASKED)

    # What may end for another

    def evictable(self) -> dict[str, float]:
        """Return when each engine was used last that may be ended for another, by its id."""
        return {
            model.engine: model.used
            for model in self._models.values()
            if model.engine is not None and not model.entry.pinned and self._is_serving(model.engine)
        }

    def is_idle(self, engine: str) -> bool:
        """Return True for an engine that nobody asks, and nobody is about to ask."""
        model = self._of_engine(engine)
        waited_for = model is not None and (model.load or (model.loaded_by and model.loaded_by.waiting))
        return not waited_for and self._is_serving(engine) and not self._at_work(engine)

    # Loads

    async def _carry_out(self, model: _Model, load: RunningLoad) -> None:
        """Carry a load out, and tell those that wait how it ended."""
        try:
            await self._load(model, load)
        except asyncio.CancelledError:
            self._cancelled(model, load)
        except HostError as error:
            self._failed(model, load, error.problem)
        except Exception as error:  # noqa: BLE001 - a defect of ours must not leave requests waiting
            _log.exception("%s could not be loaded", load.name)
            self._failed(model, load, defect(error))
        else:
            model.problem = None
            load.done.set_result(None)
            # Those that waited take their places before it can be idle.
            model.loaded_by = load
            self._tell_ended(model, load, OnDemandChange.LOADED)

    async def _load(self, model: _Model, load: RunningLoad) -> None:
        async with self._turn:
            await self._settled(model)
            if (engine := self._engine_of(model)) is not None and engine.state in _SERVING:
                # Started by somebody else, with settings of its own.
                load.overrides = None
                return
            overrides = model.entry.launch.overrides
            if load.overrides is not None:
                overrides = overrides.model_copy(update=load.overrides.model_dump(exclude_none=True))
            plan = await self._plan(
                model.entry.launch.model_copy(update={"name": load.name, "overrides": overrides})
            )
            # Nothing is awaited from the choice of what ends to the start.
            for ref in plan.instead_of:
                if (other := self._of_engine(ref.id)) is not None:
                    self._tell(other, OnDemandChange.EVICTED, tr("for {load}", load=load.name))
            started = self._start(plan)
            model.engine, load.begun = started.id, True
            job = await self._jobs.ended(started.job) if started.job is not None else None
        now = self._engines.get(started.id)
        if now.state not in _SERVING:
            problem = now.problem or (job.error if job is not None else None)
            raise HostError.from_problem(problem or refusals.start_cancelled(load.name).problem)

    async def _settled(self, model: _Model) -> None:
        """Wait until an engine of this name that comes or goes has done so."""
        while (engine := self._engine_of(model)) is not None and engine.state not in _SERVING:
            if engine.job is None:
                await asyncio.sleep(_EVERY)
                continue
            await self._jobs.ended(engine.job)
            if self._engine_of(model) == engine:
                await asyncio.sleep(_EVERY)

    def _call_off(self, load: RunningLoad) -> None:
        """End a load that has not begun; who comes next begins another."""
        model = self._models.get(load.name)
        if model is not None and model.load is load:
            model.load = None
        if load.task is not None:
            load.task.cancel()

    def _ended_unrun(self, model: _Model, load: RunningLoad) -> None:
        if not load.done.done():
            self._cancelled(model, load)

    def _cancelled(self, model: _Model, load: RunningLoad) -> None:
        if self._closing or not load.waiting:
            load.done.cancel()
        else:
            load.done.set_exception(refusals.called_off(load.name))
        self._tell_ended(model, load, OnDemandChange.NOT_WANTED)

    def _failed(self, model: _Model, load: RunningLoad, problem: Problem) -> None:
        model.problem, model.failed, model.engine = problem, time.monotonic(), None
        load.done.set_exception(HostError.from_problem(problem))
        self._tell_ended(model, load, OnDemandChange.FAILED, problem.message)

    def _tell_ended(self, model: _Model, load: RunningLoad, change: OnDemandChange, detail: str = "") -> None:
        model.used = time.monotonic()
        if model.load is load:
            model.load = None
        if self._models.get(load.name) is model:
            self._tell(model, change, detail)
        self._wake.set()

    # Ends

    async def _look_after(self) -> None:
        while True:
            self._wake.clear()
            for model in list(self._models.values()):
                self._look_at(model)
            try:
                async with asyncio.timeout(_EVERY):
                    await self._wake.wait()
            except TimeoutError:
                pass

    def _look_at(self, model: _Model) -> None:
        """End an engine that nobody asked for long enough, and notice one that has ended."""
        if model.engine is None or model.load is not None:
            return
        engine = next((one for one in self._engines.alive() if one.id == model.engine), None)
        if engine is None:
            model.problem = self._problem_of(model.engine)
            model.engine, model.keep_alive, model.busy = None, None, False
            self._tell(model, OnDemandChange.ENDED)
            return
        due = self._due(model)
        if due is not None and due <= 0 and self.is_idle(engine.id):
            self._end(model, engine, OnDemandChange.IDLE)

    def _end(self, model: _Model, engine: Engine, change: OnDemandChange) -> None:
        try:
            self._engines.stop(engine.id, drain=_DRAIN)
        except HostError as error:
            _log.warning("%s could not be stopped: %s", engine.name, error.problem.sentence())
            return
        self._tell(model, change)

    def _due(self, model: _Model) -> float | None:
        """Seconds until an engine is stopped if nobody asks it; None for never."""
        keep_alive = model.entry.keep_alive if model.keep_alive is None else model.keep_alive
        if keep_alive < 0 or model.entry.pinned:
            return None
        return keep_alive - (time.monotonic() - model.used)

    # How it is

    def _shown(self, model: _Model) -> OnDemandModel:
        engine = self._engine_of(model)
        by_hand = engine is not None and engine.id != model.engine
        return OnDemandModel(
            name=model.entry.name,
            launch=model.entry.launch,
            command=model.command,
            state=self._state(model, engine),
            keep_alive=model.entry.keep_alive if model.keep_alive is None else model.keep_alive,
            pinned=model.entry.pinned,
            at_start=model.entry.at_start,
            engine=engine.id if engine is not None else None,
            by_hand=by_hand,
            waiting=model.load.waiting if model.load is not None else 0,
            last_used=model.last_used,
            unloads_at=None if by_hand else self._unloads_at(model),
            problem=model.problem,
        )

    @staticmethod
    def _state(model: _Model, engine: Engine | None) -> OnDemandState:
        if engine is not None and engine.state in _SERVING:
            return OnDemandState.LOADED
        if model.load is not None or (engine is not None and engine.state in _STARTING):
            return OnDemandState.LOADING
        return OnDemandState.LOADABLE if engine is None else OnDemandState.UNLOADING

    def _unloads_at(self, model: _Model) -> float | None:
        due = self._due(model)
        if due is None or model.engine is None or not self.is_idle(model.engine):
            return None
        return time.time() + max(due, 0.0)

    def _engine_of(self, model: _Model) -> Engine | None:
        """The engine that answers under a model's name, or is about to, or ends; a serving one first."""
        alive = [engine for engine in self._engines.alive() if engine.name == model.entry.name]
        return max(alive, key=lambda engine: engine.state in _SERVING, default=None)

    def _of_engine(self, engine_id: str) -> _Model | None:
        return next((model for model in self._models.values() if model.engine == engine_id), None)

    def _problem_of(self, engine_id: str) -> Problem | None:
        """The problem of an engine that has ended, as long as it is remembered."""
        return next((one.problem for one in self._engines.all() if one.id == engine_id), None)

    def _is_there(self, model: _Model) -> bool:
        """Return True while an engine that a load of this model started runs, or is about to."""
        return model.load is not None or any(one.id == model.engine for one in self._engines.alive())

    def _is_serving(self, engine_id: str) -> bool:
        return any(engine.id == engine_id for engine in self._engines.serving())

    def _found(self, name: str) -> _Model:
        model = self._models.get(name)
        if model is None:
            raise refusals.unknown(name, self._models)
        return model

    def _tell(self, model: _Model, change: OnDemandChange, detail: str = "") -> None:
        self._publish(OnDemandEvent(change=change, model=self._shown(model), detail=detail))
