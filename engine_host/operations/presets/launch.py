"""The preset of a start: resolved for this machine, its model found among those here, what they lack told."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence

from engine_host.catalog.resolve import require
from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.launch.resolution import PresetStart
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.presets.consents import PresetConsents
from engine_host.operations.presets.fit import ENGINES, not_started, other_engine
from engine_host.operations.presets.verify import PresetVerifyOperations
from engine_host.operations.presets.weights import by_name, chosen, files_finding, weights_here
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind, Finding, LaunchRequest
from engine_host.protocol.models import ModelFile
from engine_host.protocol.presets import ResolvedPreset


class PresetLaunches:
    """Finds what a request for a preset means; asked at each plan."""

    def __init__(
        self,
        presets: PresetOperations,
        list_models: Callable[[bool], Awaitable[Sequence[ModelFile]]],
        checks: PresetVerifyOperations,
        consents: PresetConsents,
    ) -> None:
        """`list_models` looks for them anew when asked to."""
        self._presets = presets
        self._checks = checks
        self._list_models = list_models
        self._consents = consents

    async def __call__(self, request: LaunchRequest) -> PresetStart:
        """The preset with the request's settings over it.

        Raises HostError: not_found for an unknown preset, preset_conflict that names both layers,
        unsupported for an engine that this program does not start, engine_unusable where there are too few
        GPUs, and why its model cannot be chosen.
        """
        assert request.preset is not None
        if not await self._presets.known(request.preset):
            await self._refuse_model(request.preset)
        machine = await self._presets.machine_of(None, None)
        # Read once: what is resolved is what a person consents to.
        catalog = await self._presets.catalog()
        resolved = self._presets.resolve_in(catalog, request.preset, machine, request.overrides)
        _check_engine(resolved, request)
        _check_gpus(resolved)
        require(resolved)
        if request.model:
            model, found = request.model, await self._named(resolved, request.model)
        else:
            model, found = await self._chosen(resolved)
        mark = " ".join(file.digest for file in catalog.files_of(request.preset, resolved.hardware))
        needed = self._consents.to_start(catalog, request.preset, resolved.hardware)
        if needed is not None:
            command = f"sndr launch {shlex.quote(request.preset)}"
            found = [
                finding("preset.consent", command=command, preset=request.preset, files=list(needed.files)),
                *found,
            ]
        return PresetStart(resolved, model, (*_softened(resolved), *found), mark, needed)

    async def _refuse_model(self, wanted: str) -> None:
        """Raise HostError(not_found) when somebody names a model for a preset."""
        if any(wanted in {one.id, one.name} for one in await self._list_models(False)):
            raise HostError(
                Reason.NOT_FOUND,
                tr("{wanted} is a model of this machine, and no preset is called so.", wanted=wanted),
                cause="This starts presets; a model has a command of its own.",
                fix=Fix(text="Start the model.", command=f"sndr run {wanted}"),
                evidence={"preset": wanted},
            )

    async def _chosen(self, resolved: ResolvedPreset) -> tuple[str, list[Finding]]:
        """The path of its weights here, and what is wrong with their files."""
        if not weights_here(resolved, await self._list_models(False)).found:
            # Perhaps they were fetched since the last look.
            await self._list_models(True)
        models = await self._list_models(False)
        file = chosen(resolved, models)
        sizes = await asyncio.to_thread(files_finding, resolved, file)
        hashes = self._checks.finding(resolved, file) if sizes is None else None
        guess = None if weights_here(resolved, models).sure else by_name(resolved, file)
        return file.path, [finding for finding in (sizes, hashes, guess) if finding is not None]

    async def _named(self, resolved: ResolvedPreset, wanted: str) -> list[Finding]:
        """A note where somebody names another model than the preset is for."""
        here = weights_here(resolved, await self._list_models(False))
        if any(wanted in {one.id, one.name, one.path} for one in here.found):
            return []
        command = shlex.join(["sndr", "fit", wanted, "--preset", resolved.preset.id])
        return [
            finding(
                "preset.other_weights",
                command=command,
                model=wanted,
                title=resolved.model.title,
                variant=resolved.preset.variant,
                preset_model=resolved.model.id,
            )
        ]


def _check_engine(resolved: ResolvedPreset, request: LaunchRequest) -> None:
    preset = resolved.preset
    kind = ENGINES.get(resolved.engine)
    if kind is None:
        raise HostError(
            Reason.UNSUPPORTED,
            not_started(resolved).message,
            cause=tr("{preset} is for that engine.", preset=preset.id),
            fix=not_started(resolved).fix,
            evidence={"preset": preset.id, "engine": resolved.engine.value},
        )
    if request.engine not in {EngineKind.AUTO, kind}:
        raise other_engine(preset.id, resolved.engine, request.engine)


def _check_gpus(resolved: ResolvedPreset) -> None:
    """Raise HostError(engine_unusable) when there are fewer GPUs than needed: no plan could be made."""
    for one in resolved.findings:
        if one.id == "preset.gpus":
            raise HostError(
                Reason.ENGINE_UNUSABLE,
                tr("{preset} cannot run here. {message}", preset=resolved.preset.id, message=one.message),
                fix=one.fix,
                evidence=one.evidence,
            )


def _softened(resolved: ResolvedPreset) -> list[Finding]:
    """Return what the hardware lacks; of memory the plan's own arithmetic decides."""
    return [
        finding.model_copy(update={"severity": Severity.WARNING}) if finding.id == "preset.vram" else finding
        for finding in resolved.findings
    ]
