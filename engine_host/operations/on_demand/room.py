"""The plan of a load for which there is room, once what may end for it has been chosen."""

import asyncio
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from engine_host.core.errors import HostError
from engine_host.core.sizes import size_text
from engine_host.engines.unstartable import refuse_unstartable
from engine_host.launch.eviction import Evictable, evictions
from engine_host.launch.placement import FoundMemory
from engine_host.launch.room import RoomCheck
from engine_host.operations.plans import PlanOperations
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest

_PATIENCE = 60.0
_EVERY = 0.5
_RETRY = 10


_STAYS = "stays"


@dataclass(frozen=True)
class _Holder:
    """An engine that holds memory, and why it goes on."""

    engine: str
    name: str
    bytes: int
    why: str


class LoadRoom:
    """Plans a load, and chooses the idle engines that it has to end first."""

    def __init__(
        self,
        plans: PlanOperations,
        room: RoomCheck,
        engines: Callable[[], Sequence[Engine]],
        evictable: Callable[[], Mapping[str, float]],
        is_idle: Callable[[str], bool],
        patience: float = _PATIENCE,
    ) -> None:
        """`evictable`: when each engine that may be ended for another was used last, by id.

        `patience`: seconds that a load waits for one of them to become idle.
        """
        self._plans = plans
        self._room = room
        self._engines = engines
        self._evictable = evictable
        self._is_idle = is_idle
        self._patience = patience

    async def plan(self, request: LaunchRequest) -> LaunchPlan:
        """Return a plan that fits, and that says which engines it ends first.

        Raises HostError(out_of_memory), its evidence with the code `no_room`, and what planning raises.
        """
        end = time.monotonic() + self._patience
        while True:
            chosen, lacking = await self._fitting(request)
            if chosen is not None:
                # Planning took a moment: one of them may be at work again.
                if all(self._is_idle(ref.id) for ref in chosen.instead_of):
                    return chosen
                continue
            plan, short, found = lacking
            helps = evictions(short, self._candidates(found, (), idle=False)) is not None
            if not helps or time.monotonic() >= end:
                raise self._no_room(plan, short, found, helps=helps)
            await asyncio.sleep(_EVERY)

    async def _fitting(
        self, request: LaunchRequest
    ) -> tuple[LaunchPlan | None, tuple[LaunchPlan, dict[str, int], FoundMemory]]:
        """The plan that fits once idle engines have ended, or None; and the one that ends none."""
        ended: tuple[str, ...] = ()
        first: tuple[LaunchPlan, dict[str, int], FoundMemory] | None = None
        while True:
            plan = await self._plans.plan(request.model_copy(update={"instead_of": ended}))
            short, found = await self._room.shortage(plan)
            first = first or (plan, short, found)
            if not short:
                refuse_unstartable(plan.model_copy(update={"consent": None}))
                return plan, first
            more = evictions(short, self._candidates(found, ended, idle=True))
            if not more:
                return None, first
            ended = (*ended, *more)

    def _candidates(self, found: FoundMemory, ended: Iterable[str], *, idle: bool) -> list[Evictable]:
        return [
            Evictable(engine, found.held[engine], last_used)
            for engine, last_used in self._evictable().items()
            if engine in found.held and engine not in ended and (self._is_idle(engine) or not idle)
        ]

    def _no_room(
        self, plan: LaunchPlan, short: Mapping[str, int], found: FoundMemory, *, helps: bool
    ) -> HostError:
        """The refusal of a load; `helps`: there is room once engines that are at work may end."""
        device = max(short, key=lambda one: short[one])
        where = next(
            (f"GPU {gpu.index} ({gpu.name})" for gpu in found.gpus if gpu.uuid == device), "main memory"
        )
        holders = self._holders(device, found)
        told = ", ".join(f"{one.name} ({size_text(one.bytes)}, {one.why})" for one in holders)
        staying = next((one.name for one in holders if one.why == _STAYS), None)
        evidence = {
            "code": "no_room",
            "device": device,
            "missing_by_device": dict(short),
            "needed": next((need.bytes for need in plan.needs if need.device == device), None),
            "holders": [asdict(one) for one in holders],
        }
        return HostError(
            Reason.OUT_OF_MEMORY,
            tr(
                "There is no room for {plan}: {short} are missing in {where} (estimated).",
                plan=plan.name,
                short=size_text(short[device]),
                where=where,
            ),
            cause=tr("Memory there is held by {told}.", told=told)
            if told
            else "Other programs hold the memory.",
            fix=Fix(
                text="Try again in a moment."
                if helps
                else "End what stays, or give it fewer streams or a shorter context.",
                command="sndr status" if staying is None else f"sndr stop {shlex.quote(staying)}",
            ),
            evidence=evidence | ({"retry_after": _RETRY} if helps else {}),
        )

    def _holders(self, device: str, found: FoundMemory) -> list[_Holder]:
        evictable = self._evictable()
        names = {engine.id: engine.name for engine in self._engines()}
        return [
            _Holder(
                engine,
                names[engine],
                held[device],
                _STAYS if engine not in evictable else "idle" if self._is_idle(engine) else "at work",
            )
            for engine, held in found.held.items()
            if held.get(device) and engine in names
        ]
