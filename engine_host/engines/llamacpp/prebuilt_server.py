"""The llama-server inside the `xllamacpp` wheel, as a program with llama-server's own arguments.

`python -m engine_host.engines.llamacpp.prebuilt_server --model FILE --host ENGINE.sock …`: a start within a
second on a machine that cannot compile. It understands the arguments that this program's adapter uses; any
other is an error. The wheel's fields are set one by one because it has no function that parses arguments.
"""

import contextlib
import ctypes
import importlib.metadata
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
SPECULATION = (
    "none", "draft-mtp", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache",
)  # fmt: skip
POOLING = ("none", "mean", "cls", "last", "rank")
_FROM = b"xllamacpp"
"""In the place of the commit, which the wheel does not know."""
FLASH_ATTENTION = {"auto": -1, "off": 0, "on": 1}

# Params is xllamacpp.CommonParams, Module the xllamacpp module: neither has type information.
Params = Any
Module = Any


class UsageError(Exception):
    """An argument that is unknown, incomplete or out of range; the text is for the user."""


@dataclass(frozen=True)
class Option:
    """One argument: its names, the words for its value ("" for a switch), help, and what it sets."""

    names: tuple[str, ...]
    value: str
    help: str
    set: Callable[[Module, Params, str], None]
    allowed: tuple[str, ...] = ()


def _field(name: str, kind: Callable[[str], object] = int) -> Callable[[Module, Params, str], None]:
    """A setter for a field of CommonParams, dotted names reaching into its parts."""
    *parts, last = name.split(".")

    def put(_module: Module, params: Params, text: str) -> None:
        target = params
        for part in parts:
            target = getattr(target, part)
        setattr(target, last, kind(text))

    return put


def _switch(name: str, value: bool = True) -> Callable[[Module, Params, str], None]:
    return _field(name, lambda _text: value)


def _kv(name: str) -> Callable[[Module, Params, str], None]:
    def put(module: Module, params: Params, text: str) -> None:
        setattr(params, name, module.ggml_type[f"GGML_TYPE_{text.upper()}"])

    return put


def _speculation(module: Module, params: Params, text: str) -> None:
    kinds = text.split(",")
    params.speculative.types = [
        module.common_speculative_type[f"COMMON_SPECULATIVE_TYPE_{kind.upper().replace('-', '_')}"]
        for kind in kinds
    ]


def _threads(_module: Module, params: Params, text: str) -> None:
    params.cpuparams.n_threads = int(text)
    params.speculative.draft.cpuparams.n_threads = int(text)


def _threads_batch(_module: Module, params: Params, text: str) -> None:
    params.cpuparams_batch.n_threads = int(text)
    params.speculative.draft.cpuparams_batch.n_threads = int(text)


def _alias(_module: Module, params: Params, text: str) -> None:
    params.model_alias = set(text.split(","))


def _host(_module: Module, params: Params, text: str) -> None:
    params.hostnames = text.split(",")


def _flash_attention(module: Module, params: Params, text: str) -> None:
    params.flash_attn_type = module.llama_flash_attn_type(FLASH_ATTENTION[text])


def _pooling(module: Module, params: Params, text: str) -> None:
    params.pooling_type = module.llama_pooling_type[f"LLAMA_POOLING_TYPE_{text.upper()}"]


def _rerank(module: Module, params: Params, _text: str) -> None:
    params.embedding = True
    _pooling(module, params, "rank")


def _gpu_layers(_module: Module, params: Params, text: str) -> None:
    params.n_gpu_layers = {"auto": -1, "all": -2}[text] if text in {"auto", "all"} else int(text)


def _api_keys(_module: Module, params: Params, text: str) -> None:
    lines = Path(text).read_text(encoding="utf-8").splitlines()
    params.api_keys = [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _nothing(_module: Module, _params: Params, _text: str) -> None:
    """The wheel has no such switch, and what it does anyway is what is asked for."""


OPTIONS: tuple[Option, ...] = (
    Option(("-m", "--model"), "FNAME", "model path to load", _field("model.path", str)),
    Option(("-a", "--alias"), "STRING", "model name of the API, comma-separated", _alias),
    Option(("--host",), "HOST", "address, or path of a UNIX socket ending in .sock", _host),
    Option(("--port",), "PORT", "port to listen on", _field("port")),
    Option(("-c", "--ctx-size"), "N", "size of the context of all slots together", _field("n_ctx")),
    Option(("-np", "--parallel"), "N", "number of slots", _field("n_parallel")),
    Option(("-t", "--threads"), "N", "CPU threads of decode", _threads),
    Option(("-tb", "--threads-batch"), "N", "CPU threads of prefill", _threads_batch),
    Option(("-b", "--batch-size"), "N", "logical batch size", _field("n_batch")),
    Option(("-ub", "--ubatch-size"), "N", "physical batch size", _field("n_ubatch")),
    Option(("-fa", "--flash-attn"), "MODE", "flash attention", _flash_attention, tuple(FLASH_ATTENTION)),
    Option(("-ctk", "--cache-type-k"), "TYPE", "KV cache type of K", _kv("cache_type_k"), KV_TYPES),
    Option(("-ctv", "--cache-type-v"), "TYPE", "KV cache type of V", _kv("cache_type_v"), KV_TYPES),
    Option(("--spec-type",), "TYPE", "speculative decoding, comma-separated", _speculation, SPECULATION),
    Option(("--spec-draft-n-max",), "N", "tokens to draft", _field("speculative.draft.n_max")),
    Option(("--spec-draft-n-min",), "N", "fewest tokens to draft", _field("speculative.draft.n_min")),
    Option(("--spec-draft-p-min",), "P", "lowest probability", _field("speculative.draft.p_min", float)),
    Option(("--spec-ngram-mod-n-min",), "N", "n-gram tokens, least", _field("speculative.ngram_mod.n_min")),
    Option(("--spec-ngram-mod-n-max",), "N", "n-gram tokens, most", _field("speculative.ngram_mod.n_max")),
    Option(("--spec-ngram-mod-n-match",), "N", "n-gram length", _field("speculative.ngram_mod.n_match")),
    Option(("--spec-synth-len",), "L", "synthetic acceptance length", _field("speculative.synth_len", float)),
    Option(("--jinja",), "", "run chat templates as Jinja", _switch("use_jinja")),
    Option(("--no-jinja",), "", "do not", _switch("use_jinja", False)),
    Option(("--slots",), "", "switch /slots on", _switch("endpoint_slots")),
    Option(("--no-slots",), "", "switch /slots off", _switch("endpoint_slots", False)),
    Option(("--metrics",), "", "switch /metrics on", _switch("endpoint_metrics")),
    Option(("-cram", "--cache-ram"), "N", "prompt cache in MiB", _field("cache_ram_mib")),
    Option(("--embedding", "--embeddings"), "", "embed only", _switch("embedding")),
    Option(("--rerank", "--reranking"), "", "score texts for a question", _rerank),
    Option(("--pooling",), "KIND", "pooling of embeddings", _pooling, POOLING),
    Option(("-ngl", "--gpu-layers", "--n-gpu-layers"), "N", "layers on the GPU, auto or all", _gpu_layers),
    Option(("--no-ui", "--no-webui"), "", "no web page", _switch("ui", False)),
    Option(("-kvu", "--kv-unified"), "", "one KV buffer for all slots", _switch("kv_unified")),
    Option(("-no-kvu", "--no-kv-unified"), "", "a KV buffer a slot", _switch("kv_unified", False)),
    Option(("-nr", "--no-repack"), "", "no weight repacking", _switch("no_extra_bufts")),
    Option(("--no-warmup",), "", "no empty run at the start", _switch("warmup", False)),
    Option(("--offline",), "", "fetch nothing", _switch("offline")),
    Option(("--api-key-file",), "FNAME", "file of API keys, one a line", _api_keys),
    Option(("-lv", "--verbosity", "--log-verbosity"), "N", "log level", _field("verbosity")),
    Option(("--log-colors",), "MODE", "colours in the log", _nothing, ("off",)),
)


def parse(argv: Sequence[str]) -> list[tuple[Option, str]]:
    """Reads the arguments. Raises `UsageError` for one that is unknown, incomplete or not allowed."""
    by_name = {name: option for option in OPTIONS for name in option.names}
    found: list[tuple[Option, str]] = []
    at = 0
    while at < len(argv):
        name = argv[at]
        at += 1
        option = by_name.get(name)
        if option is None:
            raise UsageError(f"error: invalid argument: {name}")
        text = ""
        if option.value:
            if at >= len(argv):
                raise UsageError(f'error while handling argument "{name}": expected value for argument')
            text = argv[at]
            at += 1
            values = text.split(",") if option.names[0] == "--spec-type" else [text]
            wrong = [value for value in values if option.allowed and value not in option.allowed]
            if wrong and "--cache-type" in option.names[-1]:
                raise UsageError(f'error while handling argument "{name}": Unsupported cache type: {text}')
            if wrong:
                raise UsageError(f'error while handling argument "{name}": unknown value: {wrong[0]}')
        found.append((option, text))
    return found


def usage() -> str:
    """The help text, in the form of llama-server's own, which is how abilities are probed."""
    lines = ["usage: llama-server of the xllamacpp wheel", ""]
    for option in OPTIONS:
        lines.append(f"{', '.join(option.names)} {option.value}".rstrip() + f"   {option.help}")
        if option.allowed:
            lines.append(f"{'':40}allowed values: {', '.join(option.allowed)}")
    extra = {"--version": "show version", "--help": "this text", "--list-devices": "show accelerators"}
    lines += [f"{name}   {text}" for name, text in extra.items()]
    return "\n".join(lines)


def version() -> str:
    """The wheel's version; its last number is llama.cpp's build number."""
    text = importlib.metadata.version("xllamacpp")
    return f"version: xllamacpp-{text} (build {text.rpartition('.')[2]})"


def _tell_the_build() -> None:
    """Have answers tell the build (`system_fingerprint`): the wheel was compiled without its number.

    A wheel that knows it, or has it under other names, keeps what it says.
    """
    number = importlib.metadata.version("xllamacpp").rpartition(".")[2]
    with contextlib.suppress(ValueError, OSError):
        library = ctypes.CDLL(sys.modules["xllamacpp.xllamacpp"].__file__)
        known = ctypes.c_int.in_dll(library, "LLAMA_BUILD_NUMBER")
        if known.value == 0:
            known.value = int(number)
            # The text outlives the process's last answer: it is held by the module.
            ctypes.c_char_p.in_dll(library, "LLAMA_COMMIT").value = _FROM


def devices(module: Module) -> str:
    """The accelerators that the wheel sees, in llama-server's form."""
    found = [device for device in module.get_device_info() if device["name"] != "CPU"]
    lines = [
        f"  {device['name']}: {device['description']} ({device['memory_total'] >> 20} MiB, "
        f"{device['memory_free'] >> 20} MiB free)"
        for device in found
    ]
    return "\n".join(["Available devices:", *(lines or ["  (none)"])])


def main(argv: Sequence[str]) -> NoReturn:
    """Runs the server until SIGTERM or SIGINT; leaves without Python's clean-up, which can hang in C++."""
    with contextlib.suppress(BrokenPipeError):
        code = _run(argv)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    os._exit(1)


def _run(argv: Sequence[str]) -> int:
    if "--version" in argv:
        print(version())
        return 0
    if {"-h", "--help", "--usage"} & set(argv):
        print(usage())
        return 0
    # Late: it takes 0.1 s and 100 MB that `--help` does not need.
    import xllamacpp

    if "--list-devices" in argv:
        print(devices(xllamacpp))
        return 0
    params = xllamacpp.CommonParams()
    try:
        for option, text in parse(argv):
            try:
                option.set(xllamacpp, params, text)
            except (ValueError, OverflowError, OSError, KeyError) as error:
                raise UsageError(f'error while handling argument "{option.names[-1]}": {error}') from error
    except UsageError as error:
        print(error, file=sys.stderr)
        return 1
    if not params.model.path:
        print("error: --model is required", file=sys.stderr)
        return 1
    return _serve(xllamacpp, params)


def _let_the_log_drain(seconds: float = 3.0, quiet: float = 0.3) -> None:
    """Wait until the log has not grown for a moment: llama.cpp writes it from a thread of its own.

    The reason of a failed start is among those last lines, and leaving at once would lose them.
    """
    end = time.monotonic() + seconds
    size, since = -1, time.monotonic()
    while time.monotonic() < end and time.monotonic() - since < quiet:
        now = os.fstat(sys.stderr.fileno()).st_size
        if now != size:
            size, since = now, time.monotonic()
        time.sleep(0.02)


def _serve(module: Module, params: Params) -> int:
    _tell_the_build()
    # While the model loads no Python runs: the signals' own default ends the process at once.
    _default_signals()
    try:
        server = module.Server(params)
    except RuntimeError as error:
        print(f"E srv  llama_server: {error}", file=sys.stderr, flush=True)
        _let_the_log_drain()
        return 1
    # The wheel installed handlers of its own; with them a SIGTERM only ends its HTTP server.
    _default_signals()
    # Not a lock: a signal may come to any of the server's threads, and only a write wakes this one.
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    print(f"srv  llama_server: listening on {server.listening_address}", file=sys.stderr, flush=True)
    os.read(ended, 1)
    for host in params.hostnames:
        if host.endswith(".sock"):
            Path(host).unlink(missing_ok=True)
    # Here, while `server` is still alive: its destructor waits for running requests.
    os._exit(0)


def _default_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    main(sys.argv[1:])
