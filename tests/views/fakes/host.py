"""A FAKE engine host for view tests: it speaks the real protocol over a real socket, and runs no engine.

What it answers is set by the test; what the window sent is kept in `received`.
"""

import asyncio
import contextlib
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from engine_host.protocol.base import Version
from engine_host.protocol.engines import (
    Engine,
    EnginePage,
    EngineState,
    InstallationPage,
    RequestPage,
    ServerPage,
)
from engine_host.protocol.engines import Request as EngineRequest
from engine_host.protocol.errors import Problem
from engine_host.protocol.events import EngineStateEvent, EventBase, HeartbeatEvent, ResetEvent
from engine_host.protocol.fit import FitReport, FitRequest
from engine_host.protocol.host import HostInfo
from engine_host.protocol.jobs import Job, JobKind, JobPage, JobState
from engine_host.protocol.logs import LogLine, LogPage
from engine_host.protocol.models import ModelPage
from engine_host.protocol.patches import EnginePatches, PatchDetail, PatchPage
from engine_host.protocol.plans import LaunchPlan
from engine_host.protocol.presets import PresetPage, PresetVerdicts
from engine_host.protocol.settings import SettingPage
from engine_host.protocol.telemetry import TelemetryPage
from tests.views.samples import fit as fit_samples
from tests.views.samples import host as samples
from tests.views.samples import presets as preset_samples


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the tests."""
        yield


class FakeHost:
    """Answers like a host; the parts are plain attributes that a test may change."""

    def __init__(self, run_folder: Path) -> None:
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
        self.installations: InstallationPage = samples.installations()
        self.requests: list[EngineRequest] = []
        self.patches: PatchPage = samples.patches()
        self.patch: PatchDetail = samples.patch_detail()
        self.applies: EnginePatches = samples.applies()
        self.telemetry: TelemetryPage = samples.telemetry()
        self.log_lines: list[LogLine] = samples.log_lines()
        self.plan: LaunchPlan = samples.plan()
        self.plan_gate: asyncio.Event | None = None
        self.fit: Callable[[FitRequest], FitReport] = fit_samples.report
        self.fit_seconds = 0.0
        self.presets: PresetPage = preset_samples.presets()
        self.verdicts: PresetVerdicts = preset_samples.verdicts()
        self.refuse: dict[str, Problem] = {}
        self.received: list[tuple[str, str, Any]] = []
        self.keys: list[str] = []
        self.queries: list[dict[str, str]] = []
        self.chat: list[str | float] = samples.chat()
        self.chat_broken = False
        self.real: ASGIApp | None = None
        self.real_paths: tuple[str, ...] = ()
        self._ring: list[EventBase] = []
        self._grown = asyncio.Event()
        self._server: _Server | None = None
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
            self._front(self._app()), lifespan="off", log_config=None, timeout_graceful_shutdown=1
        )
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]), name="fake host")
        while not self._server.started:  # noqa: ASYNC110 - uvicorn offers no event to wait for
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """End every connection and stop listening, as a host that dies does."""
        self._closed = True
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
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

    # What it answers.

    def _app(self) -> Starlette:
        routes = [
            Route("/v1/version", self._version),
            Route("/v1/host", self._page("host")),
            Route("/v1/host/quit", self._command, methods=["POST"]),
            Route("/v1/models", self._page("models")),
            Route("/v1/models/scan", self._command, methods=["POST"]),
            Route("/v1/servers", self._page("servers")),
            Route("/v1/servers/build", self._command, methods=["POST"]),
            Route("/v1/servers/compare", self._command, methods=["POST"]),
            Route("/v1/installations", self._page("installations")),
            Route("/v1/installations/{installation}", self._command, methods=["POST", "DELETE"]),
            Route("/v1/plans", self._command, methods=["POST"]),
            Route("/v1/fit", self._fit, methods=["POST"]),
            Route("/v1/presets", self._page("presets")),
            Route("/v1/presets/verdicts", self._command, methods=["POST"]),
            Route("/v1/presets/{preset}", self._preset),
            Route("/v1/engines", self._engines),
            Route("/v1/engines", self._command, methods=["POST"]),
            Route("/v1/engines/{engine}", self._command, methods=["DELETE"]),
            Route("/v1/engines/{engine}/requests", self._requests),
            Route("/v1/engines/{engine}/requests/{request}", self._command, methods=["DELETE"]),
            Route("/v1/patches", self._page("patches")),
            Route("/v1/patches/switch", self._command, methods=["POST"]),
            Route("/v1/patches/plan-preset", self._command, methods=["POST"]),
            Route("/v1/patches/bisect", self._command, methods=["POST"]),
            Route("/v1/patches/{patch}", self._page("patch")),
            Route("/v1/engines/{engine}/patches", self._page("applies")),
            Route("/v1/engines/{engine}/patches/probe", self._command, methods=["POST"]),
            Route("/v1/engines/{engine}/patches/{patch}/start-without", self._command, methods=["POST"]),
            Route("/v1/telemetry", self._page("telemetry")),
            Route("/v1/jobs", self._jobs),
            Route("/v1/jobs/{job}", self._command, methods=["DELETE"]),
            Route("/v1/logs", self._logs),
            Route("/v1/settings", self._page("settings")),
            Route("/v1/settings", self._command, methods=["PUT"]),
            Route("/v1/events", self._events),
            Route("/openai/v1/chat/completions", self._chat, methods=["POST"]),
        ]
        return Starlette(routes=routes)

    def _answer(self, value: BaseModel) -> Response:
        return Response(value.model_dump_json(), media_type="application/json")

    def _refusal(self, path: str) -> Response | None:
        problem = self.refuse.get(path)
        if problem is None:
            return None
        return JSONResponse({"error": problem.model_dump(mode="json")}, 409)

    async def _version(self, request: HttpRequest) -> Response:
        if request.headers.get("authorization") != "Bearer test-token":
            return JSONResponse({"error": {"reason": "unauthorized", "message": "Wrong token."}}, 401)
        return self._answer(
            Version(major=self.major, minor=0, program="fake", run_id=self.run_id, seq=self.seq)
        )

    def _page(self, name: str) -> Any:
        async def page(request: HttpRequest) -> Response:
            self.queries.append(dict(request.query_params))
            value: BaseModel = getattr(self, name)
            return self._refusal(f"/v1/{name}") or self._answer(value.model_copy(update={"seq": self.seq}))

        return page

    async def _engines(self, _request: HttpRequest) -> Response:
        return self._answer(EnginePage(seq=self.seq, engines=tuple(self.engines.values())))

    async def _jobs(self, _request: HttpRequest) -> Response:
        return self._answer(JobPage(seq=self.seq, jobs=tuple(self.jobs)))

    async def _requests(self, _request: HttpRequest) -> Response:
        return self._answer(RequestPage(seq=self.seq, requests=tuple(self.requests)))

    async def _logs(self, _request: HttpRequest) -> Response:
        sources = tuple(dict.fromkeys(line.source for line in self.log_lines))
        return self._answer(LogPage(seq=self.seq, lines=tuple(self.log_lines), sources=sources))

    async def _command(self, request: HttpRequest) -> Response:
        body = await request.body()
        path, method = request.url.path, request.method
        self.received.append((method, path, json.loads(body) if body else None))
        self.keys.append(request.headers.get("idempotency-key", ""))
        if (refusal := self._refusal(path)) is not None:
            return refusal
        answer, gate = self._done(method, path, request), self.plan_gate
        if path == "/v1/plans" and gate is not None:
            # Made as things stood when it was asked for, and sent when the test lets it go.
            await gate.wait()
        return self._answer(answer)

    async def _fit(self, request: HttpRequest) -> Response:
        body = await request.body()
        asked = FitRequest.model_validate_json(body)
        # As it was sent: what is not set means another thing than its default.
        self.received.append(("POST", request.url.path, json.loads(body)))
        await asyncio.sleep(self.fit_seconds)
        return self._refusal(request.url.path) or self._answer(self.fit(asked))

    async def _preset(self, request: HttpRequest) -> Response:
        return self._answer(preset_samples.detail(request.path_params["preset"]))

    def _done(self, method: str, path: str, request: HttpRequest) -> BaseModel:
        match method, path:
            case "POST", "/v1/plans":
                return self.plan
            case "POST", "/v1/engines":
                engine = samples.engine(EngineState.STARTING)
                self.set_engine(engine)
                return engine
            case "POST", "/v1/presets/verdicts":
                return self.verdicts
            case "POST", "/v1/models/scan":
                return self.models
            case "POST", "/v1/servers/build":
                return samples.job(JobKind.ENGINE_BUILD, JobState.RUNNING)
            case "POST", "/v1/servers/compare":
                return samples.job(JobKind.ENGINE_COMPARE, JobState.RUNNING)
            case "POST", _ if "installation" in request.path_params:
                return samples.install_job(request.path_params["installation"])
            case "DELETE", _ if "installation" in request.path_params:
                return samples.install_job(request.path_params["installation"], JobKind.ENGINE_REMOVE)
            case "POST", "/v1/patches/switch":
                return self.patches
            case "POST", "/v1/patches/plan-preset":
                planned = samples.vllm_plan().patches
                assert planned is not None
                return planned
            case "POST", "/v1/patches/bisect":
                return samples.job(JobKind.PATCH_BISECT, JobState.RUNNING)
            case "POST", _ if path.endswith("/patches/probe"):
                return self.applies
            case "POST", _ if path.endswith("/start-without"):
                return self.engines[request.path_params["engine"]]
            case "PUT", "/v1/settings":
                return self.settings
            case "DELETE", _ if "engine" in request.path_params and "request" not in request.path_params:
                engine = self.engines[request.path_params["engine"]]
                stopping = engine.model_copy(update={"state": EngineState.STOPPING})
                self.set_engine(stopping)
                return stopping
            case "DELETE", _ if "request" in request.path_params:
                return self.requests[0]
            case "DELETE", _:
                return samples.job(JobKind.ENGINE_BUILD, JobState.CANCELLED)
        return Version(major=1, minor=0, program="fake", run_id=self.run_id, seq=self.seq)

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
