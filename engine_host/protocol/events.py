"""Events: everything that happens, numbered by one within a run of the host."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from engine_host.protocol.base import Query, Seconds, Severity, Wire
from engine_host.protocol.endpoint.on_demand import OnDemandChange, OnDemandModel
from engine_host.protocol.engines import Engine, Readings, Request, StageTime
from engine_host.protocol.errors import Problem
from engine_host.protocol.host import Endpoint
from engine_host.protocol.jobs import Job
from engine_host.protocol.language.spoken import Sentence, Spoken
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.logs import LogLine
from engine_host.protocol.patches import EnginePatches, PatchResult, ProcessRole
from engine_host.protocol.remote.hosts import RemoteHost, SshQuestion
from engine_host.protocol.telemetry import Mark, Sample


class EventBase(Wire):
    """The fields of every event; `seq` 0 marks one that is not kept (heartbeat, reset, missed)."""

    seq: int = 0
    at: Seconds = 0.0
    host: str = "local"


class EngineStateEvent(EventBase):
    """An engine changed; carries it whole."""

    kind: Literal["engine.state"] = "engine.state"
    engine: Engine


class EngineStageEvent(EventBase):
    """A start reached its next stage."""

    kind: Literal["engine.stage"] = "engine.stage"
    engine: str
    stage: StageTime


class EngineReadingsEvent(EventBase):
    """A running engine has new readings: twice a second while it works."""

    kind: Literal["engine.readings"] = "engine.readings"
    engine: str
    readings: Readings


class EngineRequestEvent(EventBase):
    """A request changed its state; carries it whole."""

    kind: Literal["engine.request"] = "engine.request"
    request: Request


class TelemetryEvent(EventBase):
    """New measurements."""

    kind: Literal["telemetry.sample"] = "telemetry.sample"
    sample: Sample


class MarkEvent(EventBase):
    """Something happened that is marked on the graphs."""

    kind: Literal["telemetry.mark"] = "telemetry.mark"
    mark: Mark


class JobStepEvent(EventBase):
    """A job was queued, started or moved on; carries it whole."""

    kind: Literal["job.step"] = "job.step"
    job: Job


class JobDoneEvent(EventBase):
    """A job ended; carries it whole."""

    kind: Literal["job.done"] = "job.done"
    job: Job


class HostStateEvent(EventBase):
    """The host's own state changed; `asked`: it ends since somebody asked it to, and by no signal."""

    kind: Literal["host.state"] = "host.state"
    state: Literal["serving", "closing"]
    endpoint: Endpoint
    ends_with_window: bool | None = None
    asked: bool = False


class ModelsChangedEvent(EventBase):
    """The list of models changed; read it again."""

    kind: Literal["models.changed"] = "models.changed"


class ServersChangedEvent(EventBase):
    """A server was built, removed or measured; read the list again."""

    kind: Literal["servers.changed"] = "servers.changed"


class RoutesChangedEvent(EventBase):
    """A route was made, moved or removed; read the list again."""

    kind: Literal["routes.changed"] = "routes.changed"


class AlertsChangedEvent(EventBase):
    """An alert began, ended or was put away; read the list again."""

    kind: Literal["alerts.changed"] = "alerts.changed"


class BenchChangedEvent(EventBase):
    """A run of the bench lab was kept or removed; read the list again."""

    kind: Literal["bench.changed"] = "bench.changed"


class PatchResultEvent(EventBase):
    """A patch reached an outcome in one process of an engine."""

    kind: Literal["patch.result"] = "patch.result"
    engine: str
    pid: int
    role: ProcessRole
    rank: int | None = None
    result: PatchResult


class PatchSummaryEvent(EventBase):
    """An engine's apply summary changed (a process came, got its name, was probed); carries it whole."""

    kind: Literal["patch.summary"] = "patch.summary"
    patches: EnginePatches


class PatchesChangedEvent(EventBase):
    """The catalogue or its switches changed; read it again."""

    kind: Literal["patches.changed"] = "patches.changed"


class PresetsChangedEvent(EventBase):
    """A person's presets changed; read the list again."""

    kind: Literal["presets.changed"] = "presets.changed"


class OnDemandEvent(Spoken, EventBase):
    """A model that is loaded on demand changed; carries it whole, and why."""

    kind: Literal["on_demand.changed"] = "on_demand.changed"
    change: OnDemandChange
    model: OnDemandModel
    detail: Sentence = ""


class RemoteHostEvent(EventBase):
    """A remote host was added or removed, or its connection changed; carries it whole."""

    kind: Literal["hosts.changed"] = "hosts.changed"
    remote: RemoteHost
    removed: bool = False


class SshQuestionEvent(EventBase):
    """A question of ssh waits for a person, or (`open` false) waits no more."""

    kind: Literal["hosts.question"] = "hosts.question"
    question: SshQuestion
    open: bool = True


class SettingsChangedEvent(EventBase):
    """Settings changed; read them again."""

    kind: Literal["settings.changed"] = "settings.changed"
    names: tuple[str, ...]


class LogLineEvent(EventBase):
    """New log lines of one source."""

    kind: Literal["log.line"] = "log.line"
    lines: tuple[LogLine, ...]


class FindingEvent(EventBase):
    """A check noticed something."""

    kind: Literal["finding"] = "finding"
    finding: Finding


class NoticeEvent(Spoken, EventBase):
    """A sentence for the person at the window; a later one with the same key replaces it."""

    kind: Literal["notice"] = "notice"
    key: str
    severity: Severity
    text: Sentence
    problem: Problem | None = None


class HeartbeatEvent(EventBase):
    """Nothing happened for ten seconds; `seq` is 0, `latest` the newest number."""

    kind: Literal["heartbeat"] = "heartbeat"
    latest: int


class ResetEvent(EventBase):
    """The asked-for number is gone (too old, or of another run): read the snapshot again."""

    kind: Literal["reset"] = "reset"
    run_id: str
    latest: int


class MissedEvent(EventBase):
    """This client did not keep up: numbers `first` to `last` were not sent."""

    kind: Literal["missed"] = "missed"
    first: int
    last: int


Event = Annotated[
    EngineStateEvent
    | EngineStageEvent
    | EngineReadingsEvent
    | EngineRequestEvent
    | TelemetryEvent
    | MarkEvent
    | JobStepEvent
    | JobDoneEvent
    | HostStateEvent
    | ModelsChangedEvent
    | ServersChangedEvent
    | RoutesChangedEvent
    | AlertsChangedEvent
    | BenchChangedEvent
    | PatchResultEvent
    | PatchSummaryEvent
    | PatchesChangedEvent
    | PresetsChangedEvent
    | OnDemandEvent
    | RemoteHostEvent
    | SshQuestionEvent
    | SettingsChangedEvent
    | LogLineEvent
    | FindingEvent
    | NoticeEvent
    | HeartbeatEvent
    | ResetEvent
    | MissedEvent,
    Field(discriminator="kind"),
]

# A host writes events and reads none.
EVENT: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))


class EventQuery(Query):
    """Events numbered above `after` in the run `run`; without a number, from now on."""

    after: int | None = None
    run: str | None = None
