"""What can be set before a start: the fields of each engine, and the launch request that they make."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine_host.protocol import EngineKind, LaunchRequest, Overrides, PatchChoice, ServerChoice
from sndr_gui.models.launch.subject import LLAMA_CPP, VLLM, Subject

_YES_NO = (("Yes", True), ("No", False))
_OFF = ("off", "none")
# vLLM names a dozen more for other hardware; what its build here can run is offered.
_KV_TYPES = {
    "cpu": (("fp8", "fp8"), ("fp8_e5m2", "fp8_e5m2")),
    "cuda": (
        ("bfloat16", "bfloat16"),
        ("float16", "float16"),
        ("fp8 (e4m3)", "fp8"),
        ("fp8 (e5m2)", "fp8_e5m2"),
        ("TurboQuant, keys 8 bit, values 4 bit", "turboquant_k8v4"),
        ("TurboQuant, 4 bit", "turboquant_4bit_nc"),
        ("TurboQuant, keys 3 bit, values 4 bit", "turboquant_k3v4_nc"),
        ("TurboQuant, 3 bit", "turboquant_3bit_nc"),
    ),
}
Choice = tuple[str, Any]


@dataclass(frozen=True)
class Field:
    """One setting of a start; `name` is the setting's own, `more` keeps it below "More settings"."""

    name: str
    caption: str
    kind: str
    engines: tuple[EngineKind, ...]
    spoken: str
    low: float = 0
    high: float = 0
    build: str = ""
    choices: tuple[Choice, ...] = ()
    more: bool = False


FIELDS = (
    Field(
        "context",
        "Context",
        "whole",
        (LLAMA_CPP, VLLM),
        "Context, tokens for one stream",
        128,
        10_000_000,
    ),
    Field("streams", "Streams", "whole", (LLAMA_CPP, VLLM), "Streams answered in parallel", 1, 256),
    Field("kv_type_k", "KV type, keys", "choice", (LLAMA_CPP,), "KV cache type of keys"),
    Field("kv_type_v", "KV type, values", "choice", (LLAMA_CPP,), "KV cache type of values"),
    Field("kv_cache_dtype", "KV cache type", "choice", (VLLM,), "Type of the KV cache"),
    Field(
        "kv_cache_gib", "KV cache, GiB", "decimal", (VLLM,), "Size of the KV cache in GiB", 0.1, 4096.0, "cpu"
    ),
    Field(
        "gpu_memory", "Share of the VRAM", "decimal", (VLLM,), "Share of the VRAM, 0 to 1", 0.01, 1.0, "cuda"
    ),
    Field("speculation", "Speculation", "choice", (LLAMA_CPP, VLLM), "Speculation"),
    Field("draft_tokens", "Draft tokens", "whole", (LLAMA_CPP, VLLM), "Tokens drafted a step", 1, 16),
    Field(
        "eager", "Eager", "choice", (VLLM,), "Eager: neither compiled code nor CUDA graphs", choices=_YES_NO
    ),
    Field("threads", "Threads", "whole", (LLAMA_CPP,), "CPU threads", 1, 1024, more=True),
    Field("gpu_layers", "GPU layers", "whole", (LLAMA_CPP,), "Layers on the GPU", 0, 10_000, more=True),
    Field(
        "flash_attention",
        "Flash attention",
        "choice",
        (LLAMA_CPP,),
        "Flash attention",
        choices=(("Automatic", "auto"), ("On", "on"), ("Off", "off")),
        more=True,
    ),
    Field(
        "tensor_parallel", "GPUs", "whole", (VLLM,), "GPUs that share each layer", 1, 64, "cuda", more=True
    ),
    Field(
        "batched_tokens", "Tokens a step", "whole", (VLLM,), "Tokens of one step", 16, 1_000_000, more=True
    ),
    Field(
        "prefix_caching", "Prefix caching", "choice", (VLLM,), "Prefix caching", choices=_YES_NO, more=True
    ),
    Field(
        "batch_invariant",
        "Batch-invariant",
        "choice",
        (VLLM,),
        "Batch-invariant: the same answer whatever runs beside it, with drafts and without; slower",
        build="cuda",
        choices=_YES_NO,
        more=True,
    ),
    Field(
        "dtype",
        "Data type",
        "choice",
        (VLLM,),
        "Data type of weights and activations",
        choices=(("bfloat16", "bfloat16"), ("float16", "float16"), ("float32", "float32")),
        more=True,
    ),
    Field("dummy_weights", "Random weights", "choice", (VLLM,), "Random weights", choices=_YES_NO, more=True),
    Field("tool_parser", "Tool parser", "text", (VLLM,), "Parser of tool calls", more=True),
    Field("reasoning_parser", "Reasoning parser", "text", (VLLM,), "Parser of reasoning", more=True),
    Field(
        "extra_arguments",
        "Further arguments",
        "words",
        (LLAMA_CPP, VLLM),
        "Further arguments of the engine's command line",
        more=True,
    ),
)


@dataclass(frozen=True)
class Form:
    """What the person set; what is not in `values` is left to the layers below."""

    values: Mapping[str, Any] = field(default_factory=dict)
    server: ServerChoice = ServerChoice.AUTO
    installation: str = ""
    keep: bool = False
    without: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    def fields(self, engine: EngineKind, build: str) -> tuple[Field, ...]:
        """The fields of an engine; those of another build, or without a meaning now, are not among them."""
        return tuple(
            entry
            for entry in FIELDS
            if engine in entry.engines
            and entry.build in ("", build)
            and (entry.name != "draft_tokens" or self.values.get("speculation", "off") not in _OFF)
        )

    def given(self, engine: EngineKind, build: str) -> dict[str, Any]:
        """What was set of that which the engine knows."""
        return {
            entry.name: self.values[entry.name]
            for entry in self.fields(engine, build)
            if self.values.get(entry.name) is not None
        }

    def request(self, subject: Subject, build: str) -> LaunchRequest:
        """The launch request that this form makes of a model or a preset."""
        vllm = subject.engine is VLLM
        return LaunchRequest(
            **subject.asks,
            server=ServerChoice.AUTO if vllm else self.server,
            installation=(self.installation or None) if vllm else None,
            keep=self.keep,
            overrides=Overrides.model_validate(self.given(subject.engine, build)),
            patches=PatchChoice(off=self.without, on=self.added) if vllm else PatchChoice(),
        )


def choices_of(entry: Field, build: str, subject: Subject | None) -> tuple[Choice, ...]:
    """What a field of vLLM offers for a build and what is started."""
    if entry.name == "kv_cache_dtype":
        return _KV_TYPES.get(build, _KV_TYPES["cuda"])
    if entry.name != "speculation":
        return entry.choices
    found: list[Choice] = [("Off", "off")]
    if subject is not None and subject.drafts:
        found.append(("MTP: by the model itself", "mtp"))
    found.append(("n-gram: drafts from the prompt", "ngram"))
    if build == "cuda":
        found.append(("n-gram on the GPU", "ngram_gpu"))
    return tuple(found)


def words_of(text: str) -> tuple[tuple[str, ...], str]:
    """The arguments in a line as a shell would split them, or what is wrong with it."""
    try:
        return tuple(shlex.split(text)), ""
    except ValueError as error:
        return (), f"not a list of arguments: {error}"
