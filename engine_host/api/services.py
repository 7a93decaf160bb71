"""What the routers answer from; built once by the service."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from starlette.types import ASGIApp

from engine_host.engines.manager import EngineManager
from engine_host.events import EventLog
from engine_host.jobs import JobRunner
from engine_host.launch.planner import Planner
from engine_host.log_book import LogBook
from engine_host.protocol.engines import Engine, InstallationPage, Request, ServerPage
from engine_host.protocol.host import HostInfo
from engine_host.protocol.jobs import Job
from engine_host.protocol.models import ModelPage
from engine_host.protocol.patches import EnginePatches
from engine_host.protocol.telemetry import TelemetryPage
from engine_host.settings import SettingsFile


class Requests(Protocol):
    """The endpoint's book of requests."""

    def requests(self, engine: str | None = None) -> tuple[Request, ...]:
        """Requests of an engine, newest first."""

    def cancel(self, request_id: str) -> Request:
        """Cancel a request. Raises HostError(not_found)."""


class Servers(Protocol):
    """The llama.cpp servers of this machine."""

    async def page(self) -> ServerPage:
        """Which are there, and which runs next."""

    def build(self) -> Job:
        """Build llama.cpp for this machine."""

    def compare(self) -> Job:
        """Measure the prebuilt server against the built one."""


class Installations(Protocol):
    """vLLM's environments on this machine."""

    async def page(self) -> InstallationPage:
        """Which are there, and which could be."""

    def install(self, wanted: str) -> Job:
        """Install one."""

    def remove(self, wanted: str) -> Job:
        """Remove one."""


class EnginePatchesOf(Protocol):
    """The patches of running engines."""

    def get(self, engine_id: str) -> EnginePatches:
        """The apply summary of an engine."""

    async def probe(self, engine_id: str) -> EnginePatches:
        """Ask its processes what is live."""

    async def start_without(self, engine_id: str, patch: str) -> Engine:
        """Start the same again, without one patch."""


@dataclass(frozen=True)
class Services:
    """Everything the control API speaks for."""

    program: str
    events: EventLog
    jobs: JobRunner
    log_book: LogBook
    settings: SettingsFile
    planner: Planner
    engines: EngineManager
    engine_patches: EnginePatchesOf
    requests: Requests
    servers: Servers
    installations: Installations
    host_info: Callable[[], Awaitable[HostInfo]]
    models: Callable[[bool], Awaitable[ModelPage]]
    telemetry: Callable[[tuple[str, ...], float | None, float | None], TelemetryPage]
    settings_changed: Callable[[tuple[str, ...]], Awaitable[None]]
    quit: Callable[[], None]
    endpoint_app: ASGIApp
