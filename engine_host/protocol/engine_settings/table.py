"""The settings of an engine's start, one row each; everything else that deals with settings reads this table.

A row is a field of `Overrides`: its type and bounds, and an `EngineSetting` with all else. From here come
validation, `--set` and the named options of the command line, the forms of the window, what files of the
catalogue may set, and the engines' arguments, in this order.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator

from engine_host.protocol.base import Command
from engine_host.protocol.engine_settings.row import (
    OFF,
    SGLANG,
    VLLM,
    Argument,
    Choice,
    EngineSetting,
    row_of,
)
from engine_host.protocol.engine_settings.variables import checked, words_of

_UNASKED = (OFF, "auto")
_ALSO_OFF = ("none", "")


class Overrides(Command):
    """Settings of one start; None keeps what the layers below say."""

    context: Annotated[
        int | None,
        Field(ge=128, le=1 << 30),
        EngineSetting(
            "Context",
            "tokens for one stream",
            default=8192,
            why="enough for a chat; raise it for agents",
            unit="tokens",
            llama_cpp=Argument("--ctx-size", ("-c",)),
            vllm=Argument("--max-model-len"),
            sglang=Argument("--context-length"),
            option="--context",
            harmless=True,
            fit=("context",),
        ),
    ] = None
    streams: Annotated[
        int | None,
        Field(ge=1, le=256),
        EngineSetting(
            "Streams",
            "requests answered in parallel",
            default=8,
            why="answered in parallel",
            llama_cpp=Argument("--parallel", ("-np",)),
            vllm=Argument("--max-num-seqs", default=16),
            sglang=Argument("--max-running-requests"),
            option="--streams",
            harmless=True,
            fit=("streams",),
        ),
    ] = None
    threads: Annotated[
        int | None,
        Field(ge=1, le=1024),
        EngineSetting(
            "Threads",
            "CPU threads",
            llama_cpp=Argument("--threads", ("-t", "-tb", "--threads-batch")),
            more=True,
            harmless=True,
        ),
    ] = None
    prompt_batch: Annotated[
        int | None,
        Field(ge=32, le=16384),
        EngineSetting(
            "Prompt batch",
            "tokens of a prompt that are read at once; a cancelled one is read to the end of its batch",
            why="llama.cpp decides: 2,048 in passes of 512",
            unit="tokens",
            llama_cpp=Argument(),
            more=True,
            harmless=True,
            fit=("batched_tokens",),
            since="0.3.0",
        ),
    ] = None
    flash_attention: Annotated[
        str | None,
        Field(pattern="^(auto|on|off)$"),
        EngineSetting(
            "Flash attention",
            "attention in one pass over the KV cache",
            default="auto",
            why="the server decides",
            llama_cpp=Argument("--flash-attn", ("-fa",), implied=("auto",)),
            choices=(Choice("auto", "Automatic"), Choice("on", "On"), Choice("off", "Off")),
            more=True,
            harmless=True,
            fit=("flash_attention",),
        ),
    ] = None
    kv_type_k: Annotated[
        str | None,
        EngineSetting(
            "KV type, keys",
            "type of the KV cache for keys: f16, q8_0, q4_0 …",
            default="f16",
            why="llama.cpp's default",
            llama_cpp=Argument("--cache-type-k", ("-ctk",), implied=("f16",)),
            kind="choice",
            option="--kv-type",
            harmless=True,
            fit=("kv",),
        ),
    ] = None
    kv_type_v: Annotated[
        str | None,
        EngineSetting(
            "KV type, values",
            "type of the KV cache for values: f16, q8_0, q4_0 …",
            default="f16",
            why="llama.cpp's default",
            llama_cpp=Argument("--cache-type-v", ("-ctv",), implied=("f16",)),
            kind="choice",
            option="--kv-type",
            harmless=True,
            fit=("kv", "kv_v"),
        ),
    ] = None
    kv_cache_dtype: Annotated[
        str | None,
        EngineSetting(
            "KV cache type",
            "type of the KV cache: auto, fp8, turboquant_k8v4 …",
            default="auto",
            why="the type of the weights",
            vllm=Argument("--kv-cache-dtype", implied=("auto",)),
            sglang=Argument(
                implied=("auto",),
                words={
                    "bfloat16": ("--kv-cache-dtype", "bf16"),
                    "fp8": ("--kv-cache-dtype", "fp8_e4m3"),
                    "fp8_e4m3": ("--kv-cache-dtype", "fp8_e4m3"),
                    "fp8_e5m2": ("--kv-cache-dtype", "fp8_e5m2"),
                },
            ),
            # vLLM names a dozen more for other hardware; what its build here can run is offered.
            choices=(
                Choice("fp8", "fp8", "cpu"),
                Choice("fp8_e5m2", "fp8_e5m2", "cpu"),
                Choice("bfloat16", "bfloat16", "cuda"),
                Choice("float16", "float16", "cuda"),
                Choice("fp8", "fp8 (e4m3)", "cuda"),
                Choice("fp8_e5m2", "fp8 (e5m2)", "cuda"),
                Choice("turboquant_k8v4", "TurboQuant, keys 8 bit, values 4 bit", "cuda"),
                Choice("turboquant_4bit_nc", "TurboQuant, 4 bit", "cuda"),
                Choice("turboquant_k3v4_nc", "TurboQuant, keys 3 bit, values 4 bit", "cuda"),
                Choice("turboquant_3bit_nc", "TurboQuant, 3 bit", "cuda"),
            ),
            option="--kv-cache-dtype",
            harmless=True,
            fit=("kv",),
        ),
    ] = None
    dtype: Annotated[
        str | None,
        EngineSetting(
            "Data type",
            "data type of weights and activations",
            default="auto",
            why="as the model says",
            vllm=Argument("--dtype", implied=("auto",)),
            sglang=Argument("--dtype", implied=("auto",)),
            choices=tuple(Choice(one, one) for one in ("bfloat16", "float16", "float32")),
            more=True,
            harmless=True,
        ),
    ] = None
    tensor_parallel: Annotated[
        int | None,
        Field(ge=1, le=64),
        EngineSetting(
            "GPUs sharing a layer",
            "GPUs that share each layer",
            default=1,
            why="one device",
            vllm=Argument("--tensor-parallel-size", ("-tp",), implied=(1,)),
            sglang=Argument("--tp-size"),
            build="cuda",
            more=True,
            harmless=True,
            fit=("tensor_parallel",),
        ),
    ] = None
    kv_cache_gib: Annotated[
        float | None,
        Field(gt=0, le=1 << 20),
        EngineSetting(
            "KV cache, GiB",
            "size of the KV cache in GiB",
            why="what its share of the VRAM leaves",
            unit="GiB",
            vllm=Argument("--kv-cache-memory-bytes"),
            build="cpu",
            excludes="gpu_memory",
            harmless=True,
            fit=("kv_cache_gib",),
        ),
    ] = None
    gpu_memory: Annotated[
        float | None,
        Field(gt=0, le=1),
        EngineSetting(
            "Share of the VRAM",
            "share of the VRAM it may take",
            default=0.9,
            why="vLLM's usual share of the VRAM",
            vllm=Argument("--gpu-memory-utilization", ("--device-memory-utilization",)),
            sglang=Argument("--mem-fraction-static"),
            build="cuda",
            harmless=True,
            fit=("gpu_memory",),
        ),
    ] = None
    batched_tokens: Annotated[
        int | None,
        Field(ge=16, le=1 << 30),
        EngineSetting(
            "Tokens a step",
            "tokens of one step",
            why="vLLM decides",
            unit="tokens",
            vllm=Argument("--max-num-batched-tokens"),
            sglang=Argument("--chunked-prefill-size"),
            more=True,
            harmless=True,
            fit=("batched_tokens",),
        ),
    ] = None
    eager: Annotated[
        bool | None,
        EngineSetting(
            "Eager",
            "neither torch.compile nor CUDA graphs",
            default=False,
            why="compiled code and CUDA graphs decode faster",
            vllm=Argument(aliases=("--no-enforce-eager",), words={True: ("--enforce-eager",), False: ()}),
            sglang=Argument(words={True: ("--disable-cuda-graph",), False: ()}),
            harmless=True,
            fit=("eager",),
        ),
    ] = None
    prefix_caching: Annotated[
        bool | None,
        EngineSetting(
            "Prefix caching",
            "reuse the KV of equal beginnings",
            why="vLLM decides",
            vllm=Argument(words={True: ("--enable-prefix-caching",), False: ("--no-enable-prefix-caching",)}),
            sglang=Argument(words={True: (), False: ("--disable-radix-cache",)}),
            more=True,
            harmless=True,
            fit=("prefix_caching",),
        ),
    ] = None
    batch_invariant: Annotated[
        bool | None,
        EngineSetting(
            "Batch-invariant",
            "the same answer whatever runs beside it, with drafts and without; slower",
            default=False,
            why="faster; with it an answer does not depend on other requests, nor on drafts",
            vllm=Argument(),
            sglang=Argument(words={True: ("--enable-deterministic-inference",), False: ()}),
            build="cuda",
            more=True,
            harmless=True,
        ),
    ] = None
    allow_wrong_answers: Annotated[
        bool | None,
        EngineSetting(
            "Allow wrong answers",
            "TurboQuant with speculation on vLLM's own kernels, which answer wrongly; to measure them",
            default=False,
            why="such a start is refused",
            vllm=Argument(),
            build="cuda",
            more=True,
        ),
    ] = None
    speculation: Annotated[
        str | None,
        EngineSetting(
            "Speculation",
            "off; llama.cpp: draft-mtp or an n-gram kind of the server; vLLM: mtp, ngram or JSON",
            default=OFF,
            why="measure what it gains on your prompts",
            llama_cpp=Argument("--spec-type", implied=(OFF,)),
            vllm=Argument(
                "--speculative-config",
                ("-sc", "--spec-method", "--spec-model", "--spec-tokens"),
                implied=(OFF,),
            ),
            sglang=Argument(implied=(OFF,)),
            kind="choice",
            option="--speculation",
            also_off=_ALSO_OFF,
            harmless=True,
            fit=("speculation",),
        ),
    ] = None
    draft_tokens: Annotated[
        int | None,
        Field(ge=1, le=16),
        EngineSetting(
            "Draft tokens",
            "tokens drafted a step",
            default=3,
            why="tokens drafted a step when speculation is on",
            unit="tokens",
            llama_cpp=Argument("--spec-draft-n-max", ("--draft", "--draft-n", "--draft-max")),
            vllm=Argument(),
            sglang=Argument(),
            only_with="speculation",
            harmless=True,
            fit=("draft_tokens",),
        ),
    ] = None
    gpu_layers: Annotated[
        int | None,
        Field(ge=-1, le=100_000),
        EngineSetting(
            "GPU layers",
            "layers on the GPU; -1 is all of them",
            why="the server decides",
            llama_cpp=Argument(
                "--gpu-layers", ("-ngl", "--n-gpu-layers"), words={-1: ("--gpu-layers", "all")}
            ),
            more=True,
            harmless=True,
            fit=("gpu_layers",),
        ),
    ] = None
    cpu_experts: Annotated[
        int | None,
        Field(ge=0, le=100_000),
        EngineSetting(
            "Experts in main memory",
            "of so many of the first layers a mixture's experts stay in main memory",
            why="all where their layers are",
            llama_cpp=Argument("--n-cpu-moe", ("-ncmoe", "--cpu-moe", "-cmoe")),
            more=True,
            since="0.3.0",
            harmless=True,
            fit=("cpu_experts",),
        ),
    ] = None
    dummy_weights: Annotated[
        bool | None,
        EngineSetting(
            "Random weights",
            "random weights, for measuring a shape",
            default=False,
            vllm=Argument(words={True: ("--load-format", "dummy"), False: ()}),
            sglang=Argument(words={True: ("--load-format", "dummy"), False: ()}),
            more=True,
            harmless=True,
        ),
    ] = None
    tool_parser: Annotated[
        str | None,
        EngineSetting(
            "Tool parser",
            "parser of tool calls",
            vllm=Argument("--tool-call-parser", ("--enable-auto-tool-choice",), implied=(OFF,)),
            sglang=Argument("--tool-call-parser", implied=_UNASKED),
            more=True,
            also_off=_ALSO_OFF,
            harmless=True,
        ),
    ] = None
    reasoning_parser: Annotated[
        str | None,
        EngineSetting(
            "Reasoning parser",
            "parser of reasoning",
            vllm=Argument("--reasoning-parser", implied=(OFF,)),
            sglang=Argument("--reasoning-parser", implied=_UNASKED),
            more=True,
            also_off=_ALSO_OFF,
            harmless=True,
        ),
    ] = None
    embeddings: Annotated[
        bool | None,
        EngineSetting(
            "Embeddings",
            "answer with vectors instead of text",
            default=False,
            llama_cpp=Argument("--embeddings", ("--embedding",)),
            vllm=Argument(words={True: ("--runner", "pooling", "--convert", "embed"), False: ()}),
            sglang=Argument(words={True: ("--is-embedding",), False: ()}),
            more=True,
            harmless=True,
            fit=("embeddings",),
        ),
    ] = None
    reranking: Annotated[
        bool | None,
        EngineSetting(
            "Reranking",
            "score texts for a question instead of writing",
            default=False,
            llama_cpp=Argument("--reranking", ("--rerank",)),
            vllm=Argument(words={True: ("--runner", "pooling", "--convert", "classify"), False: ()}),
            more=True,
            since="0.2.0",
            harmless=True,
        ),
    ] = None
    extra_arguments: Annotated[
        tuple[str, ...],
        EngineSetting(
            "Further arguments",
            "further arguments of the engine's command line",
            default=(),
            llama_cpp=Argument(),
            vllm=Argument(),
            sglang=Argument(),
            more=True,
            fit=("extra_arguments",),
        ),
    ] = ()

    variables: Annotated[
        tuple[str, ...],
        EngineSetting(
            "Variables",
            "variables of the engine's processes, NAME=VALUE",
            default=(),
            llama_cpp=Argument(),
            vllm=Argument(),
            sglang=Argument(),
            more=True,
            since="0.3.0",
        ),
    ] = ()

    @field_validator("variables", mode="before")
    @classmethod
    def _as_words(cls, value: Any) -> Any:
        return words_of(value)

    @field_validator("variables")
    @classmethod
    def _are_variables(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return checked(value)

    @field_validator("*")
    @classmethod
    def _spelled(cls, value: Any, info: ValidationInfo) -> Any:
        row = SETTINGS.get(info.field_name or "")
        return value if row is None else row.spelled(value)


SETTINGS: dict[str, EngineSetting] = {key: row_of(key, info) for key, info in Overrides.model_fields.items()}


def settings_of(engine: str) -> Iterator[EngineSetting]:
    """Yield the rows of an engine, in the order of its arguments."""
    return (row for row in SETTINGS.values() if engine in row.arguments)


def with_defaults(engine: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an engine's settings, with the default where nothing is said."""
    given = {name: value for name, value in values.items() if value is not None}
    return {row.name: given.get(row.name, row.default_of(engine)) for row in settings_of(engine)}


def foreign_to(engine: str) -> tuple[str, ...]:
    """Return the settings that mean nothing to an engine; SGLang is told vLLM's, as far as it has words."""
    own = VLLM if engine == SGLANG else engine
    return tuple(name for name, row in SETTINGS.items() if own not in row.arguments)


def means_something(name: str, values: Mapping[str, Any]) -> bool:
    """Return False for a setting of something that is off among these values."""
    needed = SETTINGS[name].only_with if name in SETTINGS else ""
    return not needed or values.get(needed, SETTINGS[needed].default) != OFF


def flags_of(engine: str) -> dict[str, str]:
    """Return every flag that says a setting to an engine, with the setting's name."""
    return {flag: row.name for row in settings_of(engine) for flag in row.arguments[engine].flags}
