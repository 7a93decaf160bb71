"""Wire types of the control protocol; the one package that both window and host import."""

from engine_host.protocol.base import PROTOCOL_MAJOR, PROTOCOL_MINOR, Command, Severity, Version, Wire
from engine_host.protocol.engines import (
    Engine,
    EnginePage,
    EngineState,
    Readings,
    Request,
    RequestPage,
    RequestState,
    ServerInfo,
    ServerPage,
    SpeedComparison,
    SpeedRow,
    StageTime,
    Verification,
)
from engine_host.protocol.errors import Action, ErrorAnswer, Fix, Problem, Reason
from engine_host.protocol.events import EVENT, Event
from engine_host.protocol.host import Endpoint, Gpu, GpuAbsence, HostInfo, Reach
from engine_host.protocol.jobs import Job, JobKind, JobPage, JobState, JobStep
from engine_host.protocol.logs import LogLine, LogPage
from engine_host.protocol.models import ModelFile, ModelOrigin, ModelPage
from engine_host.protocol.plans import (
    Finding,
    LaunchPlan,
    LaunchRequest,
    Layer,
    Overrides,
    ServerChoice,
    Setting,
    StartRequest,
)
from engine_host.protocol.settings import SettingPage, SettingsChange
from engine_host.protocol.telemetry import Sample, Series, TelemetryPage

__all__ = [
    "EVENT",
    "PROTOCOL_MAJOR",
    "PROTOCOL_MINOR",
    "Action",
    "Command",
    "Endpoint",
    "Engine",
    "EnginePage",
    "EngineState",
    "ErrorAnswer",
    "Event",
    "Finding",
    "Fix",
    "Gpu",
    "GpuAbsence",
    "HostInfo",
    "Job",
    "JobKind",
    "JobPage",
    "JobState",
    "JobStep",
    "LaunchPlan",
    "LaunchRequest",
    "Layer",
    "LogLine",
    "LogPage",
    "ModelFile",
    "ModelOrigin",
    "ModelPage",
    "Overrides",
    "Problem",
    "Reach",
    "Readings",
    "Reason",
    "Request",
    "RequestPage",
    "RequestState",
    "Sample",
    "Series",
    "ServerChoice",
    "ServerInfo",
    "ServerPage",
    "Setting",
    "SettingPage",
    "SettingsChange",
    "Severity",
    "SpeedComparison",
    "SpeedRow",
    "StageTime",
    "StartRequest",
    "TelemetryPage",
    "Verification",
    "Version",
    "Wire",
]
