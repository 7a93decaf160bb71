"""Staging: an engine started on another machine without traffic, promoted after validation, rolled back."""

from pydantic import Field

from engine_host.protocol.base import Command, Page, Seconds, Wire
from engine_host.protocol.endpoint.routes import EngineName, Route, RouteCheck, RouteTargets
from engine_host.protocol.launch.plans import Finding, LaunchPlan, LaunchRequest
from engine_host.protocol.remote.install import PlannedChange
from engine_host.protocol.text import Line


class StageOnHost(Command):
    """The wish to start an engine on another machine beside what runs there, with no route to it.

    `what` is a preset or a model there; `launch` has the settings, and its public name there where it is not
    to be the model's own. `route` is the public id that it is meant for. `consent` is the digest of what a
    preset from somebody else asks for.
    """

    what: Line = Field(min_length=1, max_length=4096)
    launch: LaunchRequest = LaunchRequest.model_construct()
    route: EngineName | None = None
    consent: str | None = Field(None, max_length=200)


class StagedNeed(Wire):
    """The memory of one device there in bytes: taken by the start, free before it, left or missing after it.

    None is "not known"; `left` is below 0 by what is missing.
    """

    device: str
    takes: int | None = None
    free: int | None = None
    left: int | None = None


class StagePlan(Wire):
    """Everything that a staging will do; an `error` in the findings stops it.

    `target` is what a route would lead to, `promote` the command that leads one there after validation.
    `plan` is the launch plan of the engine host there.
    """

    host: str
    name: str
    target: str
    plan: LaunchPlan
    needs: tuple[StagedNeed, ...] = ()
    changes: tuple[PlannedChange, ...] = ()
    findings: tuple[Finding, ...] = ()
    promote: str


class StagedEngine(Wire):
    """The result of a staging: the engine runs there and is verified, and no route leads to it."""

    host: str
    name: str
    target: str
    engine: str = Field(description="its id there")
    context: int
    ready_after: float | None = None
    promote: str


class PromoteOnHost(Command):
    """The wish to lead a public id to an engine of that machine, after real requests were answered there.

    `stop_old` ends the engines that it led to before, once their requests have ended.
    """

    route: EngineName
    engine: EngineName
    stop_old: bool = False


class TargetEngine(Wire):
    """An engine that a route leads or led to: `target` as the route names it, `id` on its own machine.

    `machine` is empty for this one; `command` starts it anew.
    """

    target: str
    machine: str = ""
    id: str
    name: str
    command: str = ""


class PromotionPlan(Wire):
    """Everything that a promotion or its roll-back will do; an `error` in the findings stops it.

    `before` and `after` are what the public id leads to, None for no route. `checks` are the requests that
    have to be answered first. `starts` and `ends` are engines. `same_as` is the other command that does the
    same, where there is one.
    """

    route: str
    before: RouteTargets | None = None
    after: RouteTargets | None = None
    checks: tuple[str, ...] = ()
    starts: tuple[TargetEngine, ...] = ()
    ends: tuple[TargetEngine, ...] = ()
    changes: tuple[PlannedChange, ...] = ()
    findings: tuple[Finding, ...] = ()
    command: str
    same_as: str = ""


class Promotion(Wire):
    """The outcome of a promotion or its roll-back; `back` is the command that takes it back.

    `route` is None where the roll-back removed it. `ended` and `started` are engines, and `ending` those
    whose end was begun and not seen.
    """

    id: str = Field(description="the public id")
    host: str = ""
    target: str = ""
    route: Route | None = None
    before: RouteTargets | None = None
    checks: tuple[RouteCheck, ...] = ()
    started: tuple[TargetEngine, ...] = ()
    ended: tuple[TargetEngine, ...] = ()
    ending: tuple[TargetEngine, ...] = ()
    at: Seconds
    findings: tuple[Finding, ...] = ()
    back: str = ""


class PromotionPage(Page):
    """The promotions to engines of one host by which public ids lead there now, newest first."""

    seq: int
    promotions: tuple[Promotion, ...]
