"""The state of the engine host: a snapshot and the events after it, applied in one place."""

import time
from collections import deque
from collections.abc import Awaitable
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Signal

from engine_host.protocol.endpoint.on_demand import OnDemandChange, OnDemandModel
from engine_host.protocol.engines import (
    Engine,
    EngineState,
    Request,
    RequestState,
    ServerPage,
)
from engine_host.protocol.events import (
    AlertsChangedEvent,
    BenchChangedEvent,
    EngineReadingsEvent,
    EngineRequestEvent,
    EngineStageEvent,
    EngineStateEvent,
    Event,
    FindingEvent,
    HeartbeatEvent,
    HostStateEvent,
    JobDoneEvent,
    JobStepEvent,
    LogLineEvent,
    MarkEvent,
    MissedEvent,
    ModelsChangedEvent,
    NoticeEvent,
    OnDemandEvent,
    PatchesChangedEvent,
    PatchResultEvent,
    PatchSummaryEvent,
    PresetsChangedEvent,
    RemoteHostEvent,
    ResetEvent,
    RoutesChangedEvent,
    ServersChangedEvent,
    SettingsChangedEvent,
    SshQuestionEvent,
    TelemetryEvent,
)
from engine_host.protocol.host import HostInfo
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.launch.plans import Finding, Setting
from engine_host.protocol.models import ModelPage
from engine_host.protocol.patches import EnginePatches, ProcessPatches
from engine_host.protocol.remote.hosts import RemoteHost, SshQuestion
from engine_host.protocol.settings import SettingPage
from engine_host.protocol.telemetry import Sample
from sndr_gui.host.choice import LIVE_STATES, STARTING_STATES, EngineChoice
from sndr_gui.host.snapshot import PART_CHANGES, Snapshot

# What the host keeps of the past, a window keeps of it too, however long it is open.
RECENT_REQUESTS = 200
RECENT_JOBS = 200
RECENT_ENGINES = 20
MOST_SERIES = 500
_Answer = TypeVar("_Answer")
_TRIALS = (JobKind.PATCH_BISECT, JobKind.BENCH_SWEEP)
_MEANWHILE = 2_000
_TOGETHER = 15.0
"""Seconds between the end of an engine and of its host that make one of the two."""
OPEN_REQUESTS = frozenset(
    {RequestState.LOADING, RequestState.WAITING, RequestState.PREFILL, RequestState.DECODE}
)


class HostState(QObject):
    """The newest known state of one host, kept when the host goes away and then marked by its age.

    Signals:
        host_changed, engines_changed, jobs_changed, models_changed, servers_changed, settings_changed,
        on_demand_changed, remote_hosts_changed:
            that part is new; of the engines also which one is chosen
        asked: ssh asks something else than before
        request_changed: a Request that moved on
        sampled: a Sample
        marked: a Mark of the graphs
        logged: new LogLines
        noticed: a NoticeEvent
        found: a Finding
        outdated: the name of a part that has to be read again
        job_ended: a Job in a final state
        applied: an EnginePatches that changed
    """

    host_changed = Signal()
    engines_changed = Signal()
    jobs_changed = Signal()
    models_changed = Signal()
    servers_changed = Signal()
    settings_changed = Signal()
    on_demand_changed = Signal()
    remote_hosts_changed = Signal()
    asked = Signal()
    request_changed = Signal(object)
    sampled = Signal(object)
    marked = Signal(object)
    logged = Signal(object)
    noticed = Signal(object)
    found = Signal(object)
    outdated = Signal(str)
    job_ended = Signal(object)
    applied = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.run_id = ""
        self.seq = 0
        self.closing = self.closing_asked = False
        self._at_close: dict[str, str] = {}
        self._stopped: dict[str, tuple[str, float]] = {}
        self._told: dict[str, int] = {}
        self._loaded = 0
        self._meanwhile: deque[Event] | None = None
        self.host: HostInfo | None = None
        self.engines: dict[str, Engine] = {}
        self.last_ran: Engine | None = None
        self._choice = EngineChoice()
        self.jobs: dict[str, Job] = {}
        self.models: ModelPage | None = None
        self.servers: ServerPage | None = None
        self.settings: SettingPage | None = None
        self.requests: dict[str, Request] = {}
        self.on_demand: dict[str, OnDemandModel] = {}
        self.remote_hosts: dict[str, RemoteHost] = {}
        self.questions: dict[str, SshQuestion] = {}
        self.last_event: Event | None = None
        self.sample: Sample | None = None
        self._values: dict[str, tuple[float, float]] = {}
        self.applies: dict[str, EnginePatches] = {}
        self.findings: deque[Finding] = deque(maxlen=50)

    @property
    def engine(self) -> Engine | None:
        """The engine that the window is about: the chosen one, which may have ended."""
        return self.engines.get(self._choice.id)

    @property
    def running(self) -> Engine | None:
        """The engine that the window is about, while it runs."""
        engine = self.engine
        return engine if engine is not None and engine.state in LIVE_STATES else None

    @property
    def live(self) -> tuple[Engine, ...]:
        """Every engine that runs, the one that was started first at the top."""
        live = (engine for engine in self.engines.values() if engine.state in LIVE_STATES)
        return tuple(sorted(live, key=lambda engine: (engine.created_at, engine.id)))

    @property
    def last_live(self) -> dict[str, str]:
        """The names of the engines that run, by id; of a host that ended those that ran when it began to."""
        return self._at_close | self._live_names()

    def _live_names(self) -> dict[str, str]:
        return {engine.id: engine.name for engine in self.live}

    @property
    def holders(self) -> tuple[tuple[str, str], ...]:
        """The engines that hold memory, loading, there or leaving: another value when what is free is."""
        kinds = {EngineState.DRAINING: "leaving", EngineState.STOPPING: "leaving"}
        kinds |= dict.fromkeys(STARTING_STATES, "loading")
        return tuple((engine.id, kinds.get(engine.state, "there")) for engine in self.live)

    def live_named(self, name: str) -> Engine | None:
        """The newest engine that runs under this public name."""
        return next((engine for engine in reversed(self.live) if engine.name == name), None)

    def choose(self, engine: Engine) -> None:
        """Be about this engine from now on."""
        before = self._choice.id
        self._choice.choose(engine)
        self._settle()
        if self._choice.id != before:
            self.engines_changed.emit()

    @property
    def outlives_window(self) -> bool:
        """Tell whether the host goes on when the window that started it closes; decided as the host does."""
        wanted = self.setting("host.outlive_window")
        kept = any(engine.keep and engine.state in LIVE_STATES for engine in self.engines.values())
        owned = self.host is None or self.host.ends_with_window
        return not owned or kept or bool(wanted and wanted.value)

    def measured(self, name: str, newer_than: float = 0.0) -> float | None:
        """The newest value of a series, when it was measured after that time."""
        at, value = self._values.get(name, (0.0, None))
        return value if at > newer_than else None

    def _measure(self, sample: Sample) -> None:
        # The machine and each engine are measured at their own times: a sample holds only a part.
        self.sample = sample
        for name, value in sample.values.items():
            # The newest at the end: what was not measured for longest goes first.
            self._values.pop(name, None)
            self._values[name] = (sample.at, value)
        _keep_newest(self._values, MOST_SERIES)

    def open_requests(self, engine: str) -> int:
        """Count the requests that this engine is answering or has waiting."""
        return sum(
            1
            for request in self.requests.values()
            if request.engine == engine and request.state in OPEN_REQUESTS
        )

    def live_job(self, *kinds: JobKind) -> Job | None:
        """The job of one of these kinds that has not ended."""
        return next((job for job in self.jobs.values() if job.kind in kinds and not job.ended), None)

    def newest_job(self, *kinds: JobKind) -> Job | None:
        """The newest job of one of these kinds."""
        jobs = [job for job in self.jobs.values() if job.kind in kinds]
        return max(jobs, key=lambda job: job.created_at, default=None)

    def setting(self, name: str) -> Setting | None:
        """One setting of the host by its dotted name."""
        entries = self.settings.settings if self.settings else ()
        return next((entry for entry in entries if entry.name == name), None)

    def load(self, snapshot: Snapshot) -> None:
        """Take over a snapshot."""
        if self.run_id != snapshot.run_id:
            # Numbers begin anew; servers are kept until the new host has run its own.
            self._meanwhile = None
            self.servers = self.servers and self.servers.model_copy(update={"seq": 0})
        self.run_id, self.seq, self.closing = snapshot.run_id, snapshot.seq, False
        self._loaded = snapshot.seq
        self.closing_asked = False
        self._at_close, self._stopped, self._told = {}, {}, {}
        self.host = snapshot.host
        page = snapshot.engines
        self.engines = {one.id: one for one in page.engines if one.state is not EngineState.UNLOADED}
        self.last_ran = page.last
        self.jobs = {job.id: job for job in snapshot.jobs.jobs}
        self.models, self.settings = snapshot.models, snapshot.settings
        self.servers = snapshot.servers or self.servers
        self._settle()
        oldest_first = sorted(snapshot.requests, key=lambda request: request.created_at)
        self.requests = {request.id: request for request in oldest_first[-RECENT_REQUESTS:]}
        self.on_demand = {model.name: model for model in snapshot.on_demand}
        self.remote_hosts = {host.name: host for host in snapshot.remote_hosts}
        self.questions = {question.id: question for question in snapshot.questions}
        self.on_demand_changed.emit()
        self.remote_hosts_changed.emit()
        self.asked.emit()
        self.host_changed.emit()
        self.settings_changed.emit()
        self.models_changed.emit()
        self.servers_changed.emit()
        self.jobs_changed.emit()
        self.engines_changed.emit()
        meanwhile, self._meanwhile = self._meanwhile, None
        for event in meanwhile or ():
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Take over one event; numbers that were already applied are skipped."""
        if event.seq:
            if event.seq <= self.seq:
                return
            self.seq = event.seq
            if self._meanwhile is not None and isinstance(event, PART_CHANGES):
                self._meanwhile.append(event)
        if isinstance(event, EngineStateEvent | JobDoneEvent | NoticeEvent):
            self.last_event = event
        match event:
            case EngineStateEvent():
                self._tell(event.engine.id, event.seq)
                self.set_engine(event.engine)
            case EngineStageEvent():
                self._stage(event)
            case EngineReadingsEvent():
                self._read(event)
            case EngineRequestEvent():
                self._request(event.request)
            case TelemetryEvent():
                self._measure(event.sample)
                self.sampled.emit(event.sample)
            case MarkEvent():
                self.marked.emit(event.mark)
            case JobStepEvent() | JobDoneEvent():
                self._tell(event.job.id, event.seq)
                self.set_job(event.job)
            case HostStateEvent():
                self.closing, self.closing_asked = event.state == "closing", event.asked
                if self.closing:
                    # Who ends a host with Ctrl+C stops its engine a moment before.
                    since = time.monotonic() - _TOGETHER
                    just = {one: name for one, (name, at) in self._stopped.items() if at > since}
                    self._at_close |= just | self._live_names()
                if self.host is not None:
                    new: dict[str, Any] = {"endpoint": event.endpoint}
                    if event.ends_with_window is not None:
                        new["ends_with_window"] = event.ends_with_window
                    self.host = self.host.model_copy(update=new)
                self.host_changed.emit()
            case ModelsChangedEvent():
                self.outdated.emit("models")
            case ServersChangedEvent():
                self.outdated.emit("servers")
            case RoutesChangedEvent():
                self.outdated.emit("routes")
            case BenchChangedEvent():
                self.outdated.emit("bench")
            case AlertsChangedEvent():
                self.outdated.emit("alerts")
            case SettingsChangedEvent():
                self.outdated.emit("settings")
            case PatchesChangedEvent():
                self.outdated.emit("patches")
            case PresetsChangedEvent():
                self.outdated.emit("presets")
            case OnDemandEvent():
                self._on_demand(event)
            case RemoteHostEvent():
                self._tell(event.remote.name, event.seq)
                self.set_remote_host(event.remote, removed=event.removed)
            case SshQuestionEvent():
                self.questions.pop(event.question.id, None)
                if event.open:
                    self.questions[event.question.id] = event.question
                self.asked.emit()
            case PatchSummaryEvent():
                self._tell(event.patches.engine + " patches", event.seq)
                self.set_applies(event.patches)
            case PatchResultEvent():
                self._patch_result(event)
            case LogLineEvent():
                self.logged.emit(event.lines)
            case FindingEvent():
                self.findings.append(event.finding)
                self.found.emit(event.finding)
            case NoticeEvent():
                self.noticed.emit(event)
            case MissedEvent() | ResetEvent():
                # What comes while all is read again may be newer than what is read.
                self._meanwhile = deque(maxlen=_MEANWHILE)
                self.outdated.emit("all")
            case HeartbeatEvent():
                pass

    async def take(self, asked: Awaitable[_Answer]) -> _Answer:
        """Ask and return the answer, taken over unless an event told something newer meanwhile.

        The stream of events and an answer come on two connections: what ends at once is told by its events
        before the answer that says that it runs.
        """
        since = self.seq
        answer = await asked

        def newest(name: str) -> bool:
            return self._told.get(name, self._loaded) <= since

        match answer:
            case Engine() if newest(answer.id):
                self.set_engine(answer)
            case Job() if newest(answer.id):
                self.set_job(answer)
            case RemoteHost() if newest(answer.name):
                self.set_remote_host(answer)
            case EnginePatches() if newest(answer.engine + " patches"):
                self.set_applies(answer)
            case ModelPage() if self.models is None or answer.seq >= self.models.seq:
                self.set_models(answer)
            case ServerPage() if self.servers is None or answer.seq >= self.servers.seq:
                self.set_servers(answer)
            case SettingPage() if self.settings is None or answer.seq >= self.settings.seq:
                self.set_settings(answer)
            case HostInfo() if self.host is None or answer.seq >= self.host.seq:
                self.host = answer
                self.host_changed.emit()
        return answer

    def _tell(self, name: str, seq: int) -> None:
        self._told.pop(name, None)
        self._told[name] = seq
        _keep_newest(self._told, MOST_SERIES)

    def set_engine(self, engine: Engine) -> None:
        """Take over one engine."""
        if engine.state is EngineState.UNLOADED:
            self._stopped[engine.id] = engine.name, time.monotonic()
            self.engines.pop(engine.id, None)
        else:
            self.engines[engine.id] = engine
            ended = [one for one in self.engines.values() if one.state not in LIVE_STATES]
            for old in sorted(ended, key=lambda one: one.created_at)[:-RECENT_ENGINES]:
                del self.engines[old.id]
        if engine.state not in LIVE_STATES and engine.ready_at is not None and not self.live_job(*_TRIALS):
            self.last_ran = engine
        self._settle()
        self.engines_changed.emit()

    def _settle(self) -> None:
        last = self.last_ran
        stopped = last is not None and last.state is EngineState.UNLOADED
        self._choice.settle(self.engines, (last.ended_at or 0.0) if stopped and last else 0.0)

    def _on_demand(self, event: OnDemandEvent) -> None:
        if event.change is OnDemandChange.REMOVED:
            self.on_demand.pop(event.model.name, None)
        else:
            self.on_demand[event.model.name] = event.model
        self.on_demand_changed.emit()

    def set_remote_host(self, remote: RemoteHost, *, removed: bool = False) -> None:
        """Take over one host on another machine."""
        self.remote_hosts.pop(remote.name, None)
        if not removed:
            self.remote_hosts[remote.name] = remote
        self.remote_hosts_changed.emit()

    def set_job(self, job: Job) -> None:
        """Take over one job."""
        known = self.jobs.get(job.id)
        self.jobs[job.id] = job
        for old in [one for one in self.jobs.values() if one.ended][:-RECENT_JOBS]:
            del self.jobs[old.id]
        self.jobs_changed.emit()
        if job.ended and (known is None or not known.ended):
            self.job_ended.emit(job)

    def set_models(self, page: ModelPage) -> None:
        """Take over the list of models."""
        self.models = page
        self.models_changed.emit()

    def set_servers(self, page: ServerPage) -> None:
        """Take over the list of servers."""
        self.servers = page
        self.servers_changed.emit()

    def set_settings(self, page: SettingPage) -> None:
        """Take over the host's settings."""
        self.settings = page
        self.settings_changed.emit()

    def set_applies(self, patches: EnginePatches) -> None:
        """Take over the apply summary of one engine."""
        self.applies.pop(patches.engine, None)
        self.applies[patches.engine] = patches
        _keep_newest(self.applies, RECENT_ENGINES)
        self.applied.emit(patches)

    def _patch_result(self, event: PatchResultEvent) -> None:
        known = self.applies.get(event.engine) or EnginePatches(seq=0, engine=event.engine, planned=None)
        mine = next((process for process in known.processes if process.pid == event.pid), None)
        if mine is None:
            mine = ProcessPatches(pid=event.pid, role=event.role, rank=event.rank, since=event.at)
        others = tuple(result for result in mine.results if result.patch != event.result.patch)
        fresh = mine.model_copy(
            update={"role": event.role, "rank": event.rank, "results": (*others, event.result)}
        )
        processes = (*(process for process in known.processes if process.pid != event.pid), fresh)
        self.set_applies(known.model_copy(update={"processes": processes}))

    def _read(self, event: EngineReadingsEvent) -> None:
        """Take over readings; what shows them is drawn with the next sample, a second later at most."""
        if (engine := self.engines.get(event.engine)) is not None:
            self.engines[engine.id] = engine.model_copy(update={"readings": event.readings})

    def _stage(self, event: EngineStageEvent) -> None:
        engine = self.engines.get(event.engine)
        if engine is None:
            return
        others = tuple(
            stage.model_copy(update={"ended_at": event.stage.started_at}) if stage.ended_at is None else stage
            for stage in engine.stages
            if stage.name != event.stage.name
        )
        self.engines[engine.id] = engine.model_copy(update={"stages": (*others, event.stage)})
        self.engines_changed.emit()

    def _request(self, request: Request) -> None:
        self.requests.pop(request.id, None)
        self.requests[request.id] = request
        _keep_newest(self.requests, RECENT_REQUESTS)
        self.request_changed.emit(request)


def _keep_newest(held: dict[str, Any], most: int) -> None:
    while len(held) > most:
        held.pop(next(iter(held)))
