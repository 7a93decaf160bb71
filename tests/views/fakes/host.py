"""A FAKE engine host for view tests: it speaks the real protocol over a real socket, and runs no engine.

What it answers is set by the test; what the window sent is kept in `received`. Its functions perform
operations of the table, as a host's do, so that their answers have the types of it. A test in which something
was asked or refused that no host would fails at its end.
"""

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from engine_host.api.answers import on_host_error, refused
from engine_host.api.routes import Endpoint, available
from engine_host.core.errors import HostError
from engine_host.daemon.embedded_server import EmbeddedServer
from engine_host.operations.performs import functions, performs
from engine_host.protocol.base import Version
from engine_host.protocol.bench.autopsy import AutopsyEntry, AutopsyPage, OpenedAutopsy
from engine_host.protocol.bench.diagnosis import Diagnosis, DiagnosisQuery
from engine_host.protocol.engines import (
    Engine,
    EnginePage,
    EngineState,
    InstallationPage,
    ServerBuild,
    ServerPage,
    StopEngine,
)
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import (
    EngineStateEvent,
    EventBase,
    HeartbeatEvent,
    ResetEvent,
)
from engine_host.protocol.host import HostInfo, HostStay
from engine_host.protocol.jobs import Job, JobKind, JobPage, JobState
from engine_host.protocol.launch.fit import FitReport, FitRequest
from engine_host.protocol.launch.plans import BisectRequest, LaunchPlan, LaunchRequest, StartRequest
from engine_host.protocol.logs import LogLine, LogPage, LogQuery
from engine_host.protocol.models import ModelPage
from engine_host.protocol.operations import table as ops
from engine_host.protocol.operations.definition import Done, Operation
from engine_host.protocol.patches import (
    EnginePatches,
    PatchDetail,
    PatchPage,
    PatchQuery,
    PlannedPatches,
    SwitchPatches,
)
from engine_host.protocol.presets import (
    JudgePresets,
    PresetDetail,
    PresetPage,
    PresetVerdicts,
    ResolvePreset,
)
from engine_host.protocol.settings import MendSettings, SettingPage, SettingsChange, SettingsRepair
from engine_host.protocol.telemetry import (
    EnergyPage,
    EnergyQuery,
    Mark,
    MarkPage,
    MarkQuery,
    MemoryDevice,
    MemoryPage,
    TelemetryPage,
    TelemetryQuery,
)
from tests.views.fakes.bench import FakeBench
from tests.views.fakes.endpoint import FakeEndpoint
from tests.views.fakes.library import FakeLibrary
from tests.views.fakes.remote_hosts import FakeRemoteHosts
from tests.views.fakes.remote_work import FakeRemoteWork
from tests.views.samples import fit as fit_samples
from tests.views.samples import host as samples
from tests.views.samples import presets as preset_samples
from tests.wire_contract import WireContract


def _understood(operation: Operation[Any, Any], sent: Any) -> Any:
    """Return a request with all its fields, as a host reads it; as it was sent where it is none."""
    if sent is None:
        return None
    try:
        return operation.request.model_validate(sent).model_dump(mode="json")
    except ValidationError:
        return sent


class FakeHost(FakeBench, FakeEndpoint, FakeLibrary, FakeRemoteHosts, FakeRemoteWork):
    """Answers like a host; the parts are plain attributes that a test may change."""

    def __init__(self, run_folder: Path) -> None:
        FakeBench.__init__(self)
        FakeEndpoint.__init__(self)
        FakeLibrary.__init__(self)
        FakeRemoteHosts.__init__(self)
        FakeRemoteWork.__init__(self)
        self.socket = run_folder / "control.sock"
        self.token_file = run_folder / "token"
        self.run_id = "run-1"
        self.major = 1
        self.host: HostInfo = samples.host()
        self.engines: dict[str, Engine] = {}
        self.jobs: list[Job] = []
        self.models: ModelPage = samples.models()
        self.servers: ServerPage = samples.servers()
        self.settings: SettingPage = samples.settings()
        self.repair = ""
        self.installations: InstallationPage = samples.installations()
        self.patches: PatchPage = samples.patches()
        self.patch: PatchDetail = samples.patch_detail()
        self.applies: EnginePatches = samples.applies()
        self.telemetry: TelemetryPage = samples.telemetry()
        self.autopsies: list[AutopsyEntry] = []
        self.opened_autopsies: dict[str, OpenedAutopsy] = {}
        self.marks: tuple[Mark, ...] = ()
        self.memory: tuple[MemoryDevice, ...] = ()
        self.energy = EnergyPage(
            seq=0, since=0.0, until=1.0, gpus=(), joules=None, generated_tokens=None, per_thousand=None
        )
        self.diagnosis: Callable[[DiagnosisQuery], Diagnosis] = samples.diagnosis
        self.log_lines: list[LogLine] = samples.log_lines()
        self.plan: LaunchPlan = samples.plan()
        self.plan_beside: Callable[[LaunchRequest], LaunchPlan] | None = None
        self.plan_gate: asyncio.Event | None = None
        self.servers_gate: asyncio.Event | None = None
        self.fit: Callable[[FitRequest], FitReport] = fit_samples.report
        self.fit_seconds = 0.0
        self.presets: PresetPage = preset_samples.presets()
        self.verdicts: PresetVerdicts = preset_samples.verdicts()
        self.refuse: dict[str, Problem] = {}
        self.received: list[tuple[str, str, Any]] = []
        self.faults: list[str] = []
        self._contract = WireContract()
        self.keys: list[str] = []
        self.queries: list[dict[str, str]] = []
        self.chat: list[str | float] = samples.chat()
        self.chat_broken = False
        self.last: Engine | None = None
        self.real: ASGIApp | None = None
        self.real_paths: tuple[str, ...] = ()
        self._ring: list[EventBase] = []
        self._grown = asyncio.Event()
        self._server: EmbeddedServer | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def seq(self) -> int:
        """The number of the newest event."""
        return len(self._ring)

    def publish(self, event: EventBase) -> None:
        """Number an event and send it to whoever listens."""
        self._ring.append(event.model_copy(update={"seq": self.seq + 1, "at": time.time()}))
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()

    def set_engine(self, engine: Engine) -> None:
        """Change an engine and say so."""
        self.engines[engine.id] = engine
        self.publish(EngineStateEvent(engine=engine))

    async def start(self) -> None:
        """Listen."""
        self.socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.token_file.write_text("test-token")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        old = os.umask(0o177)
        try:
            listener.bind(str(self.socket))
        finally:
            os.umask(old)
        listener.listen()
        self._closed = False
        config = uvicorn.Config(
            self._front(self.app()),
            lifespan="off",
            log_config=None,
            timeout_graceful_shutdown=1,
            # On a machine that lets a test wait for seconds it would close a connection as it is used again.
            timeout_keep_alive=300,
        )
        self._server = EmbeddedServer(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]), name="fake host")
        while not self._server.started:  # noqa: ASYNC110 - uvicorn offers no event to wait for
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """End every connection and stop listening, as a host that dies does."""
        self._closed = True
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()
        if self._server is not None and self._task is not None:
            self._server.end()
            await self._task
        self.socket.unlink(missing_ok=True)
        self.token_file.unlink(missing_ok=True)

    def sent(self, method: str, path: str) -> list[Any]:
        """The bodies of the commands that came for a path."""
        return [body for verb, where, body in self.received if (verb, where) == (method, path)]

    def _front(self, own: ASGIApp) -> ASGIApp:
        """Paths of real services go there, where a test has put some."""

        async def front(scope: Scope, receive: Receive, send: Send) -> None:
            found = self.real if self.real is not None and scope["path"].startswith(self.real_paths) else own
            await found(scope, receive, send)

        return front

    # What it answers: a function for each operation, as a host has them.

    def app(self) -> Starlette:
        """Return what performs the operations and sends the events."""
        return Starlette(
            routes=[
                *available(functions((self,)), around=self._watched),
                Route(ops.EVENTS.path, self._events),
                Route("/openai/v1/chat/completions", self._chat, methods=["POST"]),
            ],
            exception_handlers={HostError: on_host_error},
        )

    def _watched(self, operation: Operation[Any, Any], perform: Endpoint) -> Endpoint:
        """As a host performs it; what comes is kept, and what a test wants refused is refused."""

        async def watched(request: HttpRequest) -> Response:
            body = await request.body()
            path, sent = request.url.path, json.loads(body) if body else None
            if operation.method == "GET":
                self.queries.append(dict(request.query_params))
            else:
                self.received.append((operation.method, path, _understood(operation, sent)))
                self.keys.append(request.headers.get("idempotency-key", ""))
            self._note(self._contract.request_fault(operation, request.query_params, sent))
            if request.headers.get("authorization") != "Bearer test-token":
                return refused(Problem(reason=Reason.UNAUTHORIZED, message="Wrong token."))
            if (problem := self.refuse.get(path)) is not None:
                answer = refused(problem)
                said = json.loads(bytes(answer.body))
                self._note(self._contract.answer_fault(operation, answer.status_code, said))
                return answer
            return await perform(request)

        return watched

    def _note(self, fault: str) -> None:
        if fault:
            self.faults.append(fault)

    @performs(ops.VERSION)
    def version(self) -> Version:
        """Return the version of the protocol, and the run of this host."""
        return Version(major=self.major, minor=0, program="fake", run_id=self.run_id, seq=self.seq)

    @performs(ops.HOST)
    def _host(self) -> HostInfo:
        return self.host.model_copy(update={"seq": self.seq})

    @performs(ops.QUIT_HOST)
    def _quit(self) -> Done:
        return Done()

    @performs(ops.MODELS)
    def _models(self) -> ModelPage:
        return self.models.model_copy(update={"seq": self.seq})

    @performs(ops.SCAN_MODELS)
    def _scan(self) -> ModelPage:
        return self.models

    @performs(ops.SERVERS)
    async def _servers(self) -> ServerPage:
        if self.servers_gate is not None:
            await self.servers_gate.wait()
        return self.servers.model_copy(update={"seq": self.seq})

    @performs(ops.BUILD_SERVER)
    def _build(self, _asked: ServerBuild) -> Job:
        return samples.job(JobKind.ENGINE_BUILD, JobState.RUNNING)

    @performs(ops.COMPARE_SERVERS)
    def _compare(self) -> Job:
        return samples.job(JobKind.ENGINE_COMPARE, JobState.RUNNING)

    @performs(ops.INSTALLATIONS)
    def _installations(self) -> InstallationPage:
        return self.installations.model_copy(update={"seq": self.seq})

    @performs(ops.INSTALL)
    def _install(self, installation: str) -> Job:
        return samples.install_job(installation)

    @performs(ops.REMOVE_INSTALLATION)
    def _remove(self, installation: str) -> Job:
        return samples.install_job(installation, JobKind.ENGINE_REMOVE)

    @performs(ops.PLAN)
    async def _plan(self, asked: LaunchRequest) -> LaunchPlan:
        plan, gate = self.plan, self.plan_gate
        if asked.instead_of == () and self.plan_beside is not None:
            plan = self.plan_beside(asked)
        if gate is not None:
            # Made as things stood when it was asked for, and sent when the test lets it go.
            await gate.wait()
        return plan

    @performs(ops.FIT)
    async def _fit(self, asked: FitRequest) -> FitReport:
        await asyncio.sleep(self.fit_seconds)
        return self.fit(asked)

    @performs(ops.PRESETS)
    def _presets(self) -> PresetPage:
        return self.presets.model_copy(update={"seq": self.seq})

    @performs(ops.PRESET)
    def _preset(self, preset: str) -> PresetDetail:
        return preset_samples.detail(preset)

    @performs(ops.JUDGE_PRESETS)
    def _judge(self, _asked: JudgePresets) -> PresetVerdicts:
        return self.verdicts

    @performs(ops.ENGINES)
    def _engines(self) -> EnginePage:
        return EnginePage(seq=self.seq, engines=tuple(self.engines.values()), last=self.last)

    @performs(ops.START)
    def _start(self, _asked: StartRequest) -> Engine:
        engine = samples.engine(EngineState.STARTING)
        self.set_engine(engine)
        return engine

    @performs(ops.REFUSED)
    def _refused(self, asked: LaunchRequest) -> Engine:
        return samples.engine(EngineState.FAILED, name=asked.model)

    @performs(ops.STOP)
    def _stop(self, engine: str, _asked: StopEngine) -> Engine:
        stopping = self.engines[engine].model_copy(update={"state": EngineState.STOPPING})
        self.set_engine(stopping)
        return stopping

    @performs(ops.PATCHES)
    def _patches(self) -> PatchPage:
        return self.patches.model_copy(update={"seq": self.seq})

    @performs(ops.PATCH)
    def _patch(self, _patch: str, _asked: PatchQuery) -> PatchDetail:
        return self.patch.model_copy(update={"seq": self.seq})

    @performs(ops.SWITCH_PATCHES)
    def _switch(self, _asked: SwitchPatches) -> PatchPage:
        return self.patches

    @performs(ops.PLAN_PRESET_PATCHES)
    def _plan_patches(self, _asked: ResolvePreset) -> PlannedPatches:
        planned = samples.vllm_plan().patches
        assert planned is not None
        return planned

    @performs(ops.BISECT_PATCHES)
    def _bisect(self, _asked: BisectRequest) -> Job:
        return samples.job(JobKind.PATCH_BISECT, JobState.RUNNING)

    @performs(ops.ENGINE_PATCHES)
    def _applied(self, _engine: str) -> EnginePatches:
        return self.applies.model_copy(update={"seq": self.seq})

    @performs(ops.PROBE_PATCHES)
    def _probe(self, _engine: str) -> EnginePatches:
        return self.applies

    @performs(ops.START_WITHOUT)
    def _start_without(self, engine: str, _patch: str) -> Engine:
        return self.engines[engine]

    @performs(ops.TELEMETRY)
    def _telemetry(self, _asked: TelemetryQuery) -> TelemetryPage:
        return self.telemetry.model_copy(update={"seq": self.seq})

    @performs(ops.ENERGY)
    def _energy(self, _asked: EnergyQuery) -> EnergyPage:
        return self.energy

    @performs(ops.MEMORY)
    def _memory(self) -> MemoryPage:
        return MemoryPage(seq=self.seq, at=1.0, devices=self.memory)

    @performs(ops.MARKS)
    def _marks(self, _asked: MarkQuery) -> MarkPage:
        return MarkPage(seq=self.seq, marks=self.marks)

    @performs(ops.DIAGNOSE)
    def _diagnose(self, asked: DiagnosisQuery) -> Diagnosis:
        return self.diagnosis(asked)

    @performs(ops.AUTOPSIES)
    def _list_autopsies(self) -> AutopsyPage:
        return AutopsyPage(seq=self.seq, folder="/autopsies", autopsies=tuple(self.autopsies))

    @performs(ops.AUTOPSY)
    def _show_autopsy(self, autopsy_id: str) -> OpenedAutopsy:
        if (opened := self.opened_autopsies.get(autopsy_id)) is None:
            raise HostError(Reason.NOT_FOUND, "There is no such record.")
        return opened

    @performs(ops.JOBS)
    def _jobs(self) -> JobPage:
        return JobPage(seq=self.seq, jobs=tuple(self.jobs))

    @performs(ops.CANCEL_JOB)
    def _cancel_job(self, _job: str) -> Job:
        return samples.job(JobKind.ENGINE_BUILD, JobState.CANCELLED)

    @performs(ops.LOGS)
    def _logs(self, _asked: LogQuery) -> LogPage:
        sources = tuple(dict.fromkeys(line.source for line in self.log_lines))
        return LogPage(seq=self.seq, lines=tuple(self.log_lines), sources=sources)

    @performs(ops.SETTINGS)
    def _settings(self) -> SettingPage:
        return self.settings.model_copy(update={"seq": self.seq})

    @performs(ops.CHANGE_SETTINGS)
    def _change(self, _asked: SettingsChange) -> SettingPage:
        return self.settings

    @performs(ops.STAY_HOST)
    def _stay(self, asked: HostStay) -> HostInfo:
        self.host = self.host.model_copy(update={"ends_with_window": not asked.stays})
        return self.host

    @performs(ops.SETTINGS_REPAIR)
    def _settings_repair(self) -> SettingsRepair:
        return SettingsRepair(file=self.settings.file, problem=self.settings.problem, diff=self.repair)

    @performs(ops.MEND_SETTINGS)
    def _mend(self, _asked: MendSettings) -> SettingPage:
        self.settings = self.settings.model_copy(update={"problem": None})
        return self.settings

    async def _events(self, request: HttpRequest) -> Response:
        after = int(request.query_params.get("after", self.seq))
        other = request.query_params.get("run") not in (None, self.run_id)
        return StreamingResponse(self._stream(after, other), media_type="text/event-stream")

    async def _stream(self, place: int, other_run: bool) -> AsyncIterator[str]:
        if other_run or place > self.seq:
            place = self.seq
            yield f"data: {ResetEvent(run_id=self.run_id, latest=place).model_dump_json()}\n\n"
        yield f"data: {HeartbeatEvent(latest=self.seq).model_dump_json()}\n\n"
        while True:
            grown = self._grown
            while place < self.seq:
                event = self._ring[place]
                place += 1
                yield f"id: {event.seq}\ndata: {event.model_dump_json()}\n\n"
            if self._closed:
                return
            await grown.wait()

    async def _chat(self, request: HttpRequest) -> Response:
        self.received.append(("POST", request.url.path, await request.json()))
        if (problem := self.refuse.get(request.url.path)) is not None:
            error = {"message": problem.message, "type": "server_error", "code": problem.reason.value}
            return JSONResponse({"error": error}, 503)
        return StreamingResponse(self._pieces(), media_type="text/event-stream")

    async def _pieces(self) -> AsyncIterator[str]:
        for piece in self.chat:
            if isinstance(piece, float):
                await asyncio.sleep(piece)
            else:
                yield piece
        if self.chat_broken:
            raise ConnectionResetError("the test breaks the stream here")
