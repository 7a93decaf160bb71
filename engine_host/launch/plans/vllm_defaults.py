"""The settings of a start of vLLM, resolved layer by layer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine_host.core.errors import HostError
from engine_host.core.settings import EngineSettings, SettingsFile
from engine_host.engines.vllm.command import check_speculation, speculation_method
from engine_host.fit.parts import GIB
from engine_host.fit.vllm import default_cache, requested_cache
from engine_host.launch.dependencies import Environment
from engine_host.launch.gpu_choice import freest
from engine_host.launch.memory import main_memory, vllm_model, vllm_needs, vllm_start
from engine_host.launch.preflight.machine import MachineState
from engine_host.launch.resolution import Resolution
from engine_host.library.checkpoint import CheckpointInfo
from engine_host.protocol.engine_settings.table import SETTINGS, Overrides
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Layer

_CPU_STREAMS = 8
GPU_SLACK = 0.02
"""Of a GPU's memory: what vLLM must find free at its start beside its share."""
# What a template writes around a tool call, and the parser that reads it back.
_TOOL_PARSERS = (
    (("<tool_call>", "<function="), "qwen3_xml"),
    (("<tool_call>",), "hermes"),
    (("[TOOL_CALLS]",), "mistral"),
    (("<|python_tag|>",), "llama3_json"),
)


@dataclass(frozen=True)
class Machine:
    """The machine's memory (bytes) and GPUs as a start finds them."""

    free_memory: int
    gpus: Sequence[Gpu]
    state: MachineState = field(default_factory=MachineState)

    def chosen(self, count: int) -> list[Gpu]:
        """The GPUs that a start on so many gets: those with the most free memory, in their own order."""
        return list(freest(self.gpus, count))


def set_defaults(
    resolved: Resolution,
    info: CheckpointInfo,
    environment: Environment,
    settings: SettingsFile,
    machine: Machine,
) -> None:
    """Set what the person's settings, the model and the machine say below a request."""
    user = settings.current.engine
    _capacity(resolved, info, environment, settings)
    _speculation(resolved, info, environment)
    if environment.build == "cpu":
        why = tr("compiling takes a minute or more on a processor and gains little")
        resolved.set("eager", True, Layer.HARDWARE, why)
    _parsers(resolved, info)
    resolved.set("embeddings", info.embedding_only, Layer.MODEL, tr("what the model is for"))
    why = (
        tr("there are no weights: its speed is real, its text is not") if info.shape else tr("it has weights")
    )
    resolved.set("dummy_weights", info.shape, Layer.MODEL, why)
    _memory(resolved, info, environment, machine)
    resolved.set("keep", user.keep, Layer.USER if user.keep else Layer.ENGINE)


def breaks_prefix_caching(info: CheckpointInfo, speculation: str, build: str) -> bool:
    """Return True where vLLM dies at the first request with prefix caching on.

    Its CPU build lacks the kernel that aligns a hybrid's states with drafted tokens
    (`precopy_mamba_align_fused_kernel`, Triton only); measured with 0.32.0.
    """
    return build == "cpu" and info.hybrid and speculation_method(speculation) == "mtp"


def _capacity(
    resolved: Resolution, info: CheckpointInfo, environment: Environment, settings: SettingsFile
) -> None:
    user: EngineSettings = settings.current.engine
    if info.context and info.context <= SETTINGS["context"].default:
        resolved.set("context", info.context, Layer.MODEL, tr("the model was trained for no more"))
    resolved.set_given("context", user.context, Layer.USER)
    if environment.build == "cpu":
        resolved.set("streams", _CPU_STREAMS, Layer.HARDWARE, tr("more make a processor no faster"))
    if settings.is_set("engine.streams"):
        resolved.set("streams", user.streams, Layer.USER)


def _speculation(resolved: Resolution, info: CheckpointInfo, environment: Environment) -> None:
    breaks = breaks_prefix_caching(info, str(resolved["speculation"]), environment.build)
    # A profile means prefix caching in general; only a person means it here.
    meant = resolved.layer("prefix_caching") in {Layer.USER, Layer.OVERRIDE}
    if breaks and not meant and resolved["prefix_caching"] is not False:
        why = tr("with MTP it ends vLLM's CPU build at the first request to a hybrid")
        resolved.limit("prefix_caching", False, why)


def _parsers(resolved: Resolution, info: CheckpointInfo) -> None:
    """Set parsers by what the model's own template writes; `off` switches one off."""
    template = info.chat_template if info.tokenizer else ""
    parser = next((name for marks, name in _TOOL_PARSERS if all(mark in template for mark in marks)), None)
    why = (
        tr("what the chat template writes around a call")
        if parser
        else tr("the chat template has no known form")
    )
    resolved.set("tool_parser", parser, Layer.MODEL, why)
    reasoning = None
    if "<think>" in template:
        reasoning = {"qwen": "qwen3", "deep": "deepseek_r1"}.get(info.model_type[:4])
    why = tr("the chat template thinks in <think>") if reasoning else tr("the chat template does not think")
    resolved.set("reasoning_parser", reasoning, Layer.MODEL, why)


def _memory(resolved: Resolution, info: CheckpointInfo, environment: Environment, machine: Machine) -> None:
    if environment.build == "cpu":
        resolved.remove("gpu_memory")
        gib, why = _cpu_kv_cache(resolved, info, machine.free_memory)
        resolved.set("kv_cache_gib", gib, Layer.HARDWARE, why)
        given = resolved["kv_cache_gib"]
        whole = requested_cache(given, cpu=True) // GIB
        resolved.replace("kv_cache_gib", whole, "" if whole == given else "vLLM takes whole GiB on the CPU")
        return
    gpus = machine.chosen(int(resolved["tensor_parallel"]))
    shares = (gpu.memory_free / gpu.memory_total for gpu in gpus if gpu.memory_total)
    share = math.floor((min(shares, default=1.0) - GPU_SLACK) * 100) / 100
    if 0 < share < SETTINGS["gpu_memory"].default:
        resolved.set("gpu_memory", share, Layer.HARDWARE, tr("others hold the rest of the VRAM"))


def _cpu_kv_cache(resolved: Resolution, info: CheckpointInfo, free: int) -> tuple[int, str]:
    """Whole GiB for the KV cache, and why; vLLM itself would take nine tenths of the machine."""
    context, streams = int(resolved["context"]), int(resolved["streams"])
    model = vllm_model(info)
    memory = (main_memory(free, free),)
    needs = vllm_needs(model, vllm_start(resolved, model, "cpu", memory)) if model else None
    kv = None if needs is None else needs.kv
    gib = default_cache(kv, free) // GIB
    if kv is not None and kv <= gib * GIB:
        return gib, f"room for {streams} requests of {context} tokens"
    return gib, "at most 4 GiB and a quarter of the free memory"


def refuse_wrong(requested: Overrides, environment: Environment) -> None:
    """Raise HostError(setting_invalid) for a value that vLLM's build does not know."""
    if requested.speculation is not None:
        check_speculation(requested.speculation)
    if requested.gpu_memory is not None and environment.build == "cpu":
        raise HostError(
            Reason.SETTING_INVALID,
            "gpu_memory means nothing to vLLM's CPU build.",
            cause="It is a share of a GPU's memory; on a processor the KV cache is given in GiB.",
            fix="Set kv_cache_gib, the size of the KV cache.",
            evidence={"setting": "gpu_memory", "build": environment.build},
        )
