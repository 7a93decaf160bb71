"""Stages: a preset or a model started on another machine beside what runs there, with no route to it."""

import asyncio
import re
import shlex
from collections.abc import Sequence
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.core.jobs import JobControl, JobRunner, telling_what_is
from engine_host.gateway.routing.book import RouteBook
from engine_host.gateway.routing.resolution import led_by
from engine_host.launch.equivalent_command import equivalent_command
from engine_host.operations.performs import performs
from engine_host.operations.staging.far_host import FarHost, far_host
from engine_host.operations.staging.leading import would_lead
from engine_host.operations.staging.places import There, alive, bring_up, stage_of, until_listed
from engine_host.protocol.base import Severity
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.host import HostInfo
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import MAIN_MEMORY, Finding, LaunchPlan, LaunchRequest, StartRequest
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import remote_staging as ops
from engine_host.protocol.operations import table
from engine_host.protocol.remote.host_command import for_host
from engine_host.protocol.remote.install import PlannedChange, RemoteChange
from engine_host.protocol.remote.staging import StagedEngine, StagedNeed, StageOnHost, StagePlan
from engine_host.remote.hosts import RemoteHosts

_PRESET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


class StageOperations:
    """Starts on other machines that no request is led to."""

    def __init__(self, hosts: RemoteHosts, book: RouteBook, jobs: JobRunner) -> None:
        self._hosts = hosts
        self._book = book
        self._jobs = jobs

    @performs(ops.PLAN_STAGE)
    async def plan(self, name: str, asked: StageOnHost) -> StagePlan:
        """Return what a staging would do. Raises HostError, of the connection and of planning too."""
        return await self._planned(far_host(self._hosts, name), asked)

    @performs(ops.STAGE)
    def stage(self, name: str, asked: StageOnHost) -> Job:
        """Stage it. Raises HostError: not_found, and of the connection."""
        far = far_host(self._hosts, name)
        return self._jobs.start(
            JobKind.HOST_STAGE,
            tr("Stage {what} on {name}", what=asked.what[:100], name=name),
            f"stage {name}",
            _command(name, asked),
            lambda control: telling_what_is(control, self._stage(control, far, asked)),
        )

    async def _stage(self, control: JobControl, far: FarHost, asked: StageOnHost) -> dict[str, Any]:
        control.step(1, 3, tr("Plan it there"), asked.what[:100])
        control.undone = tr("Nothing was started.")
        planned = await self._planned(far, asked)
        if (stopping := _stopping(planned.findings)) is not None:
            raise HostError(
                stopping.reason or Reason.CONFLICT,
                stopping.message,
                fix=stopping.fix,
                evidence={"finding": stopping.id, **stopping.evidence},
            )
        place = There(far)
        control.step(2, 3, tr("Start it there"), planned.target)
        request = StartRequest(plan=planned.plan.id, replace=False, consent=asked.consent)
        control.undone = ""
        loading = tr(
            "{target} may still be loading: sndr --host {host} status", target=planned.target, host=far.name
        )
        try:
            engine = await bring_up(place, request, control, loading, lambda one: _tell(control, one))
        except asyncio.CancelledError:
            control.undone = "" if control.left else tr("{target} was ended again.", target=planned.target)
            raise
        except HostError:
            control.undone = "" if control.left else tr("Nothing of it runs.")
            raise
        await until_listed(self._hosts, far.name, engine.name)
        return StagedEngine(
            host=far.name,
            name=engine.name,
            target=planned.target,
            engine=engine.id,
            context=engine.context,
            ready_after=engine.ready_after,
            promote=planned.promote,
        ).model_dump(mode="json")

    async def _planned(self, far: FarHost, asked: StageOnHost) -> StagePlan:
        if asked.launch.instead_of:
            raise HostError(
                Reason.BAD_REQUEST,
                "A staging ends nothing: it starts beside what runs there.",
                fix=tr(
                    "Leave --instead-of and --replace out, or start it with sndr --host {far} run.",
                    far=far.name,
                ),
                evidence={"field": "instead_of"},
            )
        request = await _request(far, asked)
        running = alive((await far.call(table.ENGINES)).engines)
        try:
            plan = await far.call(table.PLAN, request)
        except HostError as error:
            raise _not_there(far.name, asked.what, error) from error
        if request.name is None and plan.name in {one.name for one in running}:
            request = request.model_copy(update={"name": _free_name(plan.name, running)})
            plan = await far.call(table.PLAN, request)
        target = f"{far.name}/{plan.name}"
        there = (await far.call(endpoint_ops.ROUTES)).routes
        led = [f"{one.route.id} on {far.name}" for one in there if would_lead(one.route, plan, running)]
        led += [route.id for route in self._book.saved.values() if target in route.targets.engines]
        findings = [_of_staging(one, far.name, asked) for one in plan.findings]
        if led:
            findings.append(finding("stage.led_to", target=target, routes=led))
        if asked.route is not None and target in led_by(self._book, asked.route):
            findings.append(finding("stage.promoted", route=asked.route, target=target))
        needs = _needs(plan, await far.call(table.HOST))
        return StagePlan(
            host=far.name,
            name=plan.name,
            target=target,
            plan=plan,
            needs=needs,
            changes=_changes(plan, running, asked.route),
            findings=tuple(_typed(one, far.name) for one in findings),
            promote=_promote(far.name, asked.route, plan.name),
        )


async def _request(far: FarHost, asked: StageOnHost) -> LaunchRequest:
    """Return the start as the host there is asked for it: of a preset where there is one of that name."""
    preset = asked.launch.preset
    if preset is None and not asked.launch.model and _PRESET.fullmatch(asked.what):
        try:
            await far.call(table.PRESET, id=asked.what)
            preset = asked.what
        except HostError as error:
            if error.reason is not Reason.NOT_FOUND:
                raise
    named = {"preset": preset} if preset is not None else {"model": asked.what}
    return asked.launch.model_copy(update={**named, "instead_of": ()})


def _not_there(host: str, what: str, error: HostError) -> HostError:
    """Return the refusal of a plan; of one that knows no such model, with the machine that knows none."""
    problem = error.problem
    if error.reason is not Reason.MODEL_FILE_MISSING or problem.evidence.get("wanted") != what:
        return error
    return HostError(
        error.reason,
        tr("There is no preset and no model {what} on {host}.", what=repr(what[:200]), host=host),
        cause=problem.cause,
        fix=Fix(
            text=tr("See what {host} has; `sndr host send {host} MODEL` carries one there.", host=host),
            command=f"sndr --host {host} models",
        ),
        evidence={**problem.evidence, "host": host},
    )


def _free_name(name: str, running: Sequence[Engine]) -> str:
    taken = {one.name for one in running}
    return next(free for number in range(2, 1000) if (free := f"{name}-{number}") not in taken)


def _needs(plan: LaunchPlan, info: HostInfo) -> tuple[StagedNeed, ...]:
    """Return the memory that it takes of each device there, and what is left of it."""
    free = {MAIN_MEMORY: info.ram_total - info.ram_used}
    names = {MAIN_MEMORY: "main memory"}
    for gpu in info.gpus:
        free[gpu.uuid] = gpu.memory_free
        names[gpu.uuid] = f"GPU {gpu.index} ({gpu.name})"
    found = []
    for need in plan.needs:
        had = free.get(need.device)
        left = had - need.bytes if had is not None and need.bytes is not None else None
        name = names.get(need.device, need.device)
        found.append(StagedNeed(device=name, takes=need.bytes, free=had, left=left))
    return tuple(found)


def _changes(plan: LaunchPlan, running: Sequence[Engine], route: str | None) -> tuple[PlannedChange, ...]:
    new = PlannedChange(kind=RemoteChange.ADD, what=f"engine {plan.name}", note=plan.preset or plan.model)
    stays = [
        PlannedChange(kind=RemoteChange.KEEP, what=f"engine {one.name}", note="goes on") for one in running
    ]
    led = PlannedChange(
        kind=RemoteChange.KEEP,
        what=f"route {route}" if route else "all routes",
        note="leads where it leads" if route else "lead where they lead",
    )
    return (new, *stays, led)


def _promote(host: str, route: str | None, engine: str) -> str:
    public = shlex.quote(route) if route else "PUBLIC_ID"
    return f"sndr host promote {host} {public} {shlex.quote(engine)}"


def _command(host: str, asked: StageOnHost) -> str:
    request = asked.launch.model_copy(update={"model": asked.what, "preset": None})
    command = equivalent_command(request, ("host", "stage", host))
    return f"{command} --for {shlex.quote(asked.route)}" if asked.route else command


def _of_staging(one: Finding, host: str, asked: StageOnHost) -> Finding:
    """Return a finding of a start as it is for a staging, which puts nothing in another's place."""
    if one.id != "name_taken":
        return one
    launch = asked.launch.model_copy(update={"name": one.evidence["free"]})
    command = _command(host, asked.model_copy(update={"launch": launch}))
    return finding("stage.name-taken", host=host, name=one.evidence["name"], command=command)


def _tell(control: JobControl, engine: Engine) -> None:
    control.step(3, 3, tr("Load and verify"), stage_of(engine))


def _stopping(findings: Sequence[Finding]) -> Finding | None:
    return next((one for one in findings if one.severity is Severity.ERROR), None)


def _typed(one: Finding, host: str) -> Finding:
    """Return a finding of that machine with its commands as they are typed here."""
    if one.fix is None or not one.fix.command:
        return one
    return one.model_copy(
        update={"fix": one.fix.model_copy(update={"command": for_host(one.fix.command, host)})}
    )
