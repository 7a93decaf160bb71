"""Plans that llama.cpp carries out."""

import asyncio
import hashlib
import json
import time
from pathlib import Path

from engine_host._errors import HostError
from engine_host.engines.llamacpp import LlamaCppSettings, command, default_threads
from engine_host.engines.llamacpp_servers import ServerCapabilities, kv_label
from engine_host.launch import preflight
from engine_host.launch.memory import llamacpp_needs, main_memory
from engine_host.launch.ownership import VLLM_ONLY, foreign_settings
from engine_host.launch.replacing import changes, memory_of, replaced
from engine_host.launch.resolve import Resolution
from engine_host.launch.surroundings import Surroundings
from engine_host.launch.twin import twin
from engine_host.library.gguf import GgufInfo
from engine_host.library.shelf import ShelvedModel
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.patches import PatchChoice
from engine_host.protocol.plans import EngineKind, LaunchPlan, LaunchRequest, Layer, ServerChoice
from engine_host.settings import EngineSettings

_USUAL_CONTEXT = 8192
# llama_context pads a stream's context to this many tokens (llama-context.cpp).
_CONTEXT_STEP = 256
# Of the free memory; other programs need some of it again.
_MEMORY_SHARE = 0.8


class LlamaCppPlans:
    """Makes the plans of llama.cpp, and tells whether one still holds."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings

    async def make(self, plan_id: str, request: LaunchRequest, model: ShelvedModel) -> LaunchPlan:
        """The plan of a request. Raises HostError when there is no such server, or it refuses a setting."""
        info = _gguf(model)
        _refuse_foreign(request)
        server = await self._around.find_server(self._server_choice(request))
        resolved = self._resolve(request, model, server)
        argv, environment = command(
            _settings_of(model, resolved, request),
            server,
            self._around.run_folder / f"{plan_id}.sock",
        )
        running = list(self._around.running())
        findings = replaced(running) + preflight.findings(
            info,
            resolved,
            server,
            self._around.free_memory() + memory_of(running),
            self._around.total_memory,
        )
        return LaunchPlan(
            id=plan_id,
            fingerprint=await asyncio.to_thread(_fingerprint, info, server),
            created_at=time.time(),
            model=model.file.id,
            model_path=model.file.path,
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
            changes=changes(EngineKind.LLAMA_CPP.value, resolved, None, running),
            command=twin(request, replaces=bool(running)),
        )

    async def fingerprint(self, plan: LaunchPlan, _request: LaunchRequest, model: ShelvedModel) -> str:
        """What the plan would be known by if it were made now. Raises HostError, OSError."""
        server = await self._around.find_server(plan.server)
        return await asyncio.to_thread(_fingerprint, _gguf(model), server)

    def _server_choice(self, request: LaunchRequest) -> ServerChoice:
        if request.server is ServerChoice.AUTO:
            return self._around.settings.current.engine.server
        return request.server

    def _resolve(self, request: LaunchRequest, model: ShelvedModel, server: ServerCapabilities) -> Resolution:
        user: EngineSettings = self._around.settings.current.engine
        asked, info = request.overrides, _gguf(model)
        resolved = Resolution()
        resolved.set("name", model.file.name, Layer.MODEL, "from the model file")
        resolved.set_given("name", request.name, Layer.OVERRIDE)
        resolved.set("server", server.choice.value, Layer.HARDWARE, server.label)
        if user.server is not ServerChoice.AUTO:
            resolved.set("server", server.choice.value, Layer.USER)
        if request.server is not ServerChoice.AUTO:
            resolved.set("server", server.choice.value, Layer.OVERRIDE)
        for name in ("kv_type_k", "kv_type_v"):
            resolved.set(name, "f16", Layer.ENGINE, "llama.cpp's default")
            if kind := getattr(asked, name):
                resolved.set(name, kind, Layer.OVERRIDE, kv_label(kind, info.head_dim, server))
        resolved.set("context", _USUAL_CONTEXT, Layer.ENGINE, "enough for a chat; raise it for agents")
        if info.context and info.context < _USUAL_CONTEXT:
            resolved.set("context", info.context, Layer.MODEL, "the model was trained for no more")
        resolved.set_given("context", user.context, Layer.USER)
        resolved.set_given("context", asked.context, Layer.OVERRIDE)
        context = int(resolved["context"])
        if context % _CONTEXT_STEP:
            rounded = context + _CONTEXT_STEP - context % _CONTEXT_STEP
            resolved.set("context", rounded, resolved.layer("context"), f"llama.cpp rounds {context} up")
        resolved.set("streams", EngineSettings().streams, Layer.ENGINE, "answered in parallel")
        if self._around.settings.is_set("engine.streams"):
            resolved.set("streams", user.streams, Layer.USER)
        resolved.set_given("streams", asked.streams, Layer.OVERRIDE)
        resolved.set("threads", default_threads(), Layer.HARDWARE, "one core is left to everything else")
        resolved.set_given("threads", user.threads, Layer.USER)
        resolved.set_given("threads", asked.threads, Layer.OVERRIDE)
        resolved.set("gpu_layers", None, Layer.ENGINE, "the server decides")
        resolved.set_given("gpu_layers", asked.gpu_layers, Layer.OVERRIDE)
        resolved.set("flash_attention", "auto", Layer.ENGINE, "the server decides")
        resolved.set_given("flash_attention", asked.flash_attention, Layer.OVERRIDE)
        resolved.set("speculation", "off", Layer.ENGINE, "on a CPU it often slows small models")
        resolved.set_given("speculation", asked.speculation, Layer.OVERRIDE)
        resolved.set("draft_tokens", 3, Layer.ENGINE, "tokens drafted a step when speculation is on")
        resolved.set_given("draft_tokens", asked.draft_tokens, Layer.OVERRIDE)
        self._limit_streams(resolved, info, server)
        resolved.set("embeddings", info.embedding_only, Layer.MODEL, "what the model is for")
        resolved.set_given("embeddings", asked.embeddings, Layer.OVERRIDE)
        resolved.set("keep", user.keep, Layer.USER if user.keep else Layer.ENGINE)
        if request.keep:
            resolved.set("keep", True, Layer.OVERRIDE)
        if asked.extra_arguments:
            resolved.set("extra_arguments", list(asked.extra_arguments), Layer.OVERRIDE)
        return resolved

    def _limit_streams(self, resolved: Resolution, info: GgufInfo, server: ServerCapabilities) -> None:
        """Fewer streams where the KV cache of all of them would not fit beside the weights."""
        if server.devices:
            return
        free = self._around.free_memory() + memory_of(self._around.running())
        memory = main_memory(free, self._around.total_memory)
        streams = int(resolved["streams"])
        while streams > 1:
            needs = llamacpp_needs(info, resolved, memory, server.choice, streams)
            if needs is None or needs.needed <= free * _MEMORY_SHARE:
                break
            streams //= 2
        if streams != resolved["streams"]:
            why = f"estimated: more would not fit in {free / 2**30:.1f} GiB of free memory"
            resolved.set("streams", streams, Layer.HARDWARE, why)


def _gguf(model: ShelvedModel) -> GgufInfo:
    if isinstance(model.info, GgufInfo):
        return model.info
    raise HostError(
        Reason.UNSUPPORTED,
        f"llama.cpp runs GGUF files; {model.file.id} is a {model.file.format} model.",
        fix=Fix(text="Run it with vLLM, or choose a GGUF file of it.", command=f"sndr run {model.file.id}"),
        evidence={"model": model.file.id, "format": model.file.format},
    )


def _refuse_foreign(request: LaunchRequest) -> None:
    """Raise HostError(setting_invalid) for what only vLLM knows."""
    given = request.overrides.model_dump(exclude_none=True, exclude_defaults=True)
    foreign = [name for name in VLLM_ONLY if name in given]
    if request.server is ServerChoice.VENV:
        foreign.append("server=venv")
    if request.installation is not None:
        foreign.append("installation")
    if request.patches != PatchChoice():
        foreign.append("patches")
    if foreign:
        raise foreign_settings(EngineKind.LLAMA_CPP, EngineKind.VLLM, foreign)


def _settings_of(model: ShelvedModel, resolved: Resolution, request: LaunchRequest) -> LlamaCppSettings:
    return LlamaCppSettings(
        model=Path(model.file.path),
        alias=str(resolved["name"]),
        context=int(resolved["context"]),
        streams=int(resolved["streams"]),
        threads=int(resolved["threads"]),
        gpu_layers=resolved["gpu_layers"],
        kv_type_k=str(resolved["kv_type_k"]),
        kv_type_v=str(resolved["kv_type_v"]),
        flash_attention=str(resolved["flash_attention"]),
        speculation=str(resolved["speculation"]),
        draft_tokens=int(resolved["draft_tokens"]),
        embeddings=bool(resolved["embeddings"]),
        # A model that was not made for embeddings does not say how to pool them, and a vector a token is
        # not what the OpenAI API answers with.
        pooling="mean" if resolved["embeddings"] and not model.info.embedding_only else None,
        extra_arguments=request.overrides.extra_arguments,
    )


def _fingerprint(info: GgufInfo, server: ServerCapabilities) -> str:
    seen: list[object] = [server.label]
    for path in (*info.parts, server.command.file):
        state = path.stat()
        seen.append((str(path), state.st_size, state.st_mtime_ns))
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:16]
