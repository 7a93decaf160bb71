"""Engines of one machine, this one or another: looked at, started from plans, let finish, and ended."""

import asyncio
import contextlib
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from engine_host.core.errors import HostError
from engine_host.core.jobs import JobControl
from engine_host.core.likely_causes import slow_end
from engine_host.engines.manager import EngineManager
from engine_host.operations.engines import EngineOperations
from engine_host.operations.staging.far_host import FarHost, far_host
from engine_host.protocol.endpoint.routes import Route
from engine_host.protocol.engines import Engine, EngineState, StopEngine
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan, StartRequest
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from engine_host.protocol.operations.remote_hosts import OF_SSH
from engine_host.protocol.remote.hosts import THIS_MACHINE
from engine_host.remote.hosts import RemoteHosts

GONE = frozenset({EngineState.UNLOADED, EngineState.FAILED})
UP = frozenset({EngineState.READY, EngineState.BUSY})
LEAVING = frozenset({EngineState.DRAINING, EngineState.STOPPING})
_NO_ANSWER = frozenset(
    {*OF_SSH, Reason.HOST_UNREACHABLE, Reason.HOST_GONE, Reason.PROTOCOL_MISMATCH} - {Reason.NOT_FOUND}
)
_LOOK = 0.3
"""Seconds between two looks at an engine."""
_PATIENCE = 600.0
"""Seconds that requests of an engine have to end, before it is left running."""
_STOP = 60.0
_LISTED = 15.0
"""Seconds until this machine's endpoint knows an engine that came up elsewhere."""


class Place(Protocol):
    """The engines of one machine."""

    async def engines(self) -> Sequence[Engine]:
        """Return all of this run. Raises HostError where the machine does not answer."""

    async def engine(self, engine_id: str) -> Engine:
        """Return one by id or public name. Raises HostError(not_found)."""

    async def routes(self) -> Sequence[Route]:
        """Return the routes of its own endpoint, but for this machine's. Raises HostError."""

    async def plan_again(self, engine_id: str) -> LaunchPlan:
        """Return the plan of its start once more. Raises HostError."""

    async def start(self, asked: StartRequest) -> Engine:
        """Start a plan; answers at once. Raises HostError."""

    async def stop(self, engine_id: str, *, now: bool = False) -> Engine:
        """Drain and end an engine; answers at once. Raises HostError."""


class Here:
    """The engines of this machine; `is_on_demand` tells whether a request loads the model of a name."""

    def __init__(
        self, manager: EngineManager, operations: EngineOperations, is_on_demand: Callable[[str], bool]
    ) -> None:
        self._manager = manager
        self._operations = operations
        self.is_on_demand = is_on_demand

    async def engines(self) -> Sequence[Engine]:
        """Return all of this run."""
        return self._manager.all()

    async def engine(self, engine_id: str) -> Engine:
        """Return one by id or public name. Raises HostError(not_found)."""
        return self._manager.get(engine_id)

    async def routes(self) -> Sequence[Route]:
        """Return none: whoever looks at this machine has its routes at hand."""
        return ()

    async def plan_again(self, engine_id: str) -> LaunchPlan:
        """Return the plan of its start once more. Raises HostError."""
        return await self._operations.plan_again(engine_id)

    async def start(self, asked: StartRequest) -> Engine:
        """Start a plan; answers at once. Raises HostError."""
        return await self._operations.start(asked)

    async def stop(self, engine_id: str, *, now: bool = False) -> Engine:
        """Drain and end an engine; answers at once. Raises HostError(not_found)."""
        return self._manager.stop(engine_id, now=now)


class There:
    """The engines of another machine, by its engine host."""

    def __init__(self, far: FarHost) -> None:
        self.far = far

    async def engines(self) -> Sequence[Engine]:
        """Return all of its run. Raises HostError."""
        return (await self.far.call(ops.ENGINES)).engines

    async def engine(self, engine_id: str) -> Engine:
        """Return one by id or public name. Raises HostError(not_found), and of the connection."""
        return await self.far.call(ops.ENGINE, id=engine_id)

    async def routes(self) -> Sequence[Route]:
        """Return the routes of its endpoint. Raises HostError."""
        return tuple(one.route for one in (await self.far.call(endpoint_ops.ROUTES)).routes)

    async def plan_again(self, engine_id: str) -> LaunchPlan:
        """Return the plan of its start once more. Raises HostError."""
        return await self.far.call(ops.PLAN_AGAIN, id=engine_id)

    async def start(self, asked: StartRequest) -> Engine:
        """Start a plan; answers at once. Raises HostError."""
        return await self.far.call(ops.START, asked)

    async def stop(self, engine_id: str, *, now: bool = False) -> Engine:
        """Drain and end an engine; answers at once. Raises HostError."""
        return await self.far.call(ops.STOP, StopEngine(now=now), id=engine_id)


class Places:
    """All machines by name; this one is `local`, or no name at all."""

    def __init__(self, here: Here, hosts: RemoteHosts) -> None:
        self.here = here
        self.hosts = hosts

    def of(self, machine: str) -> Place:
        """Return a machine's engines. Raises HostError: not_found, unsupported, and of the connection."""
        if machine in ("", THIS_MACHINE):
            return self.here
        return There(far_host(self.hosts, machine))

    def machine_of(self, target: str) -> str:
        """Return the machine of what a route leads to; empty for this one."""
        host, separator, engine = target.partition("/")
        return host if separator and engine and host in self.hosts.book.all else ""

    def machines_of(self, targets: Iterable[str]) -> tuple[str, ...]:
        """Return the other machines among what routes lead to, each once."""
        return tuple(dict.fromkeys(filter(None, map(self.machine_of, targets))))


def alive(engines: Sequence[Engine]) -> list[Engine]:
    """Return those that have a process or are about to."""
    return [one for one in engines if one.state not in GONE]


def is_unasked(error: HostError) -> bool:
    """Return True if a machine did not answer: nothing was refused, and what was asked may be done there."""
    return error.reason in _NO_ANSWER


async def bring_up(
    place: Place, request: StartRequest, control: JobControl, loading: str, tell: Callable[[Engine], None]
) -> Engine:
    """Start a plan and wait until it is verified; a cancel meanwhile ends what was started.

    `control.left` says `loading` too for as long as that may be so, also while the answer to the start is
    on its way. Raises HostError: what refuses the start, its own problem, and of the connection.
    """
    before = control.left
    control.left = tr("[{before} ]{loading}", before=before, loading=loading)
    begun = asyncio.ensure_future(place.start(request))
    try:
        try:
            engine = await until_up(place, (await asyncio.shield(begun)).id, tell)
        except asyncio.CancelledError:
            # What is being started has no name yet by which it could be ended: its answer is waited for.
            with contextlib.suppress(HostError):
                await place.stop((await begun).id, now=True)
                control.left = before
            raise
    except HostError as error:
        if not is_unasked(error):
            control.left = before
        raise
    control.left = before
    return engine


async def until_up(place: Place, engine_id: str, tell: Callable[[Engine], None]) -> Engine:
    """Wait until a start is verified; `tell` hears of each look.

    Raises HostError with the start's problem.
    """
    while (engine := await place.engine(engine_id)).state not in UP:
        tell(engine)
        if engine.state in GONE:
            raise HostError.from_problem(_failure(engine))
        await asyncio.sleep(_LOOK)
    return engine


async def let_finish(place: Place, engine_id: str) -> bool:
    """Wait until an engine answers no request; False where one still goes on after ten minutes."""
    end = asyncio.get_running_loop().time() + _PATIENCE
    while (await place.engine(engine_id)).state is EngineState.BUSY:
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(_LOOK)
    return True


async def until_gone(place: Place, engine_id: str) -> None:
    """Wait until an engine's process is gone. Raises HostError(engine_not_ready) when it stays."""
    await _until(place, engine_id, frozenset(EngineState) - GONE)


async def until_left(place: Place, engine_id: str) -> bool:
    """Wait while an engine drains or stops; True if it is gone then, False where its stop was cancelled.

    Raises HostError(engine_not_ready) when that takes too long.
    """
    return (await _until(place, engine_id, LEAVING)).state in GONE


async def until_listed(hosts: RemoteHosts, machine: str, name: str) -> None:
    """Wait until a route can be led to an engine elsewhere, or for as long as that usually takes."""
    hosts.look(machine)
    end = asyncio.get_running_loop().time() + _LISTED
    while asyncio.get_running_loop().time() < end:
        if any(model.id == name for model in hosts.there(machine).models):
            return
        await asyncio.sleep(0.1)


async def _until(place: Place, engine_id: str, passing: frozenset[EngineState]) -> Engine:
    """Wait while an engine is in one of these states."""
    end = asyncio.get_running_loop().time() + _STOP
    while (engine := await place.engine(engine_id)).state in passing:
        if asyncio.get_running_loop().time() > end:
            raise HostError(
                Reason.ENGINE_NOT_READY,
                tr("{engine} is still stopping after {stop:.0f} s.", engine=engine.name, stop=_STOP),
                cause=slow_end(),
                fix=Fix(text="End it at once.", command=f"sndr stop {shlex.quote(engine.name)} --now"),
            )
        await asyncio.sleep(_LOOK)
    return engine


def stage_of(engine: Engine) -> str:
    """Return what a start does now, in words."""
    stage = next((one for one in reversed(engine.stages) if one.ended_at is None), None)
    return f"{stage.name} {stage.detail}".strip()[:200] if stage is not None else engine.state.value


def _failure(engine: Engine) -> Problem:
    problem = engine.problem or Problem(
        reason=Reason.CANCELLED, message=tr("{engine} was stopped before it was ready.", engine=engine.name)
    )
    lines = list(engine.last_lines[-20:])
    if lines and "last_lines" not in problem.evidence:
        problem = problem.model_copy(update={"evidence": {**problem.evidence, "last_lines": lines}})
    return problem
