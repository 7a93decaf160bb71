"""Plans that llama.cpp carries out."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

from engine_host.core.errors import HostError
from engine_host.core.settings import EngineSettings
from engine_host.engines.llamacpp.command import (
    LlamaCppStart,
    command,
    default_threads,
    physical_cores,
    processor_batch,
    says_batch,
    usable_processors,
)
from engine_host.engines.llamacpp.servers import ServerCapabilities, kv_label
from engine_host.fit.shapes.model import ModelShape
from engine_host.fit.shapes.read import windowed
from engine_host.launch.dependencies import PlannerDependencies
from engine_host.launch.equivalent_command import equivalent_command
from engine_host.launch.fingerprints import (
    InputFingerprints,
    PlanInputs,
    PlanResult,
    files_fingerprint,
)
from engine_host.launch.gpu_choice import (
    freest_that_suffice,
    named_gpus,
    refuse_gpus,
    visible_devices,
)
from engine_host.launch.memory import llamacpp_needs, main_memory
from engine_host.launch.ownership import foreign_settings
from engine_host.launch.placement import FoundMemory, Placement, computes_on_processor
from engine_host.launch.preflight import llamacpp as preflight
from engine_host.launch.preflight.preset import without_gpu
from engine_host.launch.replacing import changes
from engine_host.launch.resolution import (
    PresetStart,
    RequestedSettings,
    Resolution,
    requested_settings,
)
from engine_host.library.gguf import GgufInfo
from engine_host.library.index import IndexedModel
from engine_host.protocol.engine_settings.questions import drafts_itself
from engine_host.protocol.engine_settings.row import LLAMA_CPP
from engine_host.protocol.engine_settings.table import SETTINGS, foreign_to
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import (
    EngineKind,
    LaunchPlan,
    LaunchRequest,
    Layer,
    ServerChoice,
)
from engine_host.protocol.patches import PatchChoice

# llama_context pads a stream's context to this many tokens (llama-context.cpp).
CONTEXT_STEP = 256
# Of the free memory; other programs need some of it again.
_MEMORY_SHARE = 0.8


# Arguments that say which device gets what.
_SPREADS = frozenset(
    {"-ts", "--tensor-split", "-mg", "--main-gpu", "-dev", "--device", "-sm", "--split-mode", "-ot"}
)


class LlamaCppPlans:
    """Makes the plans of llama.cpp, and tells whether one still holds."""

    def __init__(self, dependencies: PlannerDependencies) -> None:
        self._dependencies = dependencies

    async def make(self, asked: PlanInputs, placement: Placement, found: FoundMemory) -> PlanResult:
        """The plan of a request. Raises HostError when there is no such server, or it refuses a setting."""
        plan_id, request, preset = asked.plan_id, asked.request, asked.preset
        info, requested = _gguf(asked.model), requested_settings(request, preset)
        _refuse_foreign(request, requested)
        server = await self._dependencies.find_server(self._server_choice(request))
        _refuse_processor(server, preset, found.gpus)
        shape = _shape(preset, request)
        resolved = self._resolve(asked, requested, server, shape, placement, found)
        here, found = found, replace(found, gpus=_gpus(request, info, resolved, server, found, shape))
        argv, environment = command(
            LlamaCppStart(
                asked.model.file.path,
                str(resolved["name"]),
                resolved.values(),
                info.embedding_only,
                info.pooling,
            ),
            server,
            self._dependencies.run_folder / f"{plan_id}.sock",
        )
        computes_on_gpus = _uses_cuda(server) and bool(found.gpus)
        if computes_on_gpus and (request.gpus or len(found.gpus) < len(here.gpus)):
            environment |= visible_devices(found.gpus)
        total = self._dependencies.total_memory
        findings = preflight.findings(info, resolved, server, found.main, total, shape, found.gpus)
        if server.devices:
            findings += preflight.video_memory(info, resolved, server, found.gpus, found.state, shape)
        needs = preflight.needs(info, resolved, server, found, total, shape)
        fingerprints = await asyncio.to_thread(_fingerprints, info, server)
        plan = LaunchPlan(
            id=plan_id,
            fingerprint="",
            created_at=time.time(),
            model=asked.model.file.id,
            model_path=asked.model.file.path,
            name=str(resolved["name"]),
            engine=EngineKind.LLAMA_CPP.value,
            server=server.choice,
            server_version=server.label,
            argv=argv,
            environment=environment,
            settings=resolved.settings(),
            streams=int(resolved["streams"]),
            context=int(resolved["context"]),
            speculation=str(resolved["speculation"]),
            keep=bool(resolved["keep"]),
            findings=tuple(findings),
            kv_types={kind: kv_label(kind, info.head_dim, server) for kind in server.kv_types},
            changes=changes(
                EngineKind.LLAMA_CPP.value, resolved, None, placement.ended, request.preset or ""
            ),
            needs=tuple(needs),
            gpus=tuple(gpu.uuid for gpu in found.gpus) if computes_on_gpus else (),
            gpus_named=bool(request.gpus),
            command=equivalent_command(request),
        )
        return PlanResult(plan, fingerprints, found.missing(needs))

    def again(self, plan: LaunchPlan, request: LaunchRequest) -> LaunchRequest:
        """The request for the same server, whichever would be chosen now."""
        return request.model_copy(update={"server": plan.server})

    def _server_choice(self, request: LaunchRequest) -> ServerChoice:
        if request.server is ServerChoice.AUTO:
            return self._dependencies.settings.current.engine.server
        return request.server

    def _resolve(
        self,
        asked: PlanInputs,
        requested: RequestedSettings,
        server: ServerCapabilities,
        shape: ModelShape | None,
        placement: Placement,
        found: FoundMemory,
    ) -> Resolution:
        user: EngineSettings = self._dependencies.settings.current.engine
        request, model, info = asked.request, asked.model, _gguf(asked.model)
        resolved = Resolution()
        resolved.set("name", model.file.name, Layer.MODEL, tr("from the model file"))
        resolved.set_given("name", request.name, Layer.OVERRIDE)
        resolved.set("server", server.choice.value, Layer.HARDWARE, server.label)
        if user.server is not ServerChoice.AUTO:
            resolved.set("server", server.choice.value, Layer.USER)
        if request.server is not ServerChoice.AUTO:
            resolved.set("server", server.choice.value, Layer.OVERRIDE)
        resolved.add_settings(LLAMA_CPP, requested)
        for name in ("kv_type_k", "kv_type_v"):
            if resolved.is_requested(name):
                resolved.replace(name, resolved[name], kv_label(resolved[name], info.head_dim, server))
        if info.context and info.context < SETTINGS["context"].default:
            resolved.set("context", info.context, Layer.MODEL, tr("the model was trained for no more"))
        resolved.set_given("context", user.context, Layer.USER)
        if info.context and int(resolved["context"]) > info.context and not _has_other_positions(resolved):
            resolved.cap("context", info.context, tr("the model was trained for no more"))
        context = int(resolved["context"])
        if context % CONTEXT_STEP:
            rounded = context + CONTEXT_STEP - context % CONTEXT_STEP
            resolved.replace("context", rounded, f"llama.cpp rounds {context} up")
        if self._dependencies.settings.is_set("engine.streams"):
            resolved.set("streams", user.streams, Layer.USER)
        resolved.set("threads", *_threads(placement))
        resolved.set_given("threads", user.threads, Layer.USER)
        why = tr("worth a measurement") if server.devices else tr("on a CPU it often slows small models")
        resolved.set("speculation", "off", Layer.ENGINE, why)
        # The buffers of a model that drafts were measured with the server's own batch alone (fit).
        own = drafts_itself(str(resolved["speculation"])) or says_batch(
            resolved.values().get("extra_arguments") or (), server
        )
        if not server.devices and not own:
            why = tr("on a processor: what is cancelled ends with its batch, and small ones cost no speed")
            resolved.set("prompt_batch", processor_batch(int(resolved["streams"])), Layer.HARDWARE, why)
        ranks = info.pooling == "rank"
        resolved.set(
            "embeddings", info.embedding_only and not ranks, Layer.MODEL, tr("what the model is for")
        )
        resolved.set("reranking", ranks, Layer.MODEL, tr("what the model is for"))
        self._limit_streams(resolved, info, server, shape, found.main)
        resolved.set("keep", user.keep, Layer.USER if user.keep else Layer.ENGINE)
        if request.keep:
            resolved.set("keep", True, Layer.OVERRIDE)
        return resolved

    def _limit_streams(
        self,
        resolved: Resolution,
        info: GgufInfo,
        server: ServerCapabilities,
        shape: ModelShape | None,
        free: int,
    ) -> None:
        """Fewer streams where the KV cache of all of them would not fit beside the weights."""
        if server.devices:
            return
        memory = main_memory(free, self._dependencies.total_memory)
        streams = int(resolved["streams"])
        while streams > 1:
            needs = llamacpp_needs(info, resolved, (memory,), server.choice, streams, shape=shape)
            if needs is None or needs.needed <= free * _MEMORY_SHARE:
                break
            streams //= 2
        if streams != resolved["streams"] and resolved.layer("streams") in {Layer.ENGINE, Layer.HARDWARE}:
            why = tr("estimated: more would not fit in {free:.1f} GiB of free memory", free=free / 2**30)
            resolved.limit("streams", streams, why)


def _has_other_positions(resolved: Resolution) -> bool:
    """Return True where the file of the model does not say how far it goes: its figures are replaced."""
    words = resolved.values().get("extra_arguments") or ()
    return any(word.partition("=")[0] == "--override-kv" for word in words)


def _uses_cuda(server: ServerCapabilities) -> bool:
    return any(device.startswith("CUDA") for device in server.devices)


def _gpus(
    request: LaunchRequest,
    info: GgufInfo,
    resolved: Resolution,
    server: ServerCapabilities,
    found: FoundMemory,
    shape: ModelShape | None,
) -> tuple[Gpu, ...]:
    """The GPUs of a start: those that are named, or the freest that hold it. Raises HostError."""
    if not _uses_cuda(server):
        refuse_gpus(request.gpus, server.label)
        return found.gpus
    if request.gpus:
        return named_gpus(request.gpus, found.gpus)
    words = {word.partition("=")[0] for word in resolved.values().get("extra_arguments") or ()}
    if not words.isdisjoint(_SPREADS):
        # They count on every GPU that is here.
        return found.gpus

    def suffice(gpus: Sequence[Gpu]) -> bool:
        needs = preflight.needs(info, resolved, server, replace(found, gpus=tuple(gpus)), 0, shape)
        known = all(need.bytes is not None for need in needs)
        return known and not found.missing(needs)

    return freest_that_suffice(found.gpus, suffice)


def _threads(placement: Placement) -> tuple[int, Layer, str]:
    """The threads of a start, their layer, and why: engines on one processor share its cores.

    An engine that waits for requests needs no core, but its threads spin while it answers, and two that have
    all cores each and answer at once hold each other up (`default_threads`): a later one gets an even share.
    """
    others = [engine.name for engine in placement.beside if computes_on_processor(engine)]
    cores = default_threads()
    if not others:
        if usable_processors() > physical_cores():
            return cores, Layer.HARDWARE, tr("one for each physical core")
        return cores, Layer.HARDWARE, tr("all physical cores but one, which is left to everything else")
    share = max(1, cores // (len(others) + 1))
    compute = "computes" if len(others) == 1 else "compute"
    why = f"an even share of {cores}: {', '.join(others)} {compute} on this processor too"
    return share, Layer.HARDWARE, why


def _shape(preset: PresetStart | None, request: LaunchRequest) -> ModelShape | None:
    """The shape that the catalogue knows of a preset's own model; None where the file says all there is."""
    return None if preset is None or request.model else windowed(preset.resolved.model.shape)


def _gguf(model: IndexedModel) -> GgufInfo:
    if isinstance(model.info, GgufInfo):
        return model.info
    raise HostError(
        Reason.UNSUPPORTED,
        tr(
            "llama.cpp runs GGUF files; {file} is a {format} model.",
            file=model.file.id,
            format=model.file.format,
        ),
        fix=Fix(text="Run it with vLLM, or choose a GGUF file of it.", command=f"sndr run {model.file.id}"),
        evidence={"model": model.file.id, "format": model.file.format},
    )


def _refuse_processor(server: ServerCapabilities, preset: PresetStart | None, gpus: Sequence[Gpu]) -> None:
    """Raise HostError(engine_unusable) when a preset for GPUs would run on the processor."""
    if preset is None or not preset.resolved.preset.needs.gpus or server.devices:
        return
    finding = without_gpu(preset.resolved.preset, server.label, gpus=bool(gpus))
    raise HostError(Reason.ENGINE_UNUSABLE, finding.message, fix=finding.fix, evidence=finding.evidence)


def _refuse_foreign(request: LaunchRequest, requested: RequestedSettings) -> None:
    """Raise HostError(setting_invalid) for what only vLLM knows."""
    given = requested.overrides.model_dump(exclude_none=True, exclude_defaults=True)
    foreign = [name for name in foreign_to(EngineKind.LLAMA_CPP) if name in given]
    if request.server is ServerChoice.VENV:
        foreign.append("server=venv")
    if request.installation is not None:
        foreign.append("installation")
    if requested.patches != PatchChoice():
        foreign.append("patches")
    if foreign:
        raise foreign_settings(EngineKind.LLAMA_CPP, EngineKind.VLLM, foreign)


def _fingerprints(info: GgufInfo, server: ServerCapabilities) -> InputFingerprints:
    return {
        "the model": files_fingerprint(info.parts),
        "the engine": files_fingerprint((server.command.file,), server.label),
    }
