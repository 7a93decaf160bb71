"""What one engine needs of a deployment: program, arguments and variables, in the words of its adapter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine_host.deploy.deployment import Root
from engine_host.deploy.images import image_of
from engine_host.deploy.llamacpp_image import image_server
from engine_host.deploy.sglang import arguments as sglang_arguments
from engine_host.deploy.spec import DeploySpec
from engine_host.engines.llamacpp.command import STRIPPED_ENVIRONMENT as LLAMA_CPP_STRIPPED
from engine_host.engines.llamacpp.command import LlamaCppSettings
from engine_host.engines.llamacpp.command import serve as serve_llamacpp
from engine_host.engines.vllm.command import ENTRY, Additions, VllmSettings, drafter_of
from engine_host.engines.vllm.command import STRIPPED_ENVIRONMENT as VLLM_STRIPPED
from engine_host.engines.vllm.command import serve as serve_vllm
from engine_host.protocol.catalog import PresetEngine, Task
from engine_host.protocol.plans import Finding

_GIB = 2**30
# Offline is what a start of ours is; an engine that fetches its model cannot be.
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_PYTHON = "python3"
_SERVER = "llama-server"
# The adapters are told by `serve` what finds the model, and do not look at this.
_ELSEWHERE = Path()


@dataclass(frozen=True, slots=True)
class EngineStart:
    """How an engine is called on a machine and in its image; shared memory in bytes."""

    program: tuple[str, ...]
    entry: tuple[str, ...]
    arguments: tuple[str, ...]
    shm: int
    environment: Mapping[str, str] = field(default_factory=dict)
    key_variable: str | None = None
    stripped: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def engine_start(wanted: DeploySpec, model: str) -> EngineStart:
    """The start of an engine; `model` is what it finds the model by. Raises what its adapter raises."""
    match wanted.engine:
        case PresetEngine.VLLM:
            return _vllm(wanted, model)
        case PresetEngine.LLAMA_CPP:
            return _llamacpp(wanted, model)
        case PresetEngine.SGLANG:
            return _sglang(wanted, model)


def _vllm(wanted: DeploySpec, model: str) -> EngineStart:
    build = "cuda" if wanted.gpus.count else "cpu"
    additions = Additions(wanted.patched.argv, wanted.patched.environment) if wanted.patched else Additions()
    argv, environment = serve_vllm(
        _vllm_settings(wanted), build, model, (), f"{Root.CACHE}/vllm/plain", additions
    )
    drafter = drafter_of(wanted.text("speculation", "off"))
    fetched = drafter is not None and not Path(drafter).is_absolute()
    if wanted.model.path is None or fetched:
        environment = {name: value for name, value in environment.items() if name not in _OFFLINE}
        # The models of this machine are mounted one by one, and nothing is written among them.
        environment["HF_HOME"] = Root.MODELS if wanted.model.path is None else f"{Root.CACHE}/huggingface"
    entry, arguments = argv[: len(ENTRY)], argv[len(ENTRY) :]
    shared = 16 * _GIB if wanted.gpus.count > 1 else 8 * _GIB
    return EngineStart(
        program=(str(wanted.python or _PYTHON), *entry),
        entry=(_PYTHON, *entry),
        arguments=arguments,
        shm=shared,
        environment=environment,
        key_variable="VLLM_API_KEY",
        stripped=VLLM_STRIPPED,
    )


def _vllm_settings(wanted: DeploySpec) -> VllmSettings:
    values = wanted.values
    embeddings = bool(values.get("embeddings"))
    batched = values.get("batched_tokens")
    return VllmSettings(
        model=wanted.model.path or _ELSEWHERE,
        alias=wanted.alias,
        context=wanted.number("context", 8192),
        streams=wanted.number("streams", 16),
        kv_cache_dtype=wanted.text("kv_cache_dtype", "auto"),
        dtype=wanted.text("dtype", "auto"),
        tensor_parallel=wanted.number("tensor_parallel", 1),
        gpu_memory=values.get("gpu_memory") if wanted.gpus.count else None,
        kv_cache_gib=values.get("kv_cache_gib"),
        batched_tokens=None if batched is None else int(batched),
        eager=bool(values.get("eager")),
        prefix_caching=values.get("prefix_caching"),
        batch_invariant=bool(values.get("batch_invariant")),
        speculation=wanted.text("speculation", "off"),
        draft_tokens=wanted.number("draft_tokens", 3),
        dummy_weights=bool(values.get("dummy_weights")),
        tokenizer=wanted.model.tokenizer,
        tool_parser=None if embeddings else _parser(wanted, "tool_parser"),
        reasoning_parser=None if embeddings else _parser(wanted, "reasoning_parser"),
        embeddings=embeddings,
        revision=wanted.model.revision if wanted.model.path is None else None,
        extra_arguments=wanted.extra(),
    )


def _llamacpp(wanted: DeploySpec, model: str) -> EngineStart:
    values = wanted.values
    embeddings = bool(values.get("embeddings"))
    pooled = any(word.startswith("--pooling") for word in wanted.extra())
    settings = LlamaCppSettings(
        model=wanted.model.path or _ELSEWHERE,
        alias=wanted.alias,
        context=wanted.number("context", 8192),
        streams=wanted.number("streams", 1),
        threads=values.get("threads"),
        gpu_layers=values.get("gpu_layers") if wanted.gpus.count else None,
        kv_type_k=wanted.text("kv_type_k", "f16"),
        kv_type_v=wanted.text("kv_type_v", "f16"),
        flash_attention=wanted.text("flash_attention", "auto"),
        speculation=wanted.text("speculation", "off"),
        draft_tokens=wanted.number("draft_tokens", 3),
        embeddings=embeddings,
        pooling="mean" if embeddings and not pooled and Task.EMBEDDING not in wanted.model.tasks else None,
        extra_arguments=wanted.extra(),
    )
    image = image_of(wanted.engine, gpu=bool(wanted.gpus.count))
    server = wanted.server if wanted.native and wanted.server else image_server(image.version)
    native = wanted.server.command.argv if wanted.native and wanted.server else (_SERVER,)
    return EngineStart(
        program=native,
        entry=image_server(image.version).command.argv,
        arguments=serve_llamacpp(settings, server, model, ()),
        shm=1 * _GIB,
        # The server inside the prebuilt wheel reads neither that argument nor its variable.
        key_variable="LLAMA_API_KEY" if "--api-key" in server.flags else None,
        stripped=LLAMA_CPP_STRIPPED,
    )


def _sglang(wanted: DeploySpec, model: str) -> EngineStart:
    arguments, findings = sglang_arguments(wanted, model)
    entry = ("-m", "sglang.launch_server")
    environment = {"PYTHONUNBUFFERED": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    if wanted.model.path is None:
        environment["HF_HOME"] = Root.MODELS
    return EngineStart(
        program=(_PYTHON, *entry),
        entry=(_PYTHON, *entry),
        arguments=arguments,
        shm=32 * _GIB,
        environment=environment,
        stripped=("SGLANG_", "PYTHONPATH", "PYTHONHOME"),
        findings=findings,
    )


def _parser(wanted: DeploySpec, name: str) -> str | None:
    value = wanted.values.get(name)
    return None if value in {None, "off", "none", ""} else str(value)
