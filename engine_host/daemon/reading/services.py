"""The services that read files and the machine, each built when it is first asked for.

A host builds its own of them here; a command where no host runs asks them in its own process.
"""

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from engine_host.core.event_log import EventLog
from engine_host.core.package_data import presets
from engine_host.core.paths import Folders
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.protocol.engines import Engine
from engine_host.protocol.launch.plans import Finding

if TYPE_CHECKING:
    from engine_host.daemon.sources.machine import MachineSource
    from engine_host.daemon.sources.models import ModelFolders
    from engine_host.engines.llamacpp.choice import LlamaCppServers
    from engine_host.engines.vllm.installations import VllmInstallations
    from engine_host.launch.dependencies import Environment
    from engine_host.library.index import ModelIndex
    from engine_host.operations.fit import FitOperations
    from engine_host.operations.hub import HubOperations
    from engine_host.operations.models import ModelOperations
    from engine_host.operations.patches.catalog import PatchCatalogOperations
    from engine_host.operations.presets.catalog import PresetOperations
    from engine_host.operations.presets.consents import PresetConsents
    from engine_host.operations.presets.own import OwnPresetOperations
    from engine_host.operations.presets.verdicts import PresetVerdictOperations
    from engine_host.overlay.patch_catalog import PatchCatalog
    from engine_host.overlay.selection import Switches
    from engine_host.protocol.host import Gpu
    from engine_host.telemetry.gpus import Gpus
    from engine_host.telemetry.machine import MachineMonitor, ProcessMemory


class Reading:
    """All that is known of one machine by reading it; what nobody asks for is not even imported."""

    def __init__(
        self,
        folders: Folders,
        settings: SettingsFile,
        events: EventLog,
        store: Callable[[], Store],
        *,
        stop: Callable[[], bool],
        running: Callable[[], Sequence[Engine]] = lambda: (),
        held: "Callable[[Engine], ProcessMemory | None]" = lambda _: None,
        endpoint: Callable[[], tuple[Finding, ...]] = lambda: (),
    ) -> None:
        """`store` opens the database at the first call; `stop` ends a look for models that is under way.

        `running` are the engines that have a process, `held` what one holds of main memory, `endpoint` says
        what was noticed about its address.
        """
        self._folders = folders
        self._settings = settings
        self._events = events
        self._store = store
        self._stop = stop
        self._running = running
        self._held = held
        self._endpoint = endpoint

    @cached_property
    def gpus(self) -> "Gpus":
        """The GPUs as their driver tells."""
        from engine_host.telemetry.gpus import Gpus

        return Gpus()

    def gpus_now(self) -> "tuple[Gpu, ...]":
        """Read the GPUs of this machine."""
        return self.gpus.read().gpus

    @cached_property
    def monitor(self) -> "MachineMonitor":
        """The machine's memory and processor."""
        from engine_host.telemetry.machine import MachineMonitor

        return MachineMonitor()

    @cached_property
    def machine(self) -> "MachineSource":
        """The machine as plans and measurements ask for it."""
        from engine_host.daemon.sources.machine import MachineSource

        return MachineSource(self.monitor, self.gpus, self._running, self._endpoint, self._folders.cache)

    def memory(self) -> tuple[int, int]:
        """Read main memory: total and free bytes."""
        from engine_host.telemetry.machine import free_memory

        return self.monitor.facts.ram_total, free_memory()

    @cached_property
    def model_folders(self) -> "ModelFolders":
        """The folders that models are looked for in."""
        from engine_host.daemon.sources.models import ModelFolders

        return ModelFolders(self._settings, self._folders.data, self._stop)

    @cached_property
    def model_index(self) -> "ModelIndex":
        """The models that were found."""
        from engine_host.library.index import ModelIndex

        return ModelIndex(self.model_folders.scan)

    @cached_property
    def models(self) -> "ModelOperations":
        """The list of models."""
        from engine_host.operations.models import ModelOperations

        downloads = self.model_folders.downloads
        return ModelOperations(self.model_index, self._settings, self._events, downloads, self._store())

    @cached_property
    def hub(self) -> "HubOperations":
        """Models of which only the config on Hugging Face is known."""
        from engine_host.library.hub.configs import Hub
        from engine_host.operations.hub import HubOperations

        return HubOperations(Hub(self._folders.cache / "hub", os.environ))

    @cached_property
    def servers(self) -> "LlamaCppServers":
        """The llama.cpp servers of this machine."""
        from engine_host.engines.llamacpp.choice import LlamaCppServers

        return LlamaCppServers(self._folders.data, lambda: self._settings.current.engine.own_server)

    @cached_property
    def installations(self) -> "VllmInstallations":
        """The installed environments of vLLM."""
        from engine_host.engines.vllm.installations import VllmInstallations

        place = self._folders.cache / "vllm-environments"
        return VllmInstallations(place, lambda: bool(self.gpus_now()))

    async def environment(self, wanted: str | None) -> "Environment":
        """Find the environment that a start would take. Raises HostError where it is not installed."""
        import asyncio

        return await asyncio.to_thread(self.installations.find, wanted or self._settings.current.engine.vllm)

    @cached_property
    def presets(self) -> "PresetOperations":
        """The catalogue of presets."""
        from engine_host.operations.presets.catalog import PresetOperations

        own = self._folders.config / "presets"
        return PresetOperations(presets, own, self._settings, self._events, self.gpus_now)

    @cached_property
    def consents(self) -> "PresetConsents":
        """The contents of files that a person allowed."""
        from engine_host.operations.presets.consents import PresetConsents

        return PresetConsents(self._store())

    @cached_property
    def own_presets(self) -> "OwnPresetOperations":
        """A person's own presets."""
        from engine_host.operations.presets.own import OwnPresetOperations

        return OwnPresetOperations(self.presets, self.consents)

    @cached_property
    def verdicts(self) -> "PresetVerdictOperations":
        """The verdict on every preset."""
        from engine_host.operations.presets.verdicts import PresetVerdictOperations

        return PresetVerdictOperations(
            self.presets,
            self.fit,
            self.model_index.models,
            lambda: self.servers.find(self._settings.current.engine.server),
            self.environment,
        )

    def patch_catalog(self) -> "PatchCatalog":
        """Read the catalogue of patches."""
        from engine_host.overlay.patch_catalog import BUILT_IN, PatchCatalog

        return PatchCatalog.load((BUILT_IN, self._folders.config / "patches"))

    def switches(self) -> "Switches":
        """Return the person's switches of patches."""
        from engine_host.operations.patches.catalog import read_switches

        return read_switches(self._settings)

    @cached_property
    def patches(self) -> "PatchCatalogOperations":
        """The catalogue of patches, to look at."""
        from engine_host.operations.patches.catalog import PatchCatalogOperations

        return PatchCatalogOperations(
            self.patch_catalog, self._settings, self.installations, self.presets, self._events
        )

    @cached_property
    def fit(self) -> "FitOperations":
        """The estimate of a start's memory."""
        from engine_host.operations.fit import FitOperations

        return FitOperations(
            self.model_index.find,
            self.model_index.models,
            self.presets,
            self.gpus_now,
            self.memory,
            self.machine.state,
            self._running,
            self._store(),
            self.hub.model,
            lambda: self.servers.find(self._settings.current.engine.server),
            self._held,
        )
