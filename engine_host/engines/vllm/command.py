"""The vLLM adapter: settings of one start, and the command line and environment they become."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason

# Beginnings of variables that must not reach the engine from the person's shell: they would change a start
# behind the plan's back, or put other modules in front of vLLM's.
STRIPPED_ENVIRONMENT = (
    "VLLM_",
    "SNDR_OVERLAY",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "TORCH_COMPILE_",
)
# `vllm serve` is the same program; the module is named because a script's first line cannot hold a long path.
ENTRY = ("-m", "vllm.entrypoints.cli.main", "serve")
# Arguments that the adapter itself sets; an extra argument may not say something else.
OWNED_FLAGS = frozenset(
    {
        "--model", "--served-model-name", "--host", "--port", "--uds", "--max-model-len", "--max-num-seqs",
        "--max-num-batched-tokens", "--kv-cache-dtype", "--dtype", "--tensor-parallel-size", "-tp",
        "--gpu-memory-utilization", "--kv-cache-memory-bytes", "--enforce-eager", "--no-enforce-eager",
        "--enable-prefix-caching", "--no-enable-prefix-caching", "--speculative-config", "-sc",
        "--load-format", "--skip-tokenizer-init", "--tool-call-parser", "--enable-auto-tool-choice",
        "--reasoning-parser", "--runner", "--convert", "--middleware", "--additional-config",
        "--disable-uvicorn-access-log", "--revision", "--api-key", "--ssl-keyfile", "--ssl-certfile",
        "--enable-prompt-tokens-details", "--no-enable-prompt-tokens-details",
    }
)  # fmt: skip
TURBOQUANT = "turboquant_"
# vllm/config/cache.py, CacheDType, of both pins; vLLM itself refuses what only the newer one has.
KV_CACHE_DTYPES = (
    "auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla", "nvfp4_ds_mla",
    "turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc", "ultraquant_4bit",
    "int4_per_token_head", "int8_per_token_head", "fp8_per_token_head", "nvfp4", "nvfp4_4over6",
)  # fmt: skip
# sun_path of Linux has 108 bytes with the closing zero, that of macOS 104.
_LONGEST_SOCKET = 103


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """One start of a model; None leaves the choice to vLLM. Context in tokens for one request.

    `speculation` is `off`, `mtp`, `ngram` or the JSON object that `--speculative-config` takes.
    `kv_cache_gib` is the size of the whole KV cache (on the CPU whole GiB: vLLM reads an integer there).
    """

    model: Path
    alias: str
    context: int
    streams: int
    kv_cache_dtype: str = "auto"
    dtype: str = "auto"
    tensor_parallel: int = 1
    gpu_memory: float | None = None
    kv_cache_gib: float | None = None
    batched_tokens: int | None = None
    eager: bool = False
    prefix_caching: bool | None = None
    batch_invariant: bool = False
    speculation: str = "off"
    draft_tokens: int = 3
    dummy_weights: bool = False
    tokenizer: bool = True
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    embeddings: bool = False
    gpus: tuple[str, ...] = ()
    revision: str | None = None
    extra_arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Additions:
    """The overlay's additions to a start: `argv` at the end, `environment` over ours."""

    argv: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None


def command(
    settings: VllmSettings, python: Path, build: str, socket: Path, cache: Path, additions: Additions
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Gives the argv and the additional environment that run these settings in one environment of vLLM.

    `build` is `cuda` or `cpu`; `cache` is where vLLM keeps what it compiles when no patch is applied. The
    caller removes variables that begin with `STRIPPED_ENVIRONMENT`. Raises HostError(kv_cache_unsafe),
    HostError(setting_invalid).
    """
    _check_socket(socket)
    model = str(settings.model.absolute())
    argv, environment = serve(settings, build, model, ("--uds", str(socket)), str(cache), additions)
    return (str(python), *argv), {**_temporary(socket), **environment}


def serve(
    settings: VllmSettings, build: str, model: str, listen: Sequence[str], cache: str, additions: Additions
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The same without an interpreter, for wherever it runs.

    `model` is what vLLM there finds it by (a path, or a repository), `listen` the arguments that say where it
    answers. Raises HostError(kv_cache_unsafe), HostError(setting_invalid).
    """
    _check(settings, build)
    argv = [
        *ENTRY,
        model,
        *("--served-model-name", settings.alias),
        *listen,
        *("--max-model-len", str(settings.context)),
        *("--max-num-seqs", str(settings.streams)),
        "--disable-uvicorn-access-log",
        # Without it vLLM's usage leaves out the prompt tokens that came from its prefix cache.
        "--enable-prompt-tokens-details",
    ]
    argv += _given("--kv-cache-dtype", settings.kv_cache_dtype, "auto")
    argv += _given("--revision", settings.revision, None)
    argv += _given("--dtype", settings.dtype, "auto")
    argv += _given("--tensor-parallel-size", settings.tensor_parallel, 1)
    argv += _given("--gpu-memory-utilization", settings.gpu_memory, None)
    argv += _given("--max-num-batched-tokens", settings.batched_tokens, None)
    if settings.eager:
        argv.append("--enforce-eager")
    if settings.prefix_caching is not None:
        argv.append("--enable-prefix-caching" if settings.prefix_caching else "--no-enable-prefix-caching")
    if speculative := speculative_config(settings):
        argv += ["--speculative-config", speculative]
    if settings.dummy_weights:
        argv += ["--load-format", "dummy"]
    if not settings.tokenizer:
        argv.append("--skip-tokenizer-init")
    if settings.tool_parser:
        argv += ["--enable-auto-tool-choice", "--tool-call-parser", settings.tool_parser]
    argv += _given("--reasoning-parser", settings.reasoning_parser, None)
    if settings.embeddings:
        argv += ["--runner", "pooling", "--convert", "embed"]
    environment = _environment(cache)
    if settings.kv_cache_gib is not None:
        if build == "cpu":
            environment["VLLM_CPU_KVCACHE_SPACE"] = str(max(1, math.floor(settings.kv_cache_gib)))
        else:
            argv += ["--kv-cache-memory-bytes", str(round(settings.kv_cache_gib * 2**30))]
    if settings.batch_invariant:
        environment["VLLM_BATCH_INVARIANT"] = "1"
    if settings.gpus:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(settings.gpus)
        # The driver's numbers; CUDA by itself counts the fastest GPU first.
        environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    argv += settings.extra_arguments
    argv += additions.argv
    return tuple(argv), {**environment, **(additions.environment or {})}


def speculative_config(settings: VllmSettings) -> str | None:
    """Return the value of `--speculative-config`; None when nothing is drafted."""
    if settings.speculation in {"off", "none", ""}:
        return None
    if settings.speculation.startswith("{"):
        return settings.speculation
    config: dict[str, object] = {
        "method": settings.speculation,
        "num_speculative_tokens": settings.draft_tokens,
    }
    if settings.speculation.startswith("ngram"):
        config |= {"prompt_lookup_max": 4, "prompt_lookup_min": 2}
    return json.dumps(config)


def speculation_method(speculation: str) -> str | None:
    """The method's name, which patches are selected by; None when nothing is drafted.

    Raises HostError(setting_invalid) for text that begins like JSON and is none.
    """
    if speculation in {"off", "none", ""}:
        return None
    if not speculation.startswith("{"):
        return speculation
    try:
        config = json.loads(speculation)
    except ValueError as error:
        raise HostError(
            Reason.SETTING_INVALID,
            f"speculation is not valid JSON: {error}.",
            fix="Give off, mtp, ngram, or the object that vLLM's --speculative-config takes.",
            evidence={"speculation": speculation[:200]},
        ) from error
    return str(config.get("method") or "draft_model")


def drafter_of(speculation: str) -> str | None:
    """The model of its own that drafts: a repository or a path; None when the model drafts for itself."""
    if not speculation.startswith("{"):
        return None
    found = json.loads(speculation).get("model")
    return found if isinstance(found, str) and found else None


def with_drafter(speculation: str, path: Path) -> str:
    """The same with a folder of this machine as the model that drafts."""
    return json.dumps(json.loads(speculation) | {"model": str(path)})


def refuse_unsafe_kv_cache(kv_cache_dtype: str, build: str) -> None:
    """Raises HostError(kv_cache_unsafe) for TurboQuant on the CPU.

    vLLM 0.32 takes it there, makes the pool larger, and reads wrong values as soon as requests overlap:
    measured, three concurrent prompts of 500 tokens answer with other log-probabilities than bf16.
    """
    if build != "cpu" or not kv_cache_dtype.startswith(TURBOQUANT):
        return
    raise HostError(
        Reason.KV_CACHE_UNSAFE,
        f"The KV cache {kv_cache_dtype} would silently corrupt answers on the CPU.",
        cause="vLLM's TurboQuant kernels run on GPUs; its CPU attention reads the compressed cache as if it "
        "were not compressed.",
        fix=Fix(text="Leave the KV cache at auto, or run on a GPU."),
        evidence={"kv_cache_dtype": kv_cache_dtype, "build": build},
    )


def _check(settings: VllmSettings, build: str) -> None:
    if settings.kv_cache_dtype not in KV_CACHE_DTYPES:
        raise HostError(
            Reason.SETTING_INVALID,
            f"vLLM has no KV cache of type {settings.kv_cache_dtype}.",
            cause=f"It has {', '.join(KV_CACHE_DTYPES)}.",
            fix="Choose one of these, or auto.",
            evidence={
                "setting": "kv_cache_dtype",
                "asked": settings.kv_cache_dtype,
                "offered": list(KV_CACHE_DTYPES),
            },
        )
    refuse_unsafe_kv_cache(settings.kv_cache_dtype, build)
    if settings.batch_invariant and build == "cpu":
        raise HostError(
            Reason.SETTING_INVALID,
            "vLLM's batch-invariant mode is for GPUs.",
            cause="Its kernels are written in Triton, which vLLM's CPU build does without.",
            fix="Leave batch_invariant off.",
            evidence={"batch_invariant": True, "build": build},
        )
    speculation_method(settings.speculation)
    for argument in settings.extra_arguments:
        name = argument.partition("=")[0]
        if name in OWNED_FLAGS:
            raise HostError(
                Reason.SETTING_INVALID,
                f"{name} cannot be an extra argument: this program sets it.",
                fix="Use the setting of that name.",
                evidence={"argument": argument},
            )


def _check_socket(socket: Path) -> None:
    if len(os.fsencode(socket)) > _LONGEST_SOCKET:
        raise HostError(
            Reason.SETTING_INVALID,
            f"vLLM cannot listen on {socket}.",
            cause=f"A socket's path may have at most {_LONGEST_SOCKET} bytes.",
            fix="Set a shorter run folder.",
            evidence={"socket": str(socket)},
        )


def _given(flag: str, value: object, default: object) -> list[str]:
    return [] if value == default or value is None else [flag, str(value)]


def temporary_folder(socket: Path) -> Path:
    """Return the folder of a start's temporary files; removed with the socket beside it."""
    return socket.with_suffix(".tmp")


def _temporary(socket: Path) -> dict[str, str]:
    """vLLM leaves sockets and shared files of its processes behind when it is killed."""
    folder = temporary_folder(socket)
    # Its sockets are named by a UUID in there, and must stay within what the kernel takes.
    return {"TMPDIR": str(folder)} if len(os.fsencode(folder)) + 37 <= _LONGEST_SOCKET else {}


def _environment(cache: str) -> dict[str, str]:
    return {
        # Nothing leaves the machine unasked: no usage statistics, no look at a model hub.
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_DO_NOT_TRACK": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "VLLM_LOGGING_COLOR": "0",
        "NO_COLOR": "1",
        "PYTHONUNBUFFERED": "1",
        "VLLM_CACHE_ROOT": cache,
    }
