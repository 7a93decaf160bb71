"""What the routers answer from; built once by the service."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from starlette.types import ASGIApp

from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.settings import SettingsFile
from engine_host.engines.manager import EngineManager
from engine_host.launch.planner import Planner
from engine_host.protocol.deploy import Rendering, RenderRequest
from engine_host.protocol.engines import Backend, Engine, InstallationPage, Request, ServerPage
from engine_host.protocol.fit import FitReport, FitRequest, HubModel, HubPage, MeasuredPage, ReadFromHub
from engine_host.protocol.host import Endpoint, HostInfo
from engine_host.protocol.jobs import Job
from engine_host.protocol.models import ModelPage
from engine_host.protocol.patches import (
    CheckPage,
    EnginePatches,
    PatchDetail,
    PatchPage,
    PlannedPatches,
    SwitchPatches,
)
from engine_host.protocol.plans import BisectRequest, LaunchRequest
from engine_host.protocol.presets import (
    CatalogPage,
    EditedPreset,
    EditPreset,
    ExportedPreset,
    ImportedPreset,
    ImportPreset,
    JudgePresets,
    LintPreset,
    PresetDetail,
    PresetFile,
    PresetForm,
    PresetLint,
    PresetPage,
    PresetVerdicts,
    ResolvedPreset,
    ResolvePreset,
    SavedPreset,
    SavePreset,
)
from engine_host.protocol.telemetry import TelemetryPage


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

    def build(self, backend: Backend = Backend.AUTO) -> Job:
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


class Fits(Protocol):
    """The memory calculator."""

    async def fit(self, request: FitRequest) -> FitReport:
        """What a model needs on a machine."""

    async def measured(self) -> MeasuredPage:
        """Starts whose prediction was compared."""


class HubModels(Protocol):
    """Configs of models on Hugging Face."""

    async def page(self) -> HubPage:
        """Those that were read before."""

    async def read(self, asked: ReadFromHub) -> HubModel:
        """Ask for one."""


class Patches(Protocol):
    """The patch catalogue."""

    async def page(self) -> PatchPage:
        """Every patch."""

    async def detail(self, patch_id: str, vllm: str | None) -> PatchDetail:
        """One patch, and what it touches in one vLLM."""

    async def check(self, vllm: str | None) -> CheckPage:
        """Preflight of every patch."""

    async def switch(self, asked: SwitchPatches) -> PatchPage:
        """Switch patches in the settings."""

    async def plan(self, request: LaunchRequest) -> PlannedPatches:
        """The patches that a start would get."""

    async def plan_preset(self, resolved: ResolvedPreset, sm: str | None) -> PlannedPatches:
        """The patches that a preset's start would get."""


class Presets(Protocol):
    """The catalogue of presets."""

    async def page(self) -> PresetPage:
        """Every preset."""

    async def entries(self) -> CatalogPage:
        """Models, hardware, profiles and engines."""

    async def form(self) -> PresetForm:
        """JSON Schemas for editing."""

    async def detail(self, preset_id: str) -> PresetDetail:
        """One preset."""

    async def file(self, preset_id: str) -> PresetFile:
        """The file of one."""

    async def resolve(self, asked: ResolvePreset) -> ResolvedPreset:
        """What one comes to on some hardware."""

    async def resolved_on(self, asked: ResolvePreset) -> tuple[ResolvedPreset, str | None]:
        """The same, with the compute capability there."""

    async def lint(self, asked: LintPreset) -> PresetLint:
        """Check a text."""

    async def edit(self, asked: EditPreset) -> EditedPreset:
        """Change values in a text."""

    async def save(self, preset_id: str, asked: SavePreset) -> SavedPreset:
        """Save a person's own."""

    async def remove(self, preset_id: str) -> SavedPreset:
        """Remove a person's own."""

    async def export(self, preset_id: str) -> ExportedPreset:
        """One as a file."""

    async def take_in(self, asked: ImportPreset) -> ImportedPreset:
        """Import such a file."""


class Checks(Protocol):
    """The check of presets' files."""

    async def verify(self, preset_id: str) -> Job:
        """Hash the files of a preset."""


class Verdicts(Protocol):
    """The verdicts on all presets."""

    async def judge(self, asked: JudgePresets) -> PresetVerdicts:
        """Every preset, what works best first."""


class Deploys(Protocol):
    """Starts written down for others to carry out."""

    async def render(self, asked: RenderRequest) -> Rendering:
        """One start for one target."""


class Bisections(Protocol):
    """The search for a patch that breaks a start."""

    def refuse_others(self) -> None:
        """No other start while one runs."""

    async def start(self, asked: BisectRequest) -> Job:
        """Find the culprit."""


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
    log_buffer: LogBuffer
    settings: SettingsFile
    planner: Planner
    fit: Fits
    hub: HubModels
    engines: EngineManager
    engine_patches: EnginePatchesOf
    patches: Patches
    presets: Presets
    checks: Checks
    verdicts: Verdicts
    deploys: Deploys
    bisections: Bisections
    requests: Requests
    servers: Servers
    installations: Installations
    host_info: Callable[[], Awaitable[HostInfo]]
    endpoint: Callable[[], Endpoint]
    models: Callable[[bool], Awaitable[ModelPage]]
    telemetry: Callable[[tuple[str, ...], float | None, float | None], TelemetryPage]
    settings_changed: Callable[[tuple[str, ...]], Awaitable[None]]
    quit: Callable[[], None]
    stay: Callable[[bool], None]
    endpoint_app: ASGIApp
