"""Roll-backs: a public id led where it led before, and the engine that was ended there started anew."""

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.core.jobs import JobControl, JobRunner, telling_what_is
from engine_host.gateway.routing.book import RouteBook
from engine_host.operations.performs import performs
from engine_host.operations.staging.leading import as_target, running_targets
from engine_host.operations.staging.places import (
    LEAVING,
    Places,
    alive,
    bring_up,
    is_unasked,
    stage_of,
    until_left,
    until_listed,
    until_up,
)
from engine_host.operations.staging.promote import refuse
from engine_host.operations.staging.promoted import PromotionBook
from engine_host.protocol.endpoint.routes import Route, RouteTargets
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding, StartRequest
from engine_host.protocol.operations import remote_staging as ops
from engine_host.protocol.remote.hosts import RemoteMode
from engine_host.protocol.remote.install import PlannedChange, RemoteChange
from engine_host.protocol.remote.staging import Promotion, PromotionPlan, TargetEngine


@dataclass(frozen=True)
class _Look:
    """A roll-back before it begins; `waits` are engines that are on their way up already."""

    route: Route
    promotion: Promotion | None
    plan: PromotionPlan
    waits: tuple[TargetEngine, ...] = ()


class RollbackOperations:
    """Takes promotions and other changes of routes back."""

    def __init__(
        self,
        places: Places,
        book: RouteBook,
        jobs: JobRunner,
        promoted: PromotionBook,
        changed: Callable[[], None],
    ) -> None:
        """`changed` is told when a route leads elsewhere."""
        self._places = places
        self._book = book
        self._jobs = jobs
        self._promoted = promoted
        self._changed = changed

    @performs(ops.PLAN_ROLLBACK)
    async def plan(self, route_id: str) -> PromotionPlan:
        """Return what a roll-back would do. Raises HostError: not_found, conflict where there is none."""
        return (await self._look(route_id)).plan

    @performs(ops.ROLLBACK)
    async def roll_back(self, route_id: str) -> Job:
        """Roll back. Raises HostError: not_found, conflict, and what stops it."""
        look = await self._look(route_id)
        refuse(look.plan.findings)
        return self._jobs.start(
            JobKind.ROUTE_ROLLBACK,
            tr("Lead {route_id} where it led before", route_id=route_id),
            f"route {route_id}",
            look.plan.command,
            lambda control: telling_what_is(control, self._roll_back(control, look)),
            machines=self._places.machines_of(
                (
                    *look.route.targets.engines,
                    *(look.plan.after.engines if look.plan.after is not None else ()),
                )
            ),
        )

    async def _roll_back(self, control: JobControl, look: _Look) -> dict[str, Any]:
        route, starts = look.route, look.plan.starts
        steps = len(starts) + 1
        control.undone = tr("{route} was not changed.", route=route.id)
        started: list[TargetEngine] = []
        for number, one in enumerate(starts, start=1):
            control.step(number, steps, tr("start"), one.target)
            if (anew := await self._started(control, number, steps, one)) is not None:
                started.append(anew)
        for one in look.waits:
            await until_up(self._places.of(one.machine), one.id, lambda _engine: None)
        control.step(steps, steps, tr("flip"))
        if self._book.saved.get(route.id) != route:
            raise HostError(
                Reason.CONFLICT,
                tr("{route} was changed while it was taken back.", route=route.id),
                cause="Another command or window set or removed it meanwhile.",
                fix=Fix(text="Look at it, and begin again.", command="sndr routes list"),
            )
        if look.plan.after is None:
            self._book.remove(route.id)
        else:
            self._book.back(route.id)
        control.undone, control.left = "", ""
        self._changed()
        if look.promotion is not None:
            self._promoted.forget(route.id)
        return Promotion(
            id=route.id,
            host=look.promotion.host if look.promotion is not None else "",
            route=self._book.saved.get(route.id),
            before=look.plan.before,
            started=tuple(started),
            at=time.time(),
            findings=look.plan.findings,
            back=f"sndr routes back {shlex.quote(route.id)}" if look.plan.after is not None else "",
        ).model_dump(mode="json")

    async def _started(
        self, control: JobControl, number: int, steps: int, one: TargetEngine
    ) -> TargetEngine | None:
        """Start an engine as it was started before; None where it goes on, as its stop was cancelled.

        Raises HostError; then nothing was led anywhere.
        """
        place = self._places.of(one.machine)
        if not await until_left(place, one.id):
            await until_up(place, one.id, lambda _engine: None)
            return None
        plan = await place.plan_again(one.id)
        refuse(plan.findings)

        def tell(seen: Engine) -> None:
            control.step(
                number,
                steps,
                tr("start"),
                tr("{target}: {stage_of}", target=one.target, stage_of=stage_of(seen)),
            )

        request = StartRequest(plan=plan.id, replace=False)
        engine = await bring_up(
            place, request, control, tr("{target} may still be loading.", target=one.target), tell
        )
        control.left = tr(
            "[{before} ]{target} was started and goes on.", before=control.left, target=one.target
        )
        if one.machine:
            await until_listed(self._places.hosts, one.machine, one.name)
        return one.model_copy(update={"id": engine.id})

    async def _look(self, route_id: str) -> _Look:
        route = self._book.get(route_id)
        promotion = self._promoted.of(route)
        after = route.before
        if after is None and promotion is None:
            # It says so itself, and changes nothing.
            self._book.back(route_id)
        starts: list[TargetEngine] = []
        waits: list[TargetEngine] = []
        findings: list[Finding] = []
        if promotion is None and any(one.id == route_id for one in self._promoted.all()):
            findings.append(finding("rollback.moved", route=route_id))
        for target in after.engines if after is not None else ():
            known = _ended_at(target, promotion)
            try:
                starting, waiting = await self._brought(target, known)
                starts += starting
                waits += waiting
            except HostError as error:
                last = known or await self._last(target)
                findings.append(_no_start(route_id, target, last, error))
        word = shlex.quote(route_id)
        plan = PromotionPlan(
            route=route_id,
            before=route.targets,
            after=after,
            starts=tuple(starts),
            changes=_changes(route.targets, after, tuple(starts)),
            findings=tuple(findings),
            command=f"sndr host rollback {word}",
            same_as="" if starts or after is None else f"sndr routes back {word}",
        )
        return _Look(route, promotion, plan, tuple(waits))

    async def _last(self, target: str) -> tuple[TargetEngine, ...]:
        """Return the engine of that name that ran last, for its command; nothing where that is not known."""
        machine = self._places.machine_of(target)
        name = target.partition("/")[2] if machine else target
        try:
            engines = await self._places.of(machine).engines()
        except HostError:
            return ()
        return tuple(as_target(self._places, target, one) for one in engines if one.name == name)[:1]

    async def _brought(
        self, target: str, known: tuple[TargetEngine, ...]
    ) -> tuple[list[TargetEngine], list[TargetEngine]]:
        """Return what has to be started for a target to answer, and what is on its way up or runs.

        `known` are the engines of it that a promotion ended. Raises HostError that says why none can be.
        """
        found = await self._found(target, known)
        if not found and self._answers_without(target):
            return [], []
        waits = [as_target(self._places, target, one) for one in found if one.state not in LEAVING]
        # What is being stopped just now is waited for, and started as it was.
        leaving = {one.name: as_target(self._places, target, one) for one in found if one.state in LEAVING}
        ended = known or (() if waits else tuple(leaving.values()))
        up = {one.name for one in waits}
        starts = [leaving.get(one.name, one) for one in ended if one.name not in up]
        if not starts and not waits:
            raise HostError(
                Reason.NOT_FOUND,
                "How it was started is not known here.",
                cause="None of the engines that are still known there has its name.",
                fix="Start it with its own command.",
            )
        for one in starts:
            refuse((await self._places.of(one.machine).plan_again(one.id)).findings)
        return starts, waits

    async def _found(self, target: str, known: tuple[TargetEngine, ...]) -> list[Engine]:
        """Return the engines of a target that have a process. Raises HostError where that cannot be told."""
        machine = self._places.machine_of(target)
        if machine and self._places.hosts.book.get(machine).mode is RemoteMode.AGENTLESS:
            return []
        if not known:
            return await running_targets(self._places, target)
        # Another engine of the same preset or model is not the one that was ended.
        names = {one.name for one in known}
        return [one for one in alive(await self._places.of(machine).engines()) if one.name in names]

    def _answers_without(self, target: str) -> bool:
        """Return True for what answers though we started nothing: on demand, or on an agentless machine."""
        machine = self._places.machine_of(target)
        if not machine:
            return self._places.here.is_on_demand(target)
        engine = target.partition("/")[2]
        return any(model.id == engine for model in self._places.hosts.shown(machine).models)


def _ended_at(target: str, promotion: Promotion | None) -> tuple[TargetEngine, ...]:
    """Return the engines of a target that a promotion ended, or was about to."""
    if promotion is None:
        return ()
    return tuple(one for one in (*promotion.ended, *promotion.ending) if one.target == target)


def _no_start(route: str, target: str, known: tuple[TargetEngine, ...], error: HostError) -> Finding:
    why = " ".join(part for part in (error.problem.message, error.problem.cause) if part)
    if is_unasked(error):
        host = target.partition("/")[0]
        return finding("rollback.not-asked", target=target, why=why, host=host)
    fix = error.problem.fix
    command = (known[0].command if known else None) or (fix.command if fix is not None else None)
    word = shlex.quote(route)
    if not command:
        return finding("rollback.no-start/unknown", target=target, why=why, route=word)
    return finding("rollback.no-start", target=target, why=why, route=word, start=command)


def _changes(
    before: RouteTargets, after: RouteTargets | None, starts: tuple[TargetEngine, ...]
) -> tuple[PlannedChange, ...]:
    back = after.engines if after is not None else ()
    found = [PlannedChange(kind=RemoteChange.ADD, what=f"engine {one.target}") for one in starts]
    found += [
        PlannedChange(kind=RemoteChange.REMOVE, what=f"leads to {one}")
        for one in before.engines
        if one not in back
    ]
    found += [
        PlannedChange(kind=RemoteChange.ADD, what=f"leads to {one}")
        for one in back
        if one not in before.engines
    ]
    if after is None:
        found.append(PlannedChange(kind=RemoteChange.REMOVE, what="the route: it led nowhere before"))
    return tuple(found)
