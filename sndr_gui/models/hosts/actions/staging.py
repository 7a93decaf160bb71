"""Engines staged on another machine, promoted after validation and rolled back, as plans and jobs."""

from __future__ import annotations

import shlex

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.jobs import Job
from engine_host.protocol.language import tr
from engine_host.protocol.operations import remote_staging as ops
from engine_host.protocol.remote.staging import PromoteOnHost, PromotionPlan, StageOnHost
from sndr_gui.models.hosts.planned import AskedField, Planned, PlannedAction, Values, diff_of


class StageAction(PlannedAction):
    """Start an engine there without traffic."""

    verb = tr("Stage")
    about = tr("It starts beside what runs there, and no route leads to it until it is promoted.")

    def __init__(self, name: str, known: tuple[str, ...] = ()) -> None:
        self.title = tr("Stage an engine on {name}", name=name)
        self._name = name
        self.fields = (
            AskedField(
                "what", tr("Preset or model"), tr("by its id over there"), choices=known, required=True
            ),
            AskedField("route", tr("Meant for"), tr("the public ID that it is to answer, if you know")),
        )

    def command(self, values: Values) -> str:
        words = ["sndr", "host", "stage", self._name, values["what"].strip() or "PRESET"]
        return shlex.join([*words, *(["--for", values["route"].strip()] if values["route"].strip() else [])])

    async def plan(self, client: AsyncControlClient, values: Values) -> Planned:
        plan = await client.call(ops.PLAN_STAGE, _staged(values), name=self._name)
        return Planned(diff_of(plan.changes), plan.findings)

    async def start(self, client: AsyncControlClient, values: Values) -> Job:
        return await client.call(ops.STAGE, _staged(values), name=self._name)


class PromoteAction(PlannedAction):
    """Lead a public id to an engine there, after real requests were answered."""

    verb = tr("Promote")
    about = tr(
        "The engine gets real requests first: its list of models, a chat, a stream, a "
        "tool call, a long prompt and three at once. The public ID leads there when "
        "all are answered; else nothing changes."
    )

    def __init__(self, name: str, engines: tuple[str, ...], routes: tuple[str, ...]) -> None:
        self.title = tr("Promote an engine of {name}", name=name)
        self._name = name
        first = engines[0] if len(engines) == 1 else ""
        self.fields = (
            AskedField("route", tr("Public ID"), tr("what editors ask for"), choices=routes, required=True),
            AskedField(
                "engine",
                tr("Engine there"),
                tr("by its name there"),
                value=first,
                choices=engines,
                required=True,
            ),
            AskedField("stop_old", tr("End what it led to before, once its requests have ended"), check=True),
        )

    def command(self, values: Values) -> str:
        words = ["sndr", "host", "promote", self._name, values["route"].strip() or "ID"]
        words.append(values["engine"].strip() or "ENGINE")
        return shlex.join([*words, *(["--stop-old"] if values["stop_old"] == "yes" else [])])

    async def plan(self, client: AsyncControlClient, values: Values) -> Planned:
        return _planned(await client.call(ops.PLAN_PROMOTION, _promoted(values), name=self._name))

    async def start(self, client: AsyncControlClient, values: Values) -> Job:
        return await client.call(ops.PROMOTE, _promoted(values), name=self._name)


class RollbackAction(PlannedAction):
    """Lead a public id where it led before its promotion."""

    verb = tr("Roll back")
    about = tr(
        "An engine that the promotion ended is started anew as it was; where that fails, nothing changes."
    )

    def __init__(self, route: str) -> None:
        self.title = tr("Roll {route} back", route=route)
        self._route = route

    def command(self, _values: Values) -> str:
        return shlex.join(["sndr", "host", "rollback", self._route])

    async def plan(self, client: AsyncControlClient, _values: Values) -> Planned:
        return _planned(await client.call(ops.PLAN_ROLLBACK, id=self._route))

    async def start(self, client: AsyncControlClient, _values: Values) -> Job:
        return await client.call(ops.ROLLBACK, id=self._route)


def _staged(values: Values) -> StageOnHost:
    return StageOnHost(what=values["what"].strip(), route=values["route"].strip() or None)


def _promoted(values: Values) -> PromoteOnHost:
    return PromoteOnHost(
        route=values["route"].strip(), engine=values["engine"].strip(), stop_old=values["stop_old"] == "yes"
    )


def _planned(plan: PromotionPlan) -> Planned:
    checks = [tr("$ ask: {check}", check=check) for check in plan.checks]
    return Planned("\n".join(filter(None, (*checks, diff_of(plan.changes)))), plan.findings)
