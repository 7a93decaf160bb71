"""The operations on files and figures of other machines; `table` has them with all others."""

from typing import Any

from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.operations.definition import Operation
from engine_host.protocol.operations.remote_hosts import OF_SSH
from engine_host.protocol.remote.transfers import FetchModel, ModelTransferPlan, SendModel
from engine_host.protocol.telemetry import TelemetryPage, TelemetryQuery

# Each row: name, method, path, request, answer, what it does. Formatted by hand, to be read as a table.
# fmt: off

_OF_FILES = (
    *OF_SSH, Reason.MODEL_FILE_MISSING, Reason.MODEL_FILE_DAMAGED, Reason.CONFLICT, Reason.DISK_FULL,
    Reason.NOT_WRITABLE)

PLAN_SEND = Operation(
    "hosts.send.plan", "POST", "/v1/hosts/{name}/send/plan", SendModel, ModelTransferPlan,
    "What sending a model there would carry, and what lies there already; nothing is changed.",
    reasons=_OF_FILES, command="host send", seconds=1800.0)
SEND_MODEL = Operation(
    "hosts.send", "POST", "/v1/hosts/{name}/send", SendModel, Job,
    "Send a model there; it goes on where it stopped. The job's result is a `ModelTransferred`.",
    status=202, reasons=OF_SSH, job=JobKind.HOST_SEND, command="host send")
PLAN_FETCH = Operation(
    "hosts.fetch.plan", "POST", "/v1/hosts/{name}/fetch/plan", FetchModel, ModelTransferPlan,
    "What fetching a model from there would carry, and what lies here already; nothing is changed.",
    reasons=_OF_FILES, command="host fetch", seconds=1800.0)
FETCH_MODEL = Operation(
    "hosts.fetch", "POST", "/v1/hosts/{name}/fetch", FetchModel, Job,
    "Fetch a model from there; it goes on where it stopped. The job's result is a `ModelTransferred`.",
    status=202, reasons=OF_SSH, job=JobKind.HOST_FETCH, command="host fetch")
HOST_TELEMETRY = Operation(
    "hosts.telemetry", "GET", "/v1/hosts/{name}/telemetry", TelemetryQuery, TelemetryPage,
    "Measured series of an agentless host, by the names of this machine's.",
    reasons=(Reason.NOT_FOUND,), command="host facts")

# fmt: on

OPERATIONS: tuple[Operation[Any, Any], ...] = tuple(
    value for value in globals().values() if isinstance(value, Operation)
)
