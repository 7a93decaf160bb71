"""The sources of a plan beside the request: models, engines, settings, memory, patches."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from engine_host.core.errors import HostError
from engine_host.core.settings import SettingsFile
from engine_host.engines.llamacpp.servers import ServerCapabilities
from engine_host.launch.placement import Held, held_by_readings
from engine_host.launch.preflight.machine import MachineState
from engine_host.launch.proofs import Circumstances
from engine_host.launch.resolution import PresetStart
from engine_host.library.index import IndexedModel
from engine_host.protocol.bench.proofs import Proof
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchRequest, ServerChoice
from engine_host.protocol.patches import PatchChoice, PlannedPatches


class Environment(Protocol):
    """An environment with vLLM in it; `build` is `cuda` or `cpu`."""

    @property
    def id(self) -> str:
        """Pin and build, e.g. 0.32.0-cpu."""

    @property
    def version(self) -> str:
        """vLLM's version without what follows a plus."""

    @property
    def build(self) -> str:
        """The hardware that it was built for."""

    @property
    def label(self) -> str:
        """Version and build for people."""

    @property
    def python(self) -> Path:
        """Its interpreter."""

    @property
    def site_packages(self) -> Path:
        """The folder of its packages."""

    @property
    def record(self) -> Path:
        """The file that changes when the environment is installed anew."""


@dataclass(frozen=True)
class PatchFacts:
    """The facts that select the patches of a start, and the folder of its ledger; `sm` by GPU, as 9.0."""

    environment: Environment
    kv_cache_dtype: str
    architectures: tuple[str, ...]
    speculation: str | None
    sm: tuple[str, ...]
    ledger: Path


@dataclass(frozen=True)
class PlanPatches:
    """The patches of a start, and what the engine's environment and command line need for them."""

    planned: PlannedPatches
    environment: Mapping[str, str] = field(default_factory=dict)
    argv: tuple[str, ...] = ()


async def _is_none(_name: str) -> bool:
    return False


async def no_presets(request: LaunchRequest) -> PresetStart:
    """Raise HostError(not_found): there is no catalogue."""
    raise HostError(
        Reason.NOT_FOUND,
        tr("There is no preset {preset}.", preset=request.preset),
        fix=Fix(text="See which there are.", command="sndr presets list"),
    )


@dataclass(frozen=True)
class PlannerDependencies:
    """Asked for afresh at every plan.

    `find_model` takes an id, a name or a path, and the formats to take where a name has several.
    `plan_patches` may write files into the cache; it raises HostError for patches that cannot go together,
    and for a required one that is switched off. `find_preset` resolves the preset of a request and finds its
    model; it raises HostError for layers that contradict each other and for a model that is not here.
    `route` are the names that a route of an id leads to, none where there is no such route.
    """

    find_model: Callable[[str, Collection[str]], Awaitable[IndexedModel]]
    find_server: Callable[[ServerChoice], Awaitable[ServerCapabilities]]
    find_environment: Callable[[str | None], Awaitable[Environment]]
    plan_patches: Callable[[PatchFacts, PatchChoice], PlanPatches]
    settings: SettingsFile
    free_memory: Callable[[], int]
    total_memory: int
    gpus: Callable[[], Sequence[Gpu]]
    running: Callable[[], Sequence[Engine]]
    run_folder: Path
    cache_folder: Path
    find_preset: Callable[[LaunchRequest], Awaitable[PresetStart]] = no_presets
    is_preset: Callable[[str], Awaitable[bool]] = _is_none
    machine: Callable[[], MachineState] = MachineState
    proof: Callable[[Circumstances], Proof | None] = lambda _: None
    held: Held = held_by_readings
    route: Callable[[str], Sequence[str]] = lambda _: ()
