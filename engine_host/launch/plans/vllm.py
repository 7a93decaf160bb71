"""Plans that vLLM carries out."""

import asyncio
import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.engines.vllm.command import (
    TURBOQUANT,
    Additions,
    VllmStart,
    command,
    drafter_of,
    refuse_unsafe_kv_cache,
    speculation_method,
    with_drafter,
)
from engine_host.engines.vllm.pins import PINS, current, install_fix
from engine_host.launch.dependencies import Environment, PatchFacts, PlannerDependencies, PlanPatches
from engine_host.launch.equivalent_command import equivalent_command
from engine_host.launch.fingerprints import (
    InputFingerprints,
    PlanInputs,
    PlanResult,
    files_fingerprint,
)
from engine_host.launch.gpu_choice import named_gpus, refuse_gpus, visible_devices
from engine_host.launch.ownership import foreign_settings
from engine_host.launch.placement import FoundMemory, Placement
from engine_host.launch.plans.vllm_defaults import Machine, refuse_wrong, set_defaults
from engine_host.launch.preflight.machine import (
    BuildNeeds,
    architecture,
    disk,
    driver,
    share,
    shared_memory,
    version,
    version_numbers,
)
from engine_host.launch.preflight.turboquant import kernel_findings
from engine_host.launch.preflight.vllm import drafter_missing, findings, needs
from engine_host.launch.proofs import Circumstances
from engine_host.launch.replacing import changes
from engine_host.launch.resolution import (
    PresetStart,
    RequestedSettings,
    Resolution,
    requested_settings,
)
from engine_host.library.checkpoint import CheckpointInfo
from engine_host.library.index import IndexedModel
from engine_host.protocol.bench.proofs import Proof
from engine_host.protocol.engine_settings.row import VLLM
from engine_host.protocol.engine_settings.table import foreign_to
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import (
    EngineKind,
    Finding,
    LaunchPlan,
    LaunchRequest,
    Layer,
    ServerChoice,
)

CHECKPOINTS = ("safetensors", "shape")
# From this version on it finds a GPU of CUDA_VISIBLE_DEVICES by its UUID (platforms/cuda.py,
# device_control_id_to_physical_device_id); before, it reads each as a number.
_KNOWS_UUIDS = (0, 32)


class VllmPlans:
    """Makes the plans of vLLM, and tells whether one still holds."""

    def __init__(self, dependencies: PlannerDependencies) -> None:
        self._dependencies = dependencies

    async def make(self, asked: PlanInputs, placement: Placement, found: FoundMemory) -> PlanResult:
        """The plan of a request.

        Raises HostError when vLLM is not installed, when it cannot run this model or setting, and when the
        patches cannot go together.
        """
        plan_id, request, model = asked.plan_id, asked.request, asked.model
        info, requested = _checkpoint(model), requested_settings(request, asked.preset)
        _refuse_foreign(request, requested)
        environment = await self._dependencies.find_environment(request.installation)
        _refuse_build(environment, asked.preset)
        machine = Machine(found.main, _gpus(request, environment, found), found.state)
        refuse_wrong(requested.overrides, environment)
        resolved = Resolution()
        resolved.set("name", model.file.name, Layer.MODEL, tr("from the model"))
        resolved.set_given("name", request.name, Layer.OVERRIDE)
        resolved.set("installation", environment.id, Layer.HARDWARE, environment.label)
        if self._dependencies.settings.is_set("engine.vllm"):
            resolved.set("installation", environment.id, Layer.USER, tr("the pin"))
        if request.installation is not None:
            resolved.set("installation", environment.id, Layer.OVERRIDE)
        resolved.add_settings(VLLM, requested)
        if request.gpus and (request.overrides.tensor_parallel or 0) != len(machine.gpus):
            resolved.set("tensor_parallel", *_spread(request, len(machine.gpus)))
        set_defaults(resolved, info, environment, self._dependencies.settings, machine)
        if request.keep:
            resolved.set("keep", True, Layer.OVERRIDE)
        refuse_unsafe_kv_cache(str(resolved["kv_cache_dtype"]), environment.build)
        drafter = await self._drafter(resolved)
        patches = await asyncio.to_thread(
            self._patches, plan_id, requested, info, environment, resolved, machine
        )
        chosen = machine.chosen(int(resolved["tensor_parallel"]))
        devices = {}
        if len(chosen) < len(found.gpus) or request.gpus:
            by_uuid = version_numbers(environment.version) >= _KNOWS_UUIDS
            devices = visible_devices(chosen, by_uuid=by_uuid) if chosen else {}
        argv, variables = command(
            VllmStart(str(info.path), str(resolved["name"]), resolved.values(), info.tokenizer, devices),
            environment.python,
            environment.build,
            self._dependencies.run_folder / f"{plan_id}.sock",
            self._dependencies.cache_folder / "vllm" / _cache_name(environment),
            Additions(patches.argv, patches.environment),
        )
        total = self._dependencies.total_memory
        proofs = self._proofs(resolved, environment, chosen, machine)
        noticed = [
            *drafter,
            *findings(info, resolved, environment, machine, total, patches.planned.chosen),
            *kernel_findings(info, resolved, environment, chosen, patches.planned, proofs),
            *self._of_the_machine(resolved, environment, machine),
        ]
        wanted = needs(info, resolved, environment, machine, total)
        fingerprints = await asyncio.to_thread(_fingerprints, info, environment, patches.planned.digest)
        plan = LaunchPlan(
            id=plan_id,
            fingerprint="",
            created_at=time.time(),
            model=model.file.id,
            model_path=model.file.path,
            name=str(resolved["name"]),
            engine=EngineKind.VLLM.value,
            server=ServerChoice.VENV,
            server_version=environment.label,
            argv=argv,
            environment=variables,
            settings=resolved.settings(),
            streams=int(resolved["streams"]),
            context=int(resolved["context"]),
            speculation=str(resolved["speculation"]),
            keep=bool(resolved["keep"]),
            installation=environment.id,
            patches=patches.planned,
            choice=requested.patches,
            findings=tuple(noticed),
            changes=changes(
                EngineKind.VLLM.value, resolved, patches.planned, placement.ended, request.preset or ""
            ),
            needs=wanted.planned,
            gpus=tuple(gpu.uuid for gpu in chosen),
            gpus_named=bool(request.gpus),
            command=equivalent_command(request),
        )
        return PlanResult(plan, fingerprints, found.missing(wanted.least))

    async def _drafter(self, resolved: Resolution) -> list[Finding]:
        """Let a drafting model be the one of this machine: vLLM is kept from fetching it by itself."""
        speculation = str(resolved["speculation"])
        name = drafter_of(speculation)
        if name is None:
            return []
        try:
            drafter = await self._dependencies.find_model(name, CHECKPOINTS)
        except HostError as error:
            if error.reason is not Reason.MODEL_FILE_MISSING:
                raise
            return [drafter_missing(name)]
        if isinstance(drafter.info, CheckpointInfo):
            resolved.replace("speculation", with_drafter(speculation, drafter.info.path))
        return []

    def _of_the_machine(
        self, resolved: Resolution, environment: Environment, machine: Machine
    ) -> Iterator[Finding]:
        """Driver, GPUs, memory that others hold, disk and version."""
        versions = list(dict.fromkeys(pin.version for pin in PINS))
        text = tr("Patches that do not fit are left out by themselves. To be sure, take a pinned version.")
        install = install_fix(current(environment.build), text)
        yield from version(environment.id, environment.version, versions, install)
        yield from disk(machine.state, self._dependencies.cache_folder)
        if environment.build == "cpu":
            return
        pin = next((p for p in PINS if (p.version, p.build) == (environment.version, "cuda")), None)
        count = int(resolved["tensor_parallel"])
        gpus = machine.chosen(count)
        if pin is not None:
            needs = BuildNeeds(environment.label, pin.cuda, pin.driver, pin.sm)
            yield from driver(machine.state, needs)
            yield from architecture(gpus, needs)
        yield from share(gpus, float(resolved["gpu_memory"]), machine.state)
        yield from shared_memory(machine.state, count)

    def _proofs(
        self, resolved: Resolution, environment: Environment, chosen: Sequence[Gpu], machine: Machine
    ) -> tuple[Proof | None, ...]:
        """Return the proofs of TurboQuant's kernels on each GPU of a start."""
        kind = str(resolved["kv_cache_dtype"])
        if not kind.startswith(TURBOQUANT):
            return ()
        driver = machine.state.driver or ""
        asked = (Circumstances(gpu, driver, environment.version, kind) for gpu in chosen)
        return tuple(map(self._dependencies.proof, asked))

    def again(self, plan: LaunchPlan, request: LaunchRequest) -> LaunchRequest:
        """The request for the same environment, whichever would be chosen now."""
        return request.model_copy(update={"installation": plan.installation})

    def _patches(
        self,
        plan_id: str,
        requested: RequestedSettings,
        info: CheckpointInfo,
        environment: Environment,
        resolved: Resolution,
        machine: Machine,
    ) -> PlanPatches:
        gpus = machine.chosen(int(resolved["tensor_parallel"]))
        facts = PatchFacts(
            environment=environment,
            kv_cache_dtype=str(resolved["kv_cache_dtype"]),
            architectures=info.architectures,
            speculation=speculation_method(str(resolved["speculation"])),
            sm=tuple(gpu.compute_capability for gpu in gpus if gpu.compute_capability),
            ledger=self._dependencies.run_folder / "ledger" / plan_id,
        )
        return self._dependencies.plan_patches(facts, requested.patches)


def _gpus(request: LaunchRequest, environment: Environment, found: FoundMemory) -> tuple[Gpu, ...]:
    """The GPUs that a start may use. Raises HostError(setting_invalid) for one that is not here."""
    if environment.build != "cuda":
        refuse_gpus(request.gpus, environment.label)
        return ()
    return named_gpus(request.gpus, found.gpus) if request.gpus else found.gpus


def _spread(request: LaunchRequest, named: int) -> tuple[int, Layer, str]:
    """The setting tensor_parallel of a start on named GPUs. Raises HostError(setting_invalid)."""
    given = request.overrides.tensor_parallel
    if given is not None:
        raise HostError(
            Reason.SETTING_INVALID,
            tr("tensor_parallel is {given}, and {named} GPU(s) are named.", given=given, named=named),
            cause="Where GPUs are named, each layer is shared by all of them.",
            fix="Name as many as there are to share each layer, or leave tensor_parallel out.",
            evidence={"setting": "tensor_parallel", "gpus": list(request.gpus)},
        )
    return named, Layer.OVERRIDE, "as many as GPUs are named"


def _checkpoint(model: IndexedModel) -> CheckpointInfo:
    if isinstance(model.info, CheckpointInfo):
        return model.info
    raise HostError(
        Reason.UNSUPPORTED,
        tr("vLLM runs safetensors checkpoints; {file} is a GGUF file.", file=model.file.id),
        cause="vLLM 0.32 reads no GGUF without a plug-in of somebody else.",
        fix="Run it with llama.cpp, or choose the folder of its safetensors.",
        evidence={"model": model.file.id, "format": model.file.format},
    )


def _refuse_build(environment: Environment, preset: PresetStart | None) -> None:
    """Raise HostError(engine_unusable) when a preset for GPUs would run on the processor."""
    if preset is None or not preset.resolved.preset.needs.gpus or environment.build != "cpu":
        return
    raise HostError(
        Reason.ENGINE_UNUSABLE,
        tr(
            "{preset} is for GPUs, and {environment} runs on the processor.",
            preset=preset.resolved.preset.id,
            environment=environment.label,
        ),
        cause="No other build of vLLM is installed.",
        fix=install_fix(current("cuda", environment.version), tr("Install the build for GPUs.")),
        evidence={"preset": preset.resolved.preset.id, "installation": environment.id},
    )


def _refuse_foreign(request: LaunchRequest, requested: RequestedSettings) -> None:
    """Raise HostError(setting_invalid) for what only llama.cpp knows."""
    given = requested.overrides.model_dump(exclude_none=True, exclude_defaults=True)
    foreign = [name for name in foreign_to(EngineKind.VLLM) if name in given]
    if request.server not in {ServerChoice.AUTO, ServerChoice.VENV}:
        foreign.append(f"server={request.server.value}")
    if foreign:
        raise foreign_settings(EngineKind.VLLM, EngineKind.LLAMA_CPP, foreign)


def _cache_name(environment: Environment) -> str:
    """A folder's name for what an environment compiles; one that the person made has a path for an id."""
    if Path(environment.id).name == environment.id:
        return environment.id
    return f"own-{hashlib.sha256(environment.id.encode()).hexdigest()[:12]}"


def _fingerprints(info: CheckpointInfo, environment: Environment, patches: str) -> InputFingerprints:
    return {
        "the model": files_fingerprint(info.parts),
        "the engine": files_fingerprint((environment.record,), environment.id),
        "the patches": patches,
    }
