"""The vLLM adapter: the command line and the environment of one start."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine_host.core.errors import HostError
from engine_host.engines.flag_spelling import ARGPARSE
from engine_host.engines.start_variables import given_variables
from engine_host.protocol.engine_settings.row import OFF, VLLM, EngineSetting
from engine_host.protocol.engine_settings.table import flags_of, settings_of, with_defaults
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

KERNELS = "triton"
"""Below vLLM's cache: the folder of each kernel that Triton compiled."""
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
# Variables that say what a setting says, or change where and how it logs, which is read here.
_OWNED_VARIABLES = {
    "VLLM_CPU_KVCACHE_SPACE": "Set kv_cache_gib.",
    "VLLM_BATCH_INVARIANT": "Set batch_invariant.",
    "VLLM_API_KEY": "Keys are the endpoint's: see `sndr keys`.",
    **dict.fromkeys(
        ("VLLM_CONFIGURE_LOGGING", "VLLM_LOGGING_CONFIG_PATH", "VLLM_LOGGING_PREFIX", "VLLM_LOGGING_STREAM"),
        "Its log is read here: see `sndr logs`.",
    ),
    **dict.fromkeys(
        ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP"),
        "They would put other modules before vLLM's; install them into an environment of your own.",
    ),
}
# `vllm serve` is the same program; the module is named because a script's first line cannot hold a long path.
ENTRY = ("-m", "vllm.entrypoints.cli.main", "serve")
# Arguments of the adapter beside those of settings; an extra argument may not say something else.
_OWNED_FLAGS = frozenset(
    {
        "--model", "--served-model-name", "--host", "--port", "--uds", "--skip-tokenizer-init",
        "--middleware", "--additional-config", "--disable-uvicorn-access-log", "--revision", "--api-key",
        "--ssl-keyfile", "--ssl-certfile", "--enable-prompt-tokens-details",
        # It reads further arguments from a file, which nobody would see.
        "--config",
    }
)  # fmt: skip
TURBOQUANT = "turboquant_"
# vllm/config/cache.py, CacheDType, of both pins; vLLM itself refuses what only the newer one has.
KV_CACHE_DTYPES = (
    "auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla", "nvfp4_ds_mla",
    "turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc", "ultraquant_4bit",
    "int4_per_token_head", "int8_per_token_head", "fp8_per_token_head", "nvfp4", "nvfp4_4over6",
)  # fmt: skip
SPECULATION = (OFF, "mtp", "ngram", "ngram_gpu")
# vllm/config/speculative.py, SpeculativeMethod, without the names of single models' MTP, which end in _mtp.
_METHODS = (
    "custom_class", "dflash", "draft_model", "dspark", "eagle", "eagle3", "extract_hidden_states", "medusa",
    "mlp_speculator", "mtp", "ngram", "ngram_gpu", "suffix",
)  # fmt: skip
_BY_ANOTHER_MODEL = (None, "draft_model", "eagle", "eagle3", "medusa", "mlp_speculator", "dflash")
# sun_path of Linux has 108 bytes with the closing zero, that of macOS 104.
_LONGEST_SOCKET = 103


@dataclass(frozen=True, slots=True)
class VllmStart:
    """One start of a model; `values` are its resolved settings by name, the defaults hold for the rest.

    `model` is what vLLM finds it by: a path, or a repository. `devices` are the variables that show it its
    GPUs.
    """

    model: str
    alias: str
    values: Mapping[str, Any]
    tokenizer: bool = True
    devices: Mapping[str, str] = field(default_factory=dict)
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class Additions:
    """The overlay's additions to a start: `argv` at the end, `environment` over ours."""

    argv: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None


def command(
    start: VllmStart, python: Path, build: str, socket: Path, cache: Path, additions: Additions
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the argv and the additional environment of a start in one environment of vLLM.

    `build` is `cuda` or `cpu`; `cache` is where vLLM keeps what it compiles when no patch is applied. The
    caller removes variables that begin with `STRIPPED_ENVIRONMENT`. Raises HostError(kv_cache_unsafe),
    HostError(setting_invalid).
    """
    _check_socket(socket)
    start = replace(start, model=str(Path(start.model).absolute()))
    argv, environment = serve(start, build, ("--uds", str(socket)), str(cache), additions)
    return (str(python), *argv), {**_temporary(socket), **environment}


def serve(
    start: VllmStart, build: str, listen: Sequence[str], cache: str, additions: Additions
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the same without an interpreter, for wherever it runs.

    `listen` are the arguments that say where it answers. Raises HostError(kv_cache_unsafe),
    HostError(setting_invalid).
    """
    values = with_defaults(VLLM, start.values)
    _check(values, build)
    arguments = {row.name: _arguments(row, values, build) for row in settings_of(VLLM)}
    argv = [
        *ENTRY,
        start.model,
        *("--served-model-name", start.alias),
        *listen,
        *arguments.pop("context"),
        *arguments.pop("streams"),
        "--disable-uvicorn-access-log",
        # Without it vLLM's usage leaves out the prompt tokens that came from its prefix cache.
        "--enable-prompt-tokens-details",
        *([] if start.tokenizer else ["--skip-tokenizer-init"]),
        # The order that scripts written down by earlier versions have.
        *arguments.pop("kv_cache_dtype"),
        *(["--revision", start.revision] if start.revision else []),
        *(word for words in arguments.values() for word in words),
        *additions.argv,
    ]
    own = {
        **_environment(cache),
        **_variables(values, build),
        **start.devices,
        **(additions.environment or {}),
    }
    given = given_variables(values["variables"], own, _OWNED_VARIABLES)
    return tuple(argv), {**_kernel_cache(cache, build), **given, **own}


def _arguments(row: EngineSetting, values: Mapping[str, Any], build: str) -> Sequence[str]:
    """Return the arguments of one setting: those of its row, unless it is special to vLLM."""
    value = values[row.name]
    match row.name:
        case "gpu_memory" if build == "cpu":
            return ()
        case "kv_cache_gib" if value is not None:
            # The build for processors reads a variable instead.
            return () if build == "cpu" else (row.arguments[VLLM].flag, str(round(value * 2**30)))
        case "speculation":
            config = speculative_config(value, values["draft_tokens"])
            return () if config is None else (row.arguments[VLLM].flag, config)
        case "tool_parser" | "reasoning_parser" if values["embeddings"] or values["reranking"]:
            # A vector or a score has nothing to parse.
            return ()
        case "embeddings" if values["reranking"]:
            return ()
        case "tool_parser" if words := row.arguments[VLLM].written(value):
            return ("--enable-auto-tool-choice", *words)
        case "extra_arguments":
            return tuple(map(str, value or ()))
    return row.arguments[VLLM].written(value) or ()


def _variables(values: Mapping[str, Any], build: str) -> dict[str, str]:
    """Return the settings that vLLM reads from its environment."""
    found = {}
    if values["kv_cache_gib"] is not None and build == "cpu":
        # vLLM reads whole GiB there.
        found["VLLM_CPU_KVCACHE_SPACE"] = str(max(1, math.floor(values["kv_cache_gib"])))
    if values["batch_invariant"]:
        found["VLLM_BATCH_INVARIANT"] = "1"
    if values["allow_wrong_answers"]:
        # The patch turboquant-grouped-attention asks for it (decision.py).
        found["SNDR_ALLOW_WRONG_ANSWERS"] = "1"
    return found


def owned_flags() -> dict[str, str]:
    """Return the flags that no extra argument may use, with the settings that say them instead."""
    return {**dict.fromkeys(_OWNED_FLAGS, ""), **flags_of(VLLM)}


def speculative_config(speculation: str, draft_tokens: int) -> str | None:
    """Return the value of `--speculative-config`; None when nothing is drafted.

    `speculation` is `off`, `mtp`, `ngram` or the JSON object itself.
    """
    if speculation == OFF:
        return None
    if speculation.startswith("{"):
        return speculation
    config: dict[str, object] = {"method": speculation, "num_speculative_tokens": draft_tokens}
    if speculation.startswith("ngram"):
        config |= {"prompt_lookup_max": 4, "prompt_lookup_min": 2}
    return json.dumps(config)


def speculation_method(speculation: str) -> str | None:
    """The method's name, which patches are selected by; None when nothing is drafted.

    Raises HostError(setting_invalid) for text that begins like JSON and is none.
    """
    if speculation == OFF:
        return None
    if not speculation.startswith("{"):
        return speculation
    return str(_config(speculation).get("method") or "draft_model")


def _config(speculation: str) -> dict[str, Any]:
    """Return the object that a speculation gives. Raises HostError(setting_invalid)."""
    try:
        config: dict[str, Any] = json.loads(speculation)
    except (ValueError, RecursionError) as error:
        raise _no_speculation(
            tr("speculation is not valid JSON: {error}.", error=error), speculation
        ) from error
    return config


def check_speculation(speculation: str) -> None:
    """Raise HostError(setting_invalid) for a speculation that vLLM would refuse."""
    if not speculation.startswith("{"):
        if speculation not in SPECULATION:
            raise _no_speculation(
                tr("vLLM does not know the speculation {speculation}.", speculation=speculation), speculation
            )
        return
    config = _config(speculation)
    method, tokens, model = (config.get(key) for key in ("method", "num_speculative_tokens", "model"))
    if method is not None and method not in _METHODS and not str(method).endswith("_mtp"):
        raise _no_speculation(
            tr("vLLM does not know the speculation {method}.", method=method), speculation, _METHODS
        )
    if tokens is not None and (type(tokens) is not int or tokens < 1):
        message = tr(
            "num_speculative_tokens is {json}, and takes a whole number, at least 1.", json=json.dumps(tokens)
        )
        raise _no_speculation(message, speculation)
    if model is not None and not isinstance(model, str):
        raise _no_speculation(tr("The model that drafts is named by text."), speculation)
    if model is None and method in _BY_ANOTHER_MODEL:
        raise _no_speculation(tr("It names no model that drafts."), speculation)


def _no_speculation(message: str, speculation: str, offered: Sequence[str] = SPECULATION) -> HostError:
    return HostError(
        Reason.SETTING_INVALID,
        message,
        fix=tr(
            "Give {speculation}, or the object that vLLM's --speculative-config takes.",
            speculation=", ".join(SPECULATION),
        ),
        evidence={"setting": "speculation", "asked": speculation[:200], "offered": list(offered)},
    )


def drafter_of(speculation: str) -> str | None:
    """The model of its own that drafts: a repository or a path; None when the model drafts for itself."""
    if not speculation.startswith("{"):
        return None
    found = _config(speculation).get("model")
    return found if isinstance(found, str) and found else None


def with_drafter(speculation: str, path: Path) -> str:
    """The same with a folder of this machine as the model that drafts."""
    return json.dumps(_config(speculation) | {"model": str(path)})


def refuse_unsafe_kv_cache(kv_cache_dtype: str, build: str) -> None:
    """Raises HostError(kv_cache_unsafe) for TurboQuant on the CPU.

    vLLM 0.32 takes it there, makes the pool larger, and reads wrong values as soon as requests overlap:
    measured, three concurrent prompts of 500 tokens answer with other log-probabilities than bf16.
    """
    if build != "cpu" or not kv_cache_dtype.startswith(TURBOQUANT):
        return
    raise HostError(
        Reason.KV_CACHE_UNSAFE,
        tr(
            "The KV cache {kv_cache_dtype} would silently corrupt answers on the CPU.",
            kv_cache_dtype=kv_cache_dtype,
        ),
        cause="vLLM's TurboQuant kernels run on GPUs; its CPU attention reads the compressed cache as if it "
        "were not compressed.",
        fix=Fix(text="Leave the KV cache at auto, or run on a GPU."),
        evidence={"kv_cache_dtype": kv_cache_dtype, "build": build},
    )


def _check(values: Mapping[str, Any], build: str) -> None:
    kind = values["kv_cache_dtype"]
    if kind not in KV_CACHE_DTYPES:
        raise HostError(
            Reason.SETTING_INVALID,
            tr("vLLM has no KV cache of type {kind}.", kind=kind),
            cause=tr("It has {kv_cache_dtypes}.", kv_cache_dtypes=", ".join(KV_CACHE_DTYPES)),
            fix="Choose one of these, or auto.",
            evidence={"setting": "kv_cache_dtype", "asked": kind, "offered": list(KV_CACHE_DTYPES)},
        )
    refuse_unsafe_kv_cache(kind, build)
    if values["batch_invariant"] and build == "cpu":
        raise HostError(
            Reason.SETTING_INVALID,
            "vLLM's batch-invariant mode is for GPUs.",
            cause="Its kernels are written in Triton, which vLLM's CPU build does without.",
            fix="Leave batch_invariant off.",
            evidence={"batch_invariant": True, "build": build},
        )
    check_speculation(values["speculation"])
    ARGPARSE.refuse_owned(values["extra_arguments"], owned_flags())


def _check_socket(socket: Path) -> None:
    if len(os.fsencode(socket)) > _LONGEST_SOCKET:
        raise HostError(
            Reason.SETTING_INVALID,
            tr("vLLM cannot listen on {socket}.", socket=socket),
            cause=tr(
                "A socket's path may have at most {longest_socket} bytes.", longest_socket=_LONGEST_SOCKET
            ),
            fix="Set a shorter run folder.",
            evidence={"socket": str(socket)},
        )


def temporary_folder(socket: Path) -> Path:
    """Return the folder of a start's temporary files; removed with the socket beside it."""
    return socket.with_suffix(".tmp")


def _temporary(socket: Path) -> dict[str, str]:
    """vLLM leaves sockets and shared files of its processes behind when it is killed."""
    folder = temporary_folder(socket)
    # Its sockets are named by a UUID in there, and must stay within what the kernel takes.
    return {"TMPDIR": str(folder)} if len(os.fsencode(folder)) + 37 <= _LONGEST_SOCKET else {}


def _kernel_cache(cache: str, build: str) -> dict[str, str]:
    """Return where Triton keeps the kernels that it compiled, for all models, settings and sets of patches.

    Left to itself a start that compiles its graphs keeps them beside these (`initialize_cache` in
    vllm/compilation/compiler_interface.py), and one that finds its graphs looks for them elsewhere (for it
    vllm/compilation/caching.py turns that off): it compiles each kernel once more.
    """
    return {} if build == "cpu" else {"TRITON_CACHE_DIR": f"{cache}/{KERNELS}"}


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
