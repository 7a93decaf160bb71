"""The llama.cpp adapter: the command line of one start on a given server."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from engine_host.core.errors import HostError
from engine_host.engines.flag_spelling import EXACT
from engine_host.engines.llamacpp.servers import PLAIN_KV_TYPES, ServerCapabilities
from engine_host.engines.start_variables import given_variables
from engine_host.protocol.engine_settings.row import LLAMA_CPP, OFF, EngineSetting
from engine_host.protocol.engine_settings.table import flags_of, settings_of, with_defaults
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

# The longest path that fits a Unix socket's address on Linux (108 with the closing zero) and macOS (104).
MAX_SOCKET_PATH = 103
MAX_EMBEDDING_BATCH = 8_192
# Tokens that llama.cpp computes at once unless it is told otherwise (n_ubatch).
UBATCH = 512
# Tokens of a batch on a processor: the smallest that costs no speed (docs/bench.md).
PROCESSOR_BATCH = 256
# Extra arguments that say the same as `prompt_batch`, and win.
_BATCH_FLAGS = frozenset({"-b", "--batch-size", "-ub", "--ubatch-size"})
# From this level on llama-server prints the sizes of its buffers, which the window shows beside the
# estimate; at its default, 3, it keeps them to itself. The price is some twenty lines a request; what of it
# may be written down is in `served_lines`.
LOG_LEVEL = "4"
# Variables by which llama-server takes arguments: one left over in the user's shell would change a start
# behind the plan's back.
STRIPPED_ENVIRONMENT = ("LLAMA_ARG_", "LLAMA_API_KEY")
_OWNED_VARIABLES = {
    "LLAMA_ARG_": "Set what it says, or give the flag with --set extra_arguments='--flag value'.",
    "LLAMA_API_KEY": "Keys are the endpoint's: see `sndr keys`.",
    "LLAMA_LOG_": "Its log is read here: see `sndr logs`.",
}
# Arguments of the adapter beside those of settings; an extra argument may not say something else.
_OWNED_FLAGS = frozenset(
    {
        "-m", "--model", "-a", "--alias", "--host", "--port", "--slots", "--no-slots", "--metrics", "--jinja",
        "--no-jinja", "-lv", "--verbosity", "--log-verbosity", "--api-key", "--api-key-file", "--models-dir",
        "--models-preset", "-cram", "--cache-ram",
        # Another model than the plan's.
        "-mu", "--model-url", "-dr", "--docker-repo", "-hf", "-hfr", "--hf-repo", "-hff", "--hf-file",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LlamaCppStart:
    """One start of a model; `values` are its resolved settings by name, the defaults hold for the rest.

    `model` is the file's path where the server runs. `pools_itself`: the model was made for embeddings, and
    says how its vectors are pooled; `pooling` is what it says, where that is known.
    """

    model: str
    alias: str
    values: Mapping[str, Any]
    pools_itself: bool = False
    pooling: str = ""
    prompt_cache_mib: int | None = None
    weight_repacking: bool = True


def usable_processors() -> int:
    """Return the number of hardware threads that this process may use; at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(allowed or 1, 1)


def physical_cores() -> int:
    """Return the number of physical cores that this process may use; at least 1.

    Two threads on one core share its vector units, which is what decode and prefill are bound by.
    """
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    return max(min(cores, usable_processors()), 1)


def default_threads() -> int:
    """The threads an engine starts with: the physical cores, as long as something is left to everybody else.

    Where a core has a second hardware thread, the window, the endpoint and everybody else run there. Else one
    core is theirs: llama.cpp's threads wait for each other in a spinning barrier many times a token, so one
    that loses its core to another process holds up all. Measured in turns on two cores without second
    threads, the bundled model, medians of 1 and 2 threads: with others at work at the lowest priority decode
    748 and 205 tokens/s, prefill 1,810 and 1,464; beside a program that takes a fifth of a core decode 542
    and 63, beside one that takes a whole core 424 and 46.
    """
    cores = physical_cores()
    return cores if usable_processors() > cores else max(1, cores - 1)


def command(
    start: LlamaCppStart, server: ServerCapabilities, socket: Path
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the argv and the additional environment of a start on this server.

    The caller removes variables that start with `STRIPPED_ENVIRONMENT` and a stale `socket` file first:
    llama-server does not remove it, and cannot bind over it. Raises `HostError`: `flag_unsupported` for a
    server that lacks an argument, `setting_invalid` for a value; the evidence lists what the server offers.
    """
    _check_socket(server, socket)
    threads = start.values.get("threads") or default_threads()
    # An engine is started elsewhere: a path relative to us would name another file there.
    model = str(Path(start.model).absolute())
    start = replace(start, model=model, values={**start.values, "threads": threads})
    return (*server.command.argv, *serve(start, server, ("--host", str(socket)))), variables(start)


def variables(start: LlamaCppStart) -> dict[str, str]:
    """Return the variables that a start is given. Raises HostError(setting_invalid)."""
    return given_variables(start.values.get("variables") or (), {}, _OWNED_VARIABLES)


def serve(start: LlamaCppStart, server: ServerCapabilities, listen: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments alone, for wherever the server runs.

    Without `threads` it counts the cores there itself. `listen` are the arguments that say where it answers.
    Raises HostError as `command` does.
    """
    values = with_defaults(LLAMA_CPP, start.values)
    arguments = {row.name: _arguments(row, values, server, start) for row in settings_of(LLAMA_CPP)}
    extra = arguments.pop("extra_arguments")
    argv = [
        *("--model", start.model),
        *("--alias", start.alias),
        *listen,
        *arguments.pop("context"),
        *arguments.pop("streams"),
        *arguments.pop("threads"),
    ]
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
    argv += [word for words in arguments.values() for word in words]
    if start.prompt_cache_mib is not None:
        argv += [_need(server, "--cache-ram"), str(start.prompt_cache_mib)]
    if not start.weight_repacking:
        argv.append(_need(server, "--no-repack"))
    return (*argv, *extra)


def _arguments(
    row: EngineSetting, values: Mapping[str, Any], server: ServerCapabilities, start: LlamaCppStart
) -> Sequence[str]:
    """Return the arguments of one setting: those of its row, unless it is special to llama.cpp."""
    value, flag = values[row.name], row.arguments[LLAMA_CPP].flag
    match row.name:
        case "context":
            return (flag, str(value * values["streams"]))
        case "streams":
            # Every server has it, as it has --ctx-size.
            return (flag, str(value))
        case "threads" if value:
            return (flag, str(value), "--threads-batch", str(value))
        case "kv_type_k" | "kv_type_v":
            _check_kv_type(row.name, values, server)
        case "speculation":
            return _speculation(value, values["draft_tokens"], server)
        case "draft_tokens":
            return ()
        case "prompt_batch":
            return _prompt_batch(value, values, server)
        case "embeddings":
            return _embeddings(values, server, start) if value and not values["reranking"] else ()
        case "reranking":
            return _reranking(values, server, flag) if value else ()
        case "extra_arguments":
            return _extra(tuple(value or ()), server)
    words = row.arguments[LLAMA_CPP].written(value) or ()
    return (_need(server, words[0]), *words[1:]) if words else ()


def owned_flags() -> dict[str, str]:
    """Return the flags that no extra argument may use, with the settings that say them instead."""
    return {**dict.fromkeys(_OWNED_FLAGS, ""), **flags_of(LLAMA_CPP)}


def _check_socket(server: ServerCapabilities, socket: Path) -> None:
    if not server.has_unix_socket:
        raise HostError(
            Reason.FLAG_UNSUPPORTED,
            tr("The server {server} does not listen on a Unix socket.", server=server.label),
            cause="It is older than the version that learned it.",
            fix="Choose a newer llama-server, or build the one that comes with this program.",
            evidence={"path": str(server.command.file)},
        )
    if socket.suffix != ".sock" or len(os.fsencode(socket)) > MAX_SOCKET_PATH:
        raise HostError(
            Reason.SETTING_INVALID,
            tr("llama-server cannot listen on {socket}.", socket=socket),
            cause=tr(
                "The path must end in .sock and have at most {max_socket_path} bytes.",
                max_socket_path=MAX_SOCKET_PATH,
            ),
            fix="Set a shorter run folder.",
            evidence={"socket": str(socket), "bytes": len(os.fsencode(socket))},
        )


def _need(server: ServerCapabilities, flag: str) -> str:
    if flag not in server.flags:
        raise HostError(
            Reason.FLAG_UNSUPPORTED,
            tr("The server {server} has no argument {flag}.", server=server.label, flag=flag),
            cause="It was built from another version of llama.cpp.",
            fix="Choose another server, or leave the setting at its default.",
            evidence={"flag": flag, "path": str(server.command.file)},
        )
    return flag


def _optional(server: ServerCapabilities, *names: str) -> list[str]:
    return next(([name] for name in names if name in server.flags), [])


def _check_kv_type(name: str, values: Mapping[str, Any], server: ServerCapabilities) -> None:
    kind = values[name]
    if kind != "f16" and kind not in server.kv_types:
        raise HostError(
            Reason.SETTING_INVALID,
            tr("The server {server} cannot keep the KV cache as {kind}.", server=server.label, kind=kind),
            cause=tr("It offers {kv_types}.", kv_types=", ".join(server.kv_types) or tr("no choice")),
            fix=Fix(text="Choose one of the types that it offers, or a server that has this type."),
            evidence={"setting": name, "asked": kind, "offered": list(server.kv_types)},
        )
    quantised = name == "kv_type_v" and kind not in PLAIN_KV_TYPES
    if quantised and values["flash_attention"] == "off":
        raise HostError(
            Reason.SETTING_INVALID,
            "A quantised V cache needs flash attention.",
            cause="llama.cpp reads a quantised V cache with flash attention alone.",
            fix="Set flash attention to auto, or the V type to f16.",
            evidence={"kv_type_v": kind, "flash_attention": values["flash_attention"]},
        )


def _speculation(speculation: str, draft_tokens: int, server: ServerCapabilities) -> list[str]:
    if speculation == OFF:
        return []
    _need(server, "--spec-type")
    kinds = speculation.split(",")
    missing = [kind for kind in kinds if kind not in server.speculation]
    if missing:
        offered = [kind for kind in server.speculation if kind != "none"]
        raise HostError(
            Reason.SETTING_INVALID,
            tr(
                "The server {server} does not know the speculation {missing}.",
                server=server.label,
                missing=missing[0],
            ),
            cause=tr("It offers {offered}.", offered=", ".join(offered) or tr("nothing")),
            fix="Choose one that it offers, or switch speculation off.",
            evidence={"setting": "speculation", "asked": kinds, "offered": list(server.speculation)},
        )
    argv = ["--spec-type", speculation]
    if any(kind.startswith("draft-") for kind in kinds):
        argv += [_need(server, "--spec-draft-n-max"), str(draft_tokens)]
    return argv


def processor_batch(streams: int) -> int:
    """Return the tokens that a start on a processor computes at once.

    llama.cpp ends a cancelled prompt after its batch. A processor may read one of 2,048 tokens for half a
    minute, no faster than eight of 256 (docs/bench.md). A step of all streams stays one.
    """
    return -(-streams // PROCESSOR_BATCH) * PROCESSOR_BATCH


def says_batch(arguments: Sequence[str], server: ServerCapabilities) -> bool:
    """Tell whether extra arguments give the batch, or the server has no argument for it."""
    named = not _BATCH_FLAGS.isdisjoint(EXACT.name(word) for word in arguments)
    return named or not {"--batch-size", "--ubatch-size"} <= set(server.flags)


def _prompt_batch(batch: int | None, values: Mapping[str, Any], server: ServerCapabilities) -> list[str]:
    if batch is None or values["embeddings"] or values["reranking"]:
        # What is embedded is read in one pass.
        return []
    passes = (_need(server, "--ubatch-size"), str(min(batch, UBATCH)))
    return [_need(server, "--batch-size"), str(batch), *passes]


def embedding_batch(context: int, pooling: str) -> int:
    """Return the tokens that a start for embeddings computes at once.

    An input is embedded in one pass, and a longer one than that is refused by the server; only where the
    last token stands for all of them it is read in pieces (server_slot::can_split). The buffer of a pass has
    scores of every word for each of its tokens: with a large vocabulary that is half a GiB for a thousand.
    """
    return UBATCH if pooling == "last" else min(context, MAX_EMBEDDING_BATCH)


def pooling_of(arguments: Sequence[str]) -> str:
    """Return the pooling that extra arguments ask for; empty where they say nothing of it."""
    found = ""
    for place, word in enumerate(arguments):
        if EXACT.name(word) == "--pooling":
            found = word.partition("=")[2] or next(iter(arguments[place + 1 :]), "")
    return found


def _embeddings(values: Mapping[str, Any], server: ServerCapabilities, start: LlamaCppStart) -> list[str]:
    asked = pooling_of(values["extra_arguments"] or ())
    argv = [_need(server, "--embeddings")]
    batch = embedding_batch(values["context"], asked or start.pooling)
    if batch != UBATCH:
        argv += ["--batch-size", str(batch), "--ubatch-size", str(batch)]
    # A model that was not made for embeddings does not say how to pool them, and a vector a token is not what
    # the OpenAI API answers with.
    if not asked and not start.pools_itself:
        argv += [_need(server, "--pooling"), "mean"]
    return argv


def _reranking(values: Mapping[str, Any], server: ServerCapabilities, flag: str) -> list[str]:
    # A question with its text is read in one pass.
    batch = str(embedding_batch(values["context"], "rank"))
    return [_need(server, flag), "--batch-size", batch, "--ubatch-size", batch]


def _extra(arguments: tuple[str, ...], server: ServerCapabilities) -> list[str]:
    owned = owned_flags()
    # The server's own help says which spellings of a flag there are beside those that are known here.
    for group in server.spellings:
        setting = next((owned[flag] for flag in group if flag in owned), None)
        if setting is not None:
            owned |= dict.fromkeys(group, setting)
    EXACT.refuse_owned(arguments, owned)
    words = []
    for argument in arguments:
        name = EXACT.name(argument) or ""
        # In the spelling of its help: not every server takes another.
        words.append((_need(server, name) if name else "") + argument[len(name) :])
    return words
