"""The operations on services and power limits; `table` has them with all others."""

from typing import Any

from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.operations.definition import OF_PLANS, Nothing, Operation
from engine_host.protocol.operations.remote_hosts import OF_SSH
from engine_host.protocol.remote.services import (
    ActOnService,
    InstallService,
    PowerPage,
    PowerPlan,
    RemoveService,
    ServiceLogQuery,
    ServiceLogs,
    ServicePage,
    ServicePlan,
    SetPower,
)

# Each row: name, method, path, request, answer, what it does. Formatted by hand, to be read as a table.
# fmt: off

_THERE = (*OF_SSH, Reason.INSTALL_FAILED, Reason.UNSUPPORTED, Reason.CONFLICT)
_ONE = "/v1/hosts/{name}/services/{manager}/{service}"

SERVICES = Operation(
    "services.list", "GET", "/v1/hosts/{name}/services", Nothing, ServicePage,
    "The units and containers of a machine, `local` for this one; those of others are shown alone.",
    reasons=_THERE, command="host unit list", seconds=90.0)
PLAN_SERVICE = Operation(
    "services.plan", "POST", "/v1/hosts/{name}/services/plan", InstallService, ServicePlan,
    "What having a start carried out there would change, file by file; nothing is changed.",
    reasons=tuple(dict.fromkeys((
        *_THERE, *OF_PLANS, Reason.BAD_REQUEST, Reason.CONSENT_NEEDED, Reason.DISK_FULL, Reason.NOT_WRITABLE,
        Reason.OUT_OF_MEMORY))),
    command="host unit install", seconds=180.0)
INSTALL_SERVICE = Operation(
    "services.install", "POST", "/v1/hosts/{name}/services", InstallService, Job,
    "Write a start down there, fetch what it needs, start it and see that it answers; undone where that "
    "fails. The job's result is a `ServiceDone`.",
    status=202, reasons=OF_SSH, job=JobKind.SERVICE_INSTALL, command="host unit install")
ACT_ON_SERVICE = Operation(
    "services.act", "POST", f"{_ONE}/act", ActOnService, Job,
    "Start, stop, restart, enable or disable one of ours; the job's result is a `ServiceDone`.",
    status=202, reasons=OF_SSH, job=JobKind.SERVICE_ACTION, command="host unit start")
PLAN_SERVICE_REMOVAL = Operation(
    "services.remove.plan", "POST", f"{_ONE}/remove/plan", RemoveService, ServicePlan,
    "What the removal of a service would stop and remove.",
    reasons=_THERE, command="host unit remove", seconds=90.0)
REMOVE_SERVICE = Operation(
    "services.remove", "POST", f"{_ONE}/remove", RemoveService, Job,
    "Stop a service of ours and remove its files; the job's result is a `ServiceDone`.",
    status=202, reasons=OF_SSH, job=JobKind.SERVICE_REMOVE, command="host unit remove")
SERVICE_LOGS = Operation(
    "services.logs", "GET", f"{_ONE}/logs", ServiceLogQuery, ServiceLogs,
    "Lines of a unit or a container; those after a cursor are waited for.",
    reasons=_THERE, command="host logs", seconds=60.0)
POWER = Operation(
    "power.show", "GET", "/v1/hosts/{name}/power", Nothing, PowerPage,
    "The power limit of each GPU of a machine with its bounds, and whether it may be set.",
    reasons=_THERE, command="host power", seconds=60.0)
PLAN_POWER = Operation(
    "power.plan", "POST", "/v1/hosts/{name}/power/plan", SetPower, PowerPlan,
    "What setting a power limit would change; nothing is changed.",
    reasons=_THERE, command="host power", seconds=60.0)
SET_POWER = Operation(
    "power.set", "POST", "/v1/hosts/{name}/power", SetPower, Job,
    "Set a power limit where that is permitted, and read it back; the job's result is a `PowerDone`.",
    status=202, reasons=OF_SSH, job=JobKind.GPU_POWER, command="host power")

# fmt: on

OPERATIONS: tuple[Operation[Any, Any], ...] = tuple(
    value for value in globals().values() if isinstance(value, Operation)
)
