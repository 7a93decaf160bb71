"""Promotions: a public id led to an engine after the cut-over's requests, and what it led to ended."""

import shlex
import time
from dataclasses import dataclass
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.findings.table import finding
from engine_host.core.jobs import JobControl, JobRunner, telling_what_is
from engine_host.core.outside.model_ids import check_id
from engine_host.gateway.routing.book import RouteBook
from engine_host.operations.performs import performs
from engine_host.operations.routes.cutover import CutOverOperations, steps_of
from engine_host.operations.staging.leading import as_target, routes_to, running_targets
from engine_host.operations.staging.places import Places, let_finish, until_gone
from engine_host.operations.staging.promoted import PromotionBook
from engine_host.protocol.base import Severity
from engine_host.protocol.endpoint.routes import Route, RouteTargets
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.operations import remote_staging as ops
from engine_host.protocol.remote.host_command import for_host
from engine_host.protocol.remote.hosts import THIS_MACHINE
from engine_host.protocol.remote.install import PlannedChange, RemoteChange
from engine_host.protocol.remote.staging import (
    PromoteOnHost,
    Promotion,
    PromotionPage,
    PromotionPlan,
    TargetEngine,
)


@dataclass(frozen=True)
class _Look:
    """A promotion before it begins: the route as it is, and the plan."""

    old: Route | None
    plan: PromotionPlan
    after: RouteTargets


class PromotionOperations:
    """Leads public ids to engines of other machines, or of this one as `local`."""

    def __init__(
        self,
        places: Places,
        book: RouteBook,
        cutovers: CutOverOperations,
        jobs: JobRunner,
        promoted: PromotionBook,
        events: EventLog,
    ) -> None:
        self._places = places
        self._book = book
        self._cutovers = cutovers
        self._jobs = jobs
        self._promoted = promoted
        self._events = events

    @performs(ops.PROMOTIONS)
    def page(self, name: str) -> PromotionPage:
        """Return the promotions to engines of a machine that still hold. Raises HostError(not_found)."""
        self._known(name)
        found = tuple(one for one in self._promoted.standing(self._book.saved) if one.host == name)
        return PromotionPage(seq=self._events.seq, promotions=found)

    @performs(ops.PLAN_PROMOTION)
    async def plan(self, name: str, asked: PromoteOnHost) -> PromotionPlan:
        """Return what a promotion would do. Raises HostError: not_found, setting_invalid, conflict."""
        return (await self._look(name, asked)).plan

    @performs(ops.PROMOTE)
    async def promote(self, name: str, asked: PromoteOnHost) -> Job:
        """Promote an engine. Raises HostError: not_found, setting_invalid, conflict, and of findings."""
        look = await self._look(name, asked)
        refuse(look.plan.findings)
        return self._jobs.start(
            JobKind.ROUTE_PROMOTE,
            tr("Lead {route} to {self}", route=asked.route, self=self._target(name, asked.engine)),
            f"route {asked.route}",
            look.plan.command,
            lambda control: telling_what_is(control, self._promote(control, name, asked, look)),
            machines=self._places.machines_of(
                (*(look.old.targets.engines if look.old is not None else ()), *look.after.engines)
            ),
        )

    async def _promote(
        self, control: JobControl, name: str, asked: PromoteOnHost, look: _Look
    ) -> dict[str, Any]:
        target, ends = self._target(name, asked.engine), look.plan.ends
        route = look.old or Route(id=asked.route, targets=look.after, changed_at=time.time())
        moved = await self._cutovers.move(control, route, look.after, more=len(ends), is_new=look.old is None)
        done = Promotion(
            id=asked.route,
            host=name,
            target=target,
            route=moved.route,
            before=look.plan.before,
            checks=moved.checks,
            at=time.time(),
            back=f"sndr host rollback {shlex.quote(asked.route)}",
        )
        # Kept before anything is ended: whatever happens from here on can be taken back.
        self._promoted.keep(done)
        control.left = _left(done, ends)
        steps = steps_of(look.after)
        for number, one in enumerate(ends, start=1):
            control.step(
                steps + number,
                steps + len(ends),
                tr("end"),
                tr("{target}, once its requests have ended", target=one.target),
            )
            done = await self._ended(control, done, one, ends[number:])
            self._promoted.keep(done)
            control.left = _left(done, ends[number:])
        control.left = ""
        return done.model_dump(mode="json")

    async def _ended(
        self, control: JobControl, done: Promotion, one: TargetEngine, later: tuple[TargetEngine, ...]
    ) -> Promotion:
        """End what a route led to; where that does not work the promotion says so, and holds."""
        try:
            place = self._places.of(one.machine)
            if await let_finish(place, one.id):
                if (why := await self._needed(done, one)) is not None:
                    kept = finding("promote.kept", target=one.target, why=why)
                    return done.model_copy(update={"findings": (*done.findings, kept)})
                # Kept before it is ended: a roll-back knows how to start it, whatever happens meanwhile.
                ending = done.model_copy(update={"ending": (*done.ending, one)})
                self._promoted.keep(ending)
                done = ending
                control.left = _left(done, later)
                await place.stop(one.id)
                await until_gone(place, one.id)
                rest = tuple(other for other in done.ending if other != one)
                return done.model_copy(update={"ended": (*done.ended, one), "ending": rest})
            why = "Requests still go on after ten minutes."
        except HostError as error:
            why = error.problem.sentence()
        command = for_host(f"sndr stop {shlex.quote(one.name)}", one.machine)
        left = finding("promote.not-ended", target=one.target, why=why, engine=one.name, command=command)
        return done.model_copy(update={"findings": (*done.findings, left)})

    async def _needed(self, done: Promotion, one: TargetEngine) -> str | None:
        """Return why an engine goes on though the promotion was to end it; None where nothing needs it.

        Minutes may have gone by since the flip. Raises HostError where its machine does not answer.
        """
        routes = await routes_to(self._places, one, self._book.saved.values())
        if routes:
            return _leads(routes)
        if self._book.saved.get(done.id) != done.route:
            return f"{done.id} was changed meanwhile"
        return None

    async def _look(self, name: str, asked: PromoteOnHost) -> _Look:
        self._known(name)
        check_id(asked.route)
        target = self._target(name, asked.engine)
        old = self._book.saved.get(asked.route)
        # What is not said stays as it was, as with a cut-over.
        kept = old.targets.model_dump() if old is not None else {}
        after = RouteTargets.model_validate({**kept, "engines": (target,)})
        if old is not None and old.targets == after:
            raise HostError(
                Reason.CONFLICT,
                tr("{route} leads to {target} already.", route=asked.route, target=target),
                cause="A promotion leads a public id elsewhere, and this one is where it was to be led.",
                fix=Fix(text="See what it leads to.", command="sndr routes list"),
            )
        findings: list[Finding] = []
        checks: tuple[str, ...] = ()
        try:
            checks = self._cutovers.requests(asked.route, after)
        except HostError as error:
            findings.append(self._cannot(name, asked, error))
        ends, stays = await self._old_engines(old, asked, after)
        word = " --stop-old" if asked.stop_old else ""
        words = [asked.route, target.partition("/")[2] if name != THIS_MACHINE else target]
        plan = PromotionPlan(
            route=asked.route,
            before=old.targets if old is not None else None,
            after=after,
            checks=checks,
            ends=ends,
            changes=_changes(old, after, ends),
            findings=(*findings, *stays),
            command=f"sndr host promote {name} {shlex.join(words)}{word}",
            same_as=f"sndr routes cutover {shlex.join([asked.route, target])}" if old and not ends else "",
        )
        return _Look(old, plan, after)

    def _cannot(self, name: str, asked: PromoteOnHost, error: HostError) -> Finding:
        engine = self._target(name, asked.engine).rpartition("/")[2]
        if name != THIS_MACHINE:
            self._places.hosts.look(name)
        command = f"sndr run MODEL --name {shlex.quote(engine)} --detach" if name == THIS_MACHINE else None
        return finding(
            "promote.cannot",
            target=self._target(name, asked.engine),
            why=error.problem.cause or error.problem.message,
            machine=name,
            engine=shlex.quote(engine),
            route=shlex.quote(asked.route),
            command=command,
        )

    async def _old_engines(
        self, old: Route | None, asked: PromoteOnHost, after: RouteTargets
    ) -> tuple[tuple[TargetEngine, ...], tuple[Finding, ...]]:
        """Return the engines that end with a promotion, and why others do not."""
        if old is None or not asked.stop_old:
            return (), ()
        ends: list[TargetEngine] = []
        kept: list[Finding] = []
        # As they will be: the new target may be led to by a preset or a model that others are of, too.
        routes = {**self._book.saved, old.id: old.model_copy(update={"targets": after})}
        for name in old.targets.engines:
            if name in after.engines:
                continue
            try:
                for engine in await running_targets(self._places, name):
                    one = as_target(self._places, name, engine)
                    if any((other.machine, other.id) == (one.machine, one.id) for other in ends):
                        continue
                    if leads := await routes_to(self._places, one, routes.values()):
                        kept.append(finding("promote.kept", target=name, why=_leads(leads)))
                    else:
                        ends.append(one)
            except HostError as error:
                kept.append(finding("promote.kept", target=name, why=error.problem.sentence()))
        return tuple(ends), tuple(kept)

    def _target(self, host: str, engine: str) -> str:
        if host == THIS_MACHINE:
            return engine
        return f"{host}/{engine.removeprefix(f'{host}/')}"

    def _known(self, name: str) -> None:
        if name != THIS_MACHINE:
            self._places.hosts.book.get(name)


def refuse(findings: tuple[Finding, ...]) -> None:
    """Raise HostError of the first finding that stops what was planned."""
    for one in findings:
        if one.severity is Severity.ERROR:
            raise HostError(
                one.reason or Reason.CONFLICT,
                one.message,
                cause="Nothing was changed.",
                fix=one.fix,
                evidence={"finding": one.id, **one.evidence},
            )


def _leads(routes: tuple[str, ...]) -> str:
    return f"{', '.join(routes)} {'leads' if len(routes) == 1 else 'lead'} there"


def _left(done: Promotion, later: tuple[TargetEngine, ...]) -> str:
    """Return where everything is while the engines that were led to before are ended."""
    return tr(
        "{route} leads to {target}[; ended: {ended}][; being ended: {ending}][; going on: {later}].",
        route=done.id,
        target=done.target,
        **{
            name: [one.target for one in engines] or None
            for name, engines in (("ended", done.ended), ("ending", done.ending), ("later", later))
        },
    )


def _changes(
    old: Route | None, after: RouteTargets, ends: tuple[TargetEngine, ...]
) -> tuple[PlannedChange, ...]:
    before = list(old.targets.engines) if old is not None else []
    found = [
        PlannedChange(kind=RemoteChange.REMOVE, what=f"leads to {one}")
        for one in before
        if one not in after.engines
    ]
    found += [
        PlannedChange(kind=RemoteChange.ADD, what=f"leads to {one}")
        for one in after.engines
        if one not in before
    ]
    note = tr("once its requests have ended")
    return (
        *found,
        *(PlannedChange(kind=RemoteChange.REMOVE, what=f"engine {one.target}", note=note) for one in ends),
    )
