"""The operations that stage, promote and roll back on other machines; `table` has them with all others."""

from typing import Any

from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.operations.definition import OF_PLANS, Nothing, Operation
from engine_host.protocol.operations.remote_hosts import OF_SSH
from engine_host.protocol.remote.staging import (
    PromoteOnHost,
    PromotionPage,
    PromotionPlan,
    StageOnHost,
    StagePlan,
)

# Each row: name, method, path, request, answer, what it does. Formatted by hand, to be read as a table.
# fmt: off

_OF_HOST = (*OF_SSH, Reason.HOST_UNREACHABLE, Reason.HOST_GONE, Reason.PROTOCOL_MISMATCH)
_OF_STAGE = tuple(dict.fromkeys((*_OF_HOST, *OF_PLANS, Reason.CONFLICT)))
_OF_ROUTE = tuple(dict.fromkeys((*_OF_HOST, Reason.SETTING_INVALID, Reason.CONFLICT)))

PLAN_STAGE = Operation(
    "hosts.stage.plan", "POST", "/v1/hosts/{name}/stage/plan", StageOnHost, StagePlan,
    "What starting a preset or a model beside what runs on a machine would take and leave; changes nothing.",
    reasons=_OF_STAGE, command="host stage", seconds=60.0)
STAGE = Operation(
    "hosts.stage", "POST", "/v1/hosts/{name}/stage", StageOnHost, Job,
    "Start it there with no route to it; the job's result is a `StagedEngine`.",
    status=202, reasons=_OF_HOST, job=JobKind.HOST_STAGE, command="host stage")
PLAN_PROMOTION = Operation(
    "hosts.promote.plan", "POST", "/v1/hosts/{name}/promote/plan", PromoteOnHost, PromotionPlan,
    "Where a public id would lead, what has to be answered there first, and which engines would end.",
    reasons=_OF_ROUTE, command="host promote", seconds=30.0)
PROMOTE = Operation(
    "hosts.promote", "POST", "/v1/hosts/{name}/promote", PromoteOnHost, Job,
    "Lead a public id there after the cut-over's requests were answered; the job's result is a `Promotion`.",
    status=202, reasons=_OF_ROUTE, job=JobKind.ROUTE_PROMOTE, command="host promote", seconds=30.0)
PROMOTIONS = Operation(
    "hosts.promotions", "GET", "/v1/hosts/{name}/promotions", Nothing, PromotionPage,
    "The promotions to engines of that machine by which public ids lead there now, newest first.",
    reasons=(Reason.NOT_FOUND,), command="host rollback")
PLAN_ROLLBACK = Operation(
    "routes.rollback.plan", "POST", "/v1/routes/{id}/rollback/plan", Nothing, PromotionPlan,
    "Where a public id would lead again, and what would be started anew for it.",
    reasons=_OF_ROUTE, command="host rollback", seconds=30.0)
ROLLBACK = Operation(
    "routes.rollback", "POST", "/v1/routes/{id}/rollback", Nothing, Job,
    "Lead a public id where it led before, and start what was ended there; the job's result is a "
    "`Promotion`.",
    status=202, reasons=_OF_ROUTE, job=JobKind.ROUTE_ROLLBACK, command="host rollback", seconds=30.0)

# fmt: on

OPERATIONS: tuple[Operation[Any, Any], ...] = tuple(
    value for value in globals().values() if isinstance(value, Operation)
)
