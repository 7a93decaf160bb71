"""The llama.cpp adapter: settings of one start, and the command line they become on a given server."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.servers import PLAIN_KV_TYPES, ServerCapabilities
from engine_host.protocol.errors import Fix, Reason

# The longest path that fits a Unix socket's address on Linux (108 with the closing zero) and macOS (104).
MAX_SOCKET_PATH = 103
MAX_EMBEDDING_BATCH = 8_192
# From this level on llama-server prints the sizes of its buffers, which the window shows beside the
# estimate; at its default, 3, it keeps them to itself. The price is some twenty lines a request; no text of
# a prompt is among them.
LOG_LEVEL = "4"
# Variables by which llama-server takes arguments: one left over in the user's shell would change a start
# behind the plan's back.
STRIPPED_ENVIRONMENT = ("LLAMA_ARG_", "LLAMA_API_KEY")
# Arguments that the adapter itself sets; an extra argument may not say something else.
OWNED_FLAGS = frozenset(
    {
        "-m", "--model", "-a", "--alias", "--host", "--port", "-c", "--ctx-size", "-np", "--parallel", "-t",
        "--threads", "-tb", "--threads-batch", "-fa", "--flash-attn", "-ctk", "--cache-type-k", "-ctv",
        "--cache-type-v", "--spec-type", "--spec-draft-n-max", "-ngl", "--gpu-layers", "--n-gpu-layers",
        "--embedding", "--embeddings", "--slots", "--no-slots", "--metrics", "--jinja", "--no-jinja", "-lv",
        "--verbosity", "--log-verbosity", "--api-key", "--api-key-file", "--models-dir", "--models-preset",
        "-cram", "--cache-ram",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LlamaCppSettings:
    """One start of a model; None leaves the choice to the server. Context in tokens for one stream."""

    model: Path
    alias: str
    context: int
    streams: int = 1
    threads: int | None = None
    gpu_layers: int | None = None
    kv_type_k: str = "f16"
    kv_type_v: str = "f16"
    flash_attention: str = "auto"
    speculation: str = "off"
    draft_tokens: int = 3
    embeddings: bool = False
    pooling: str | None = None
    prompt_cache_mib: int | None = None
    weight_repacking: bool = True
    extra_arguments: tuple[str, ...] = ()


def physical_cores() -> int:
    """Return the number of physical cores that this process may use; at least 1.

    Two threads on one core share its vector units, which is what decode and prefill are bound by.
    """
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = min(cores, len(os.sched_getaffinity(0)))
    return max(cores, 1)


def default_threads() -> int:
    """The threads an engine starts with: one core is left to the window, the endpoint and everybody else.

    llama.cpp's threads wait for each other in a spinning barrier many times a token, so one that loses its
    core to another process holds up all. Measured on two cores with another program at work, decode of a
    0.6B model: 2 threads 3 to 16 tokens/s, 1 thread 32 to 37; on an idle machine the last core gains less.
    """
    return max(1, physical_cores() - 1)


def command(
    settings: LlamaCppSettings, server: ServerCapabilities, socket: Path
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Gives the argv and the additional environment that run these settings on this server.

    The caller removes variables that start with `STRIPPED_ENVIRONMENT` and a stale `socket` file first:
    llama-server does not remove it, and cannot bind over it. Raises `HostError`: `flag_unsupported` for a
    server that lacks an argument, `setting_invalid` for a value; the evidence lists what the server offers.
    """
    _check_socket(server, socket)
    # An engine is started elsewhere: a path relative to us would name another file there.
    model = str(settings.model.absolute())
    settings = replace(settings, threads=settings.threads or default_threads())
    return (*server.command.argv, *serve(settings, server, model, ("--host", str(socket)))), {}


def serve(
    settings: LlamaCppSettings, server: ServerCapabilities, model: str, listen: Sequence[str]
) -> tuple[str, ...]:
    """The arguments alone, for wherever the server runs; without `threads` it counts the cores there itself.

    `model` is the file's path there, `listen` the arguments that say where it answers. Raises HostError as
    `command` does.
    """
    argv = [
        *("--model", model),
        *("--alias", settings.alias),
        *listen,
        *("--ctx-size", str(settings.context * settings.streams)),
        *("--parallel", str(settings.streams)),
    ]
    if settings.threads:
        argv += ["--threads", str(settings.threads), "--threads-batch", str(settings.threads)]
    for flag in ("--slots", "--metrics", "--jinja"):
        argv.append(_need(server, flag))
    argv += _optional(server, "--no-ui", "--no-webui")
    # One stream must not be able to take the context that another was promised.
    argv += _optional(server, "--no-kv-unified", "-no-kvu")
    argv += _optional(server, "--offline")
    if "--log-verbosity" in server.flags:
        argv += ["--log-verbosity", LOG_LEVEL]
    if "--log-colors" in server.flags:
        argv += ["--log-colors", "off"]
    if settings.flash_attention != "auto":
        argv += [_need(server, "--flash-attn"), settings.flash_attention]
    argv += _kv(settings, server)
    argv += _speculation(settings, server)
    if settings.gpu_layers is not None:
        layers = "all" if settings.gpu_layers < 0 else str(settings.gpu_layers)
        argv += [_need(server, "--gpu-layers"), layers]
    argv += _embeddings(settings, server)
    if settings.prompt_cache_mib is not None:
        argv += [_need(server, "--cache-ram"), str(settings.prompt_cache_mib)]
    if not settings.weight_repacking:
        argv.append(_need(server, "--no-repack"))
    argv += _extra(settings.extra_arguments, server)
    return tuple(argv)


def _check_socket(server: ServerCapabilities, socket: Path) -> None:
    if not server.has_unix_socket:
        raise HostError(
            Reason.FLAG_UNSUPPORTED,
            f"The server {server.label} does not listen on a Unix socket.",
            cause="It is older than the version that learned it.",
            fix="Choose a newer llama-server, or build the one that comes with this program.",
            evidence={"path": str(server.command.file)},
        )
    if socket.suffix != ".sock" or len(os.fsencode(socket)) > MAX_SOCKET_PATH:
        raise HostError(
            Reason.SETTING_INVALID,
            f"llama-server cannot listen on {socket}.",
            cause=f"The path must end in .sock and have at most {MAX_SOCKET_PATH} bytes.",
            fix="Set a shorter run folder.",
            evidence={"socket": str(socket), "bytes": len(os.fsencode(socket))},
        )


def _need(server: ServerCapabilities, flag: str) -> str:
    if flag not in server.flags:
        raise HostError(
            Reason.FLAG_UNSUPPORTED,
            f"The server {server.label} has no argument {flag}.",
            fix="Choose another server, or leave the setting at its default.",
            evidence={"flag": flag, "path": str(server.command.file)},
        )
    return flag


def _optional(server: ServerCapabilities, *names: str) -> list[str]:
    return next(([name] for name in names if name in server.flags), [])


def _kv(settings: LlamaCppSettings, server: ServerCapabilities) -> list[str]:
    argv: list[str] = []
    for setting, flag, kv_type in (
        ("kv_type_k", "--cache-type-k", settings.kv_type_k),
        ("kv_type_v", "--cache-type-v", settings.kv_type_v),
    ):
        if kv_type == "f16":
            continue
        _need(server, flag)
        if kv_type not in server.kv_types:
            raise HostError(
                Reason.SETTING_INVALID,
                f"The server {server.label} cannot keep the KV cache as {kv_type}.",
                cause=f"It offers {', '.join(server.kv_types) or 'no choice'}.",
                fix=Fix(text="Choose one of the types that it offers, or a server that has this type."),
                evidence={"setting": setting, "asked": kv_type, "offered": list(server.kv_types)},
            )
        argv += [flag, kv_type]
    if settings.kv_type_v not in PLAIN_KV_TYPES and settings.flash_attention == "off":
        raise HostError(
            Reason.SETTING_INVALID,
            "A quantised V cache needs flash attention.",
            fix="Set flash attention to auto, or the V type to f16.",
            evidence={"kv_type_v": settings.kv_type_v, "flash_attention": settings.flash_attention},
        )
    return argv


def _speculation(settings: LlamaCppSettings, server: ServerCapabilities) -> list[str]:
    if settings.speculation in {"off", "none"}:
        return []
    _need(server, "--spec-type")
    wanted = settings.speculation.split(",")
    missing = [kind for kind in wanted if kind not in server.speculation]
    if missing:
        raise HostError(
            Reason.SETTING_INVALID,
            f"The server {server.label} does not know the speculation {missing[0]}.",
            cause=f"It offers {', '.join(server.speculation) or 'none'}.",
            fix="Choose one that it offers, or switch speculation off.",
            evidence={"setting": "speculation", "asked": wanted, "offered": list(server.speculation)},
        )
    argv = ["--spec-type", settings.speculation]
    if any(kind.startswith("draft-") for kind in wanted):
        argv += [_need(server, "--spec-draft-n-max"), str(settings.draft_tokens)]
    return argv


def _embeddings(settings: LlamaCppSettings, server: ServerCapabilities) -> list[str]:
    if not settings.embeddings:
        return []
    # An input is embedded in one batch: a longer one than the batch is refused by the server.
    batch = str(min(settings.context, MAX_EMBEDDING_BATCH))
    argv = [_need(server, "--embeddings"), "--batch-size", batch, "--ubatch-size", batch]
    if settings.pooling:
        argv += [_need(server, "--pooling"), settings.pooling]
    return argv


def _extra(arguments: tuple[str, ...], server: ServerCapabilities) -> list[str]:
    for argument in arguments:
        name = argument.partition("=")[0]
        if not name.startswith("-") or _is_number(name):
            continue
        if name in OWNED_FLAGS:
            raise HostError(
                Reason.SETTING_INVALID,
                f"{name} cannot be an extra argument: this program sets it.",
                fix="Use the setting of that name.",
                evidence={"argument": argument},
            )
        _need(server, name)
    return list(arguments)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
