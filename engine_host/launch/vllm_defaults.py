"""The settings of a start of vLLM, resolved layer by layer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine_host._errors import HostError
from engine_host.engines.vllm import speculation_method
from engine_host.launch.memory import main_memory, vllm_model, vllm_needs, vllm_start
from engine_host.launch.resolve import Resolution
from engine_host.launch.surroundings import Environment
from engine_host.library.checkpoint import CheckpointInfo
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.plans import LaunchRequest, Layer, Overrides
from engine_host.settings import EngineSettings, SettingsFile

_USUAL_CONTEXT = 8192
_STREAMS = {"cpu": 8, "cuda": 16}
_METHODS = ("off", "mtp", "ngram", "ngram_gpu")
_MOST_KV_GIB = 4
# Of the free memory; weights, three processes and everything else need the rest.
_KV_SHARE = 0.25
# vLLM's own share of a GPU's memory, and what it must find free at its start.
_GPU_SHARE = 0.9
_GPU_SLACK = 0.02
# What a template writes around a tool call, and the parser that reads it back.
_TOOL_PARSERS = (
    (("<tool_call>", "<function="), "qwen3_xml"),
    (("<tool_call>",), "hermes"),
    (("[TOOL_CALLS]",), "mistral"),
    (("<|python_tag|>",), "llama3_json"),
)


@dataclass(frozen=True)
class Machine:
    """What the machine has for this start, in bytes; `replaces`: an engine gives its part back first."""

    free_memory: int
    gpus: Sequence[Gpu]
    replaces: bool

    def chosen(self, count: int) -> list[Gpu]:
        """The GPUs that a start on so many gets: those with the most free memory, in their own order."""
        freest = sorted(self.gpus, key=lambda gpu: gpu.memory_used - gpu.memory_total)[:count]
        return sorted(freest, key=lambda gpu: gpu.index)


def resolve(
    request: LaunchRequest,
    name: str,
    info: CheckpointInfo,
    environment: Environment,
    settings: SettingsFile,
    machine: Machine,
) -> Resolution:
    """Every setting with its layer and the reason for it. Raises HostError(setting_invalid)."""
    user, asked = settings.current.engine, request.overrides
    _check(asked, environment)
    resolved = Resolution()
    resolved.set("name", name, Layer.MODEL, "from the model")
    resolved.set_given("name", request.name, Layer.OVERRIDE)
    resolved.set("installation", environment.id, Layer.HARDWARE, environment.label)
    if request.installation is not None:
        resolved.set("installation", environment.id, Layer.OVERRIDE)
    _capacity(resolved, info, environment, settings, asked)
    resolved.set("kv_cache_dtype", "auto", Layer.ENGINE, "the type of the weights")
    resolved.set_given("kv_cache_dtype", asked.kv_cache_dtype, Layer.OVERRIDE)
    resolved.set("dtype", "auto", Layer.ENGINE, "as the model says")
    resolved.set_given("dtype", asked.dtype, Layer.OVERRIDE)
    _speculation(resolved, info, environment, asked)
    _compilation(resolved, environment, asked)
    _parsers(resolved, info, asked)
    resolved.set("embeddings", info.embedding_only, Layer.MODEL, "what the model is for")
    resolved.set_given("embeddings", asked.embeddings, Layer.OVERRIDE)
    why = "there are no weights: its speed is real, its text is not" if info.shape else "it has weights"
    resolved.set("dummy_weights", info.shape, Layer.MODEL, why)
    resolved.set_given("dummy_weights", asked.dummy_weights, Layer.OVERRIDE)
    _memory(resolved, info, environment, machine, asked)
    resolved.set("keep", user.keep, Layer.USER if user.keep else Layer.ENGINE)
    if request.keep:
        resolved.set("keep", True, Layer.OVERRIDE)
    if asked.extra_arguments:
        resolved.set("extra_arguments", list(asked.extra_arguments), Layer.OVERRIDE)
    return resolved


def breaks_prefix_caching(info: CheckpointInfo, speculation: str, build: str) -> bool:
    """Whether vLLM dies at the first request with prefix caching on.

    Its CPU build lacks the kernel that aligns a hybrid's states with drafted tokens
    (`precopy_mamba_align_fused_kernel`, Triton only); measured with 0.32.0.
    """
    return build == "cpu" and info.hybrid and speculation_method(speculation) == "mtp"


def _capacity(
    resolved: Resolution,
    info: CheckpointInfo,
    environment: Environment,
    settings: SettingsFile,
    asked: Overrides,
) -> None:
    user: EngineSettings = settings.current.engine
    resolved.set("context", _USUAL_CONTEXT, Layer.ENGINE, "enough for a chat; raise it for agents")
    if info.context and info.context <= _USUAL_CONTEXT:
        resolved.set("context", info.context, Layer.MODEL, "the model was trained for no more")
    resolved.set_given("context", user.context, Layer.USER)
    resolved.set_given("context", asked.context, Layer.OVERRIDE)
    resolved.set(
        "streams", _STREAMS[environment.build], Layer.ENGINE, "answered in parallel, batched by vLLM"
    )
    if settings.is_set("engine.streams"):
        resolved.set("streams", user.streams, Layer.USER)
    resolved.set_given("streams", asked.streams, Layer.OVERRIDE)
    resolved.set("batched_tokens", None, Layer.ENGINE, "vLLM decides")
    resolved.set_given("batched_tokens", asked.batched_tokens, Layer.OVERRIDE)


def _speculation(
    resolved: Resolution, info: CheckpointInfo, environment: Environment, asked: Overrides
) -> None:
    resolved.set("speculation", "off", Layer.ENGINE, "measure what it gains on your prompts")
    if asked.speculation is not None:
        given = "off" if asked.speculation in {"none", ""} else asked.speculation
        resolved.set("speculation", given, Layer.OVERRIDE)
    resolved.set("draft_tokens", 3, Layer.ENGINE, "tokens drafted a step when speculation is on")
    resolved.set_given("draft_tokens", asked.draft_tokens, Layer.OVERRIDE)
    resolved.set("prefix_caching", None, Layer.ENGINE, "vLLM decides")
    if breaks_prefix_caching(info, str(resolved["speculation"]), environment.build):
        why = "with MTP it ends vLLM's CPU build at the first request to a hybrid"
        resolved.set("prefix_caching", False, Layer.HARDWARE, why)
    resolved.set_given("prefix_caching", asked.prefix_caching, Layer.OVERRIDE)


def _compilation(resolved: Resolution, environment: Environment, asked: Overrides) -> None:
    if environment.build == "cpu":
        why = "compiling takes a minute or more on a processor and gains little"
        resolved.set("eager", True, Layer.HARDWARE, why)
    else:
        resolved.set("eager", False, Layer.ENGINE, "compiled code and CUDA graphs decode faster")
    resolved.set_given("eager", asked.eager, Layer.OVERRIDE)


def _parsers(resolved: Resolution, info: CheckpointInfo, asked: Overrides) -> None:
    """Parsers by what the model's own template writes; `off` switches one off."""
    template = info.chat_template if info.tokenizer else ""
    parser = next((name for marks, name in _TOOL_PARSERS if all(mark in template for mark in marks)), None)
    why = "what the chat template writes around a call" if parser else "the chat template has no known form"
    resolved.set("tool_parser", parser, Layer.MODEL, why)
    reasoning = None
    if "<think>" in template:
        reasoning = {"qwen": "qwen3", "deep": "deepseek_r1"}.get(info.model_type[:4])
    why = "the chat template thinks in <think>" if reasoning else "the chat template does not think"
    resolved.set("reasoning_parser", reasoning, Layer.MODEL, why)
    for name in ("tool_parser", "reasoning_parser"):
        given = getattr(asked, name)
        if given is not None:
            resolved.set(name, "off" if given in {"none", ""} else given, Layer.OVERRIDE)


def _memory(
    resolved: Resolution,
    info: CheckpointInfo,
    environment: Environment,
    machine: Machine,
    asked: Overrides,
) -> None:
    resolved.set("tensor_parallel", 1, Layer.ENGINE, "one GPU" if environment.build == "cuda" else "")
    resolved.set_given("tensor_parallel", asked.tensor_parallel, Layer.OVERRIDE)
    if environment.build == "cpu":
        gib, why = _cpu_kv_cache(resolved, info, machine.free_memory)
        resolved.set("kv_cache_gib", gib, Layer.HARDWARE, why)
        if asked.kv_cache_gib is not None:
            whole = max(1, math.floor(asked.kv_cache_gib))
            why = "" if whole == asked.kv_cache_gib else "vLLM takes whole GiB on the CPU"
            resolved.set("kv_cache_gib", whole, Layer.OVERRIDE, why)
        return
    resolved.set("kv_cache_gib", None, Layer.ENGINE, "what its share of the VRAM leaves")
    resolved.set_given("kv_cache_gib", asked.kv_cache_gib, Layer.OVERRIDE)
    resolved.set("gpu_memory", _GPU_SHARE, Layer.ENGINE, "vLLM's usual share of the VRAM")
    wanted = machine.chosen(int(resolved["tensor_parallel"]))
    free = min((1 - gpu.memory_used / gpu.memory_total for gpu in wanted if gpu.memory_total), default=1.0)
    share = math.floor((free - _GPU_SLACK) * 100) / 100
    # An engine that is stopped first gives back what it holds, and nobody can say how much.
    if not machine.replaces and 0 < share < _GPU_SHARE:
        resolved.set("gpu_memory", share, Layer.HARDWARE, "other programs hold the rest of the VRAM")
    resolved.set_given("gpu_memory", asked.gpu_memory, Layer.OVERRIDE)


def _cpu_kv_cache(resolved: Resolution, info: CheckpointInfo, free: int) -> tuple[int, str]:
    """Whole GiB for the KV cache, and why; vLLM itself would take nine tenths of the machine."""
    context, streams = int(resolved["context"]), int(resolved["streams"])
    model = vllm_model(info)
    needs = vllm_needs(model, vllm_start(resolved, "cpu", (main_memory(free, free),))) if model else None
    wanted = _MOST_KV_GIB if needs is None else max(1, math.ceil(needs.kv / 2**30))
    most = max(1, min(_MOST_KV_GIB, math.floor(free * _KV_SHARE / 2**30)))
    if wanted <= most:
        return wanted, f"room for {streams} requests of {context} tokens"
    return most, f"at most {_MOST_KV_GIB} GiB and a quarter of the free memory"


def _check(asked: Overrides, environment: Environment) -> None:
    speculation = asked.speculation
    if speculation and not speculation.startswith("{") and speculation not in {*_METHODS, "none"}:
        raise HostError(
            Reason.SETTING_INVALID,
            f"vLLM does not know the speculation {speculation}.",
            fix=f"Give {', '.join(_METHODS)}, or the object that vLLM's --speculative-config takes.",
            evidence={"asked": speculation, "offered": list(_METHODS)},
        )
    if speculation:
        speculation_method(speculation)
    if asked.gpu_memory is not None and environment.build == "cpu":
        raise HostError(
            Reason.SETTING_INVALID,
            "gpu_memory means nothing to vLLM's CPU build.",
            fix="Set kv_cache_gib, the size of the KV cache.",
            evidence={"setting": "gpu_memory", "build": environment.build},
        )
