"""The verdict on every preset, for this machine or for hardware of the catalogue, what works best first."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from engine_host.catalog.index import Catalog
from engine_host.catalog.resolve import TargetHardware
from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.engines.llamacpp.servers import ServerCapabilities
from engine_host.engines.vllm.pins import current, install_fix
from engine_host.fit.start import Device, Model
from engine_host.launch.dependencies import Environment
from engine_host.launch.preflight.preset import without_gpu
from engine_host.operations.fit import FitOperations, device_of
from engine_host.operations.performs import performs
from engine_host.operations.presets.catalog import HERE, PresetOperations
from engine_host.operations.presets.fit import lacking, rank, verdict_of
from engine_host.operations.presets.weights import drafter_finding, weights_finding, weights_here
from engine_host.protocol.catalog import PresetEngine, PresetEntry
from engine_host.protocol.launch.fit import FitRequest, Verdict
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.models import ModelFile
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import JudgePresets, PresetVerdict, PresetVerdicts, ResolvedPreset

# Why an engine cannot start a preset: by engine, and by whether the preset is for GPUs.
_Missing = Callable[[PresetEntry], Finding | None]
_Engines = Mapping[PresetEngine, _Missing]


class PresetVerdictOperations:
    """Answers `/v1/presets/verdicts`."""

    def __init__(
        self,
        presets: PresetOperations,
        fit: FitOperations,
        list_models: Callable[[], Awaitable[Sequence[ModelFile]]],
        find_server: Callable[[], Awaitable[ServerCapabilities]],
        find_environment: Callable[[str | None], Awaitable[Environment]],
    ) -> None:
        """`find_server` and `find_environment` raise HostError where an engine is not installed."""
        self._presets = presets
        self._fit = fit
        self._list_models = list_models
        self._find_server = find_server
        self._find_environment = find_environment

    @performs(ops.JUDGE_PRESETS)
    async def judge(self, asked: JudgePresets) -> PresetVerdicts:
        """Every usable preset with its verdict; `missing` is of this machine and only told for it.

        Raises HostError(not_found) for unknown hardware, HostError(bad_request) for more GPUs than are here.
        """
        catalog = await self._presets.catalog()
        models = await self._list_models()
        here = await self._presets.here(asked.count) if asked.hardware in {None, HERE} else None
        named = "" if here is not None else catalog.gpu(asked.hardware or "").entry.id
        _, processor = await self._fit.devices(FitRequest(cpu=True))
        without, gpus = await self._fit.devices(FitRequest()) if here is not None else (False, [])
        engines = await self._engines(gpus=bool(here.count)) if here is not None else None
        judged = []
        for preset_id in catalog.ids():
            needed = catalog.preset(preset_id).needs.gpus
            machine = here or TargetHardware(named, asked.count or 1)
            resolved = self._presets.resolve_in(catalog, preset_id, machine)
            devices = processor if not needed else gpus if here else _devices(catalog, machine)
            found = await self._one(resolved, devices[: machine.count or 1], models, engines)
            if here is None and not needed:
                found = _elsewhere(found)
            elif needed and without:
                # The figures are of the processor, which the preset is not for.
                found = found.model_copy(update=_NO_FIGURES)
            judged.append((rank(found, resolved), found))
        return PresetVerdicts(
            hardware=_name(catalog, here, asked),
            verdicts=tuple(found for _, found in sorted(judged, key=lambda pair: pair[0])),
        )

    async def _one(
        self,
        resolved: ResolvedPreset,
        devices: Sequence[Device],
        models: Sequence[ModelFile],
        engines: _Engines | None,
    ) -> PresetVerdict:
        model: Model | HostError
        try:
            model = await self._fit.model_of_preset(resolved, models)
        except HostError as error:
            model = error
        found = verdict_of(resolved, model, devices, self._fit.learnt)
        missing = [*lacking(resolved)]
        weights = weights_here(resolved, models)
        if engines is not None:
            not_here = weights_finding(resolved, weights)
            missing += [] if not_here is None else [not_here]
            drafter = drafter_finding(resolved, models)
            missing += [] if drafter is None else [drafter]
            engine = engines.get(resolved.engine, _nothing)(resolved.preset)
            missing += [] if engine is None else [engine]
        usable = weights.found and not weights.ambiguous and weights.found[0].problem is None
        return found.model_copy(
            update={"missing": tuple(missing), "model": weights.found[0].id if usable else None}
        )

    async def _engines(self, *, gpus: bool) -> _Engines:
        """Return what is missing to start each engine; `gpus`: this machine has some."""
        return {
            PresetEngine.LLAMA_CPP: await self._llama_cpp(gpus=gpus),
            PresetEngine.VLLM: await self._vllm(gpus=gpus),
        }

    async def _llama_cpp(self, *, gpus: bool) -> _Missing:
        try:
            server = await self._find_server()
        except HostError as error:
            absent = _absent(error)
            return lambda _preset: absent
        return lambda preset: (
            without_gpu(preset, server.label, gpus=gpus) if preset.needs.gpus and not server.devices else None
        )

    async def _vllm(self, *, gpus: bool) -> _Missing:
        try:
            environment = await self._find_environment(None)
        except HostError as error:
            absent = _absent(error)
            return lambda _preset: absent
        return lambda preset: (
            _cpu_build(environment, gpus=gpus) if preset.needs.gpus and environment.build == "cpu" else None
        )


_SPEEDS = ("decode", "decode_at_depth", "decode_all_streams", "decode_undrafted")
_NO_FIGURES = {**dict.fromkeys(("needed", "room", "largest_context", *_SPEEDS)), "measured_why": ""}


def _elsewhere(found: PresetVerdict) -> PresetVerdict:
    """A preset for the processor of a machine of which only the GPUs are named."""
    why = "It runs on the processor; how much main memory there is beside these GPUs is not known."
    known = {} if found.verdict is Verdict.CANNOT_RUN else {"verdict": Verdict.UNKNOWN, "why": why}
    return found.model_copy(update={"reason": None, **_NO_FIGURES, **known})


def _nothing(_preset: PresetEntry) -> None:
    return None


def _name(catalog: Catalog, here: TargetHardware | None, asked: JudgePresets) -> str:
    if here is None:
        title = catalog.gpu(asked.hardware or "").entry.title
        return f"{asked.count or 1} × {title}"
    if not here.count:
        return "this machine, which has no GPU"
    title = here.card.title if here.card is not None else catalog.gpu(here.hardware or "").entry.title
    return f"this machine: {here.count} × {title}"


def _devices(catalog: Catalog, machine: TargetHardware) -> list[Device]:
    entry = catalog.gpu(machine.hardware or "").entry
    return [device_of(entry, number) for number in range(machine.count)]


def _absent(error: HostError) -> Finding:
    problem = error.problem
    return finding(
        "engine.missing",
        reason=problem.reason,
        fix=problem.fix,
        evidence=problem.evidence,
        problem=problem.message,
    )


def _cpu_build(environment: Environment, *, gpus: bool) -> Finding:
    """Of vLLM only the build for processors is installed, and the preset is for GPUs.

    Without GPUs on this machine the build for them would not run here, so that no click installs it.
    """
    fix = install_fix(current("cuda", environment.version), "")
    return finding(
        "engine.build",
        fix=fix if gpus else fix.model_copy(update={"action": None}),
        label=environment.label,
        installation=environment.id,
    )
