"""The operations on our host on another machine; `table` has them with all others."""

from typing import Any

from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.operations.definition import Nothing, Operation
from engine_host.protocol.operations.remote_hosts import OF_SSH
from engine_host.protocol.remote.install import InstallOnHost, RemoteInstallPlan

# Each row: name, method, path, request, answer, what it does. Formatted by hand, to be read as a table.
# fmt: off

_OF_LOOKING = (*OF_SSH, Reason.INSTALL_FAILED, Reason.DISK_FULL, Reason.NOT_WRITABLE)

PLAN_HOST_INSTALL = Operation(
    "hosts.install.plan", "POST", "/v1/hosts/{name}/install/plan", InstallOnHost, RemoteInstallPlan,
    "What an install or an update of our host would change on a connected machine; nothing is changed.",
    reasons=(*_OF_LOOKING, Reason.CONFLICT), command="host install", seconds=300.0)
INSTALL_HOST = Operation(
    "hosts.install", "POST", "/v1/hosts/{name}/install", InstallOnHost, Job,
    "Install our host on a connected machine, for its user alone; the job's result is a `RemoteInstalled`.",
    status=202, reasons=(*OF_SSH, Reason.CONFLICT), job=JobKind.HOST_INSTALL, command="host install")
UPDATE_HOST = Operation(
    "hosts.update", "POST", "/v1/hosts/{name}/update", InstallOnHost, Job,
    "Put this version in the place of the one there, which stays until the new one answers.",
    status=202, reasons=(*OF_SSH, Reason.CONFLICT), job=JobKind.HOST_UPDATE, command="host update")
HOST_BACK = Operation(
    "hosts.update.back", "POST", "/v1/hosts/{name}/update/back", Nothing, Job,
    "Let the version run again that ran there before the last update.",
    status=202, reasons=(*OF_SSH, Reason.CONFLICT), job=JobKind.HOST_UPDATE, command="host update")
PLAN_HOST_BACK = Operation(
    "hosts.update.back.plan", "POST", "/v1/hosts/{name}/update/back/plan", Nothing, RemoteInstallPlan,
    "What it would change to let the version before run again; nothing is changed.",
    reasons=(*_OF_LOOKING, Reason.CONFLICT), command="host update", seconds=180.0)
PLAN_HOST_UNINSTALL = Operation(
    "hosts.uninstall.plan", "POST", "/v1/hosts/{name}/uninstall/plan", Nothing, RemoteInstallPlan,
    "What an uninstall would remove on a connected machine, and what was there before and stays.",
    reasons=(*_OF_LOOKING, Reason.CONFLICT), command="host uninstall", seconds=180.0)
UNINSTALL_HOST = Operation(
    "hosts.uninstall", "POST", "/v1/hosts/{name}/uninstall", Nothing, Job,
    "End our host there and remove what came with it; the job's result is a `RemoteInstalled`.",
    status=202, reasons=(*OF_SSH, Reason.CONFLICT), job=JobKind.HOST_UNINSTALL, command="host uninstall")

# fmt: on

OPERATIONS: tuple[Operation[Any, Any], ...] = tuple(
    value for value in globals().values() if isinstance(value, Operation)
)
