"""The catalogue of patches: lists, preflight, diffs, switches, plans."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.outside import files
from engine_host.core.settings import SettingsFile
from engine_host.engines.vllm.installations import VllmInstallations
from engine_host.operations.patches.plan import preset_properties
from engine_host.operations.performs import performs
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.overlay.check import check, check_patch, operations
from engine_host.overlay.patch_catalog import PatchCatalog
from engine_host.overlay.selection import Switches, select, switch_states
from engine_host.overlay.sources import VllmSource, open_source
from engine_host.protocol.catalog import PresetEngine
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import PatchesChangedEvent
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchRequest
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import (
    CheckPage,
    PatchDetail,
    PatchPage,
    PatchQuery,
    PlannedPatches,
    SwitchPatches,
)
from engine_host.protocol.presets import ResolvePreset

if TYPE_CHECKING:
    from engine_host.operations.plans import PlanOperations


class PatchCatalogOperations:
    """The catalogue as the window and the command line see it; it is read anew at each question."""

    def __init__(
        self,
        catalogue: Callable[[], PatchCatalog],
        settings: SettingsFile,
        installations: VllmInstallations,
        presets: PresetOperations,
        events: EventLog,
    ) -> None:
        self._catalogue = catalogue
        self._settings = settings
        self._installations = installations
        self._presets = presets
        self._events = events

    @performs(ops.PATCHES)
    async def page(self) -> PatchPage:
        """Every patch in order of application. Raises HostError(patch_cycle)."""
        catalogue = await asyncio.to_thread(self._catalogue)
        return catalogue.page(self._events.seq, switch_states(catalogue, self._switches()))

    @performs(ops.PATCH)
    async def detail(self, patch_id: str, asked: PatchQuery) -> PatchDetail:
        """One patch and what it touches in one vLLM; without a name in the one that would run.

        Raises HostError(patch_unknown), HostError(not_found) for a vLLM that is not there.
        """
        catalogue = await asyncio.to_thread(self._catalogue)
        patch = catalogue.get(patch_id)
        source = await asyncio.to_thread(self._source, asked.vllm, missing_is_fine=asked.vllm is None)
        page = catalogue.page(self._events.seq, switch_states(catalogue, self._switches()))
        described = next(one for one in page.patches if one.id == patch.id)
        return PatchDetail(
            seq=self._events.seq,
            patch=described,
            vllm=source.version if source else None,
            operations=await asyncio.to_thread(operations, patch, source),
            check=await asyncio.to_thread(check_patch, catalogue, patch, source, {}) if source else None,
        )

    @performs(ops.CHECK_PATCHES)
    async def check(self, asked: PatchQuery) -> CheckPage:
        """Preflight of the catalogue against an installed vLLM, a venv or a wheel. Raises HostError."""
        catalogue = await asyncio.to_thread(self._catalogue)
        source = await asyncio.to_thread(self._source, asked.vllm)
        assert source is not None
        checks = await asyncio.to_thread(check, catalogue, source)
        return CheckPage(seq=self._events.seq, vllm=source.version, source=source.label, checks=checks)

    @performs(ops.PLAN_PRESET_PATCHES)
    async def plan_preset(self, asked: ResolvePreset) -> PlannedPatches:
        """Select the patches that a preset's start would get on its hardware, without its files.

        It is asked of the vLLM that this program installs now. Raises HostError(unsupported) for a preset of
        another engine, and what selecting raises.
        """
        resolved, sm = await self._presets.resolved_on(asked)
        if resolved.engine != PresetEngine.VLLM:
            raise HostError(
                Reason.UNSUPPORTED,
                tr(
                    "{preset} is for {engine}, which has no overlay.",
                    preset=resolved.preset.id,
                    engine=resolved.engine,
                ),
                cause="Patches are for vLLM.",
                fix="Choose a preset for vLLM: `sndr presets list --engine vllm`.",
                evidence={"preset": resolved.preset.id, "engine": resolved.engine},
            )
        catalogue = await asyncio.to_thread(self._catalogue)
        found = select(catalogue, preset_properties(resolved, sm), self._switches(), resolved.patches)
        return PlannedPatches(
            digest="",
            chosen=tuple(patch.id for patch in found.chosen),
            left_out=found.left_out,
            required=found.required,
        )

    def _switches(self) -> Switches:
        return read_switches(self._settings)

    def _source(self, vllm: str | None, *, missing_is_fine: bool = False) -> VllmSource | None:
        if vllm is not None and ("/" in vllm or vllm.endswith(".whl")):
            return open_source(files.expanded(vllm).absolute())
        try:
            environment = self._installations.find(vllm)
        except HostError:
            if missing_is_fine:
                return None
            raise
        found = open_source(environment.site_packages)
        return VllmSource(found.version, environment.label, found.reader)


class PatchOperations(PatchCatalogOperations):
    """The same with what changes switches and what a host's starts would get."""

    def __init__(
        self,
        catalogue: Callable[[], PatchCatalog],
        settings: SettingsFile,
        settings_changed: Callable[[tuple[str, ...]], Awaitable[None]],
        installations: VllmInstallations,
        plans: "PlanOperations",
        presets: PresetOperations,
        events: EventLog,
    ) -> None:
        super().__init__(catalogue, settings, installations, presets, events)
        self._settings_changed = settings_changed
        self._plans = plans

    @performs(ops.SWITCH_PATCHES)
    async def switch(self, asked: SwitchPatches) -> PatchPage:
        """Switch patches, families or all in the person's settings.

        Raises HostError(patch_unknown), and what saving the settings raises.
        """
        catalogue = await asyncio.to_thread(self._catalogue)
        now = self._settings.current.patches
        for name in asked.names:
            # The switch of a patch that was retired can be taken back, and nothing else.
            if asked.to != "default" or name not in {*now.off, *now.on}:
                catalogue.named(name)
        # A family means all of it: a switch of one of its patches would win over the family's.
        covered = frozenset().union(*(_members(catalogue, name) for name in asked.names))
        changed = self._settings.change(
            {
                "patches.off": _with(catalogue, now.off, asked, covered, asked.to == "off"),
                "patches.on": _with(catalogue, now.on, asked, covered, asked.to == "on"),
            }
        )
        if changed:
            await self._settings_changed(changed)
            self._events.publish(PatchesChangedEvent())
        return await self.page()

    @performs(ops.PLAN_PATCHES)
    async def plan(self, request: LaunchRequest) -> PlannedPatches:
        """The patches that a start would get. Raises HostError."""
        plan = await self._plans.plan(request)
        if plan.patches is None:
            raise HostError(
                Reason.UNSUPPORTED,
                tr("{plan} would run in {engine}, which has no overlay.", plan=plan.name, engine=plan.engine),
                cause="Patches are for vLLM.",
                fix="Choose a model in safetensors format.",
                evidence={"engine": plan.engine},
            )
        return plan.patches


def read_switches(settings: SettingsFile) -> Switches:
    """The person's switches, as the selection takes them."""
    patches = settings.current.patches
    return Switches(off=patches.off, on=patches.on)


def _members(catalogue: PatchCatalog, name: str) -> frozenset[str]:
    """The patches that a name means; none for the switch of a patch that was retired."""
    try:
        return catalogue.named(name)
    except HostError:
        return frozenset()


def _with(
    catalogue: PatchCatalog,
    now: tuple[str, ...],
    asked: SwitchPatches,
    covered: frozenset[str],
    wanted: bool,
) -> list[str] | None:
    """A list of switches after a change: without what the change covers, with its names where wanted."""
    kept = [
        name
        for name in now
        if name not in asked.names and not ((members := _members(catalogue, name)) and members <= covered)
    ]
    return ([*kept, *dict.fromkeys(asked.names)] if wanted else kept) or None
