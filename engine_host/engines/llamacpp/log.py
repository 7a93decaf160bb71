"""Parse llama-server's log: the stages of a start, its buffers, and the reason of its end."""

import re
import signal
from collections.abc import Sequence

from engine_host.engines.exit_rules import ExitRule, explain_lines, signal_name
from engine_host.engines.llamacpp.attention import attention_of
from engine_host.engines.llamacpp.build.toolchain import processor_has_amx
from engine_host.engines.stage_reader import NUMBER, StageReader, size_of
from engine_host.protocol.engines import Attention
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr

WEIGHTS = "Weights"
CONTEXT = "Context and KV"
WARM_UP = "Warm-up"
SERVING = "Serving"
_STAGES = (
    (WEIGHTS, re.compile(r"load_tensors: loading model tensors|load_model: loading model '")),
    (CONTEXT, re.compile(r"llama_context: constructing llama_context")),
    (WARM_UP, re.compile(r"warming up the model")),
    # Anchored: what looks ahead may begin at one place only.
    (SERVING, re.compile(r"^(?=.*(?:llama_server|init:|main:)).*listening on ")),
)

# "0.00.022.984 I llama_kv_cache:        CPU KV buffer size =     0.53 MiB"
_BUFFER = re.compile(
    r"(?<!\S)(?P<device>\S{1,64}) {1,40}(?P<kind>model|KV|RS|compute|output) buffer size"
    rf" {{0,9}}= {{0,20}}(?P<size>{NUMBER}) MiB"
)
_KINDS = {"model": "model", "KV": "KV", "RS": "recurrent state", "compute": "compute", "output": "output"}
_CELLS = re.compile(
    rf"size {{0,9}}= {{0,20}}{NUMBER} MiB \( {{0,20}}(?P<cells>[0-9]{{1,12}}) cells,"
    r" {0,20}(?P<layers>[0-9]{1,6}) layers,[^()]{0,80}\), {0,9}"
    r"K \((?P<k>[\w.]{1,16})\)[^()]{0,60}V \((?P<v>[\w.]{1,16})\)"
)
# "attn_rot_k = 1"; from October 2026 "n_rot_k = 64", the size of the rotation.
_ROTATION = re.compile(r"(?:attn_rot|n_rot)_(?P<which>[kv]) {0,20}= {0,20}(?P<size>[0-9]{1,9})")
_DRAFT = ("creating MTP draft context", "loading draft model")


class LlamaCppStageReader(StageReader):
    """Reads the stages of one start off llama-server's log lines.

    `buffers` are bytes as the server printed them (it rounds to a hundredth of a MiB), by device and use;
    those of a draft model or MTP context start with "draft ". `facts` holds what it said of its KV cache.
    """

    stages = _STAGES

    def __init__(self) -> None:
        super().__init__()
        self.facts: dict[str, str] = {}
        self._draft = False

    def measure(self, line: str) -> bool:
        """Note the buffers that a line tells, and what it says of the KV cache."""
        if any(words in line for words in _DRAFT):
            self._draft = True
        if "MiB" not in line and "rot_" not in line:
            # Most lines of an engine that serves: no pattern is tried on them.
            return False
        changed = self._buffer(line)
        self._fact(line)
        return changed

    def attend(self, line: str) -> Attention:
        """Return what is known of the model's own attention; a drafter's layers tell nothing of it."""
        return self.attention if self._draft else attention_of(line, self.attention)

    def _buffer(self, line: str) -> bool:
        found = _BUFFER.search(line)
        if found is None:
            return False
        kind = _KINDS[found["kind"]]
        key = ("draft " if self._draft else "") + f"{found['device']} {kind}"
        size = size_of(found["size"], 2**20)
        # A sliding-window model prints one KV buffer for each of its two caches; a compute buffer is
        # printed again whenever it was laid out anew.
        adds = kind in {"KV", "model"}
        return self.keep(key, size + (self.buffers.get(key, 0) if adds else 0)) and size > 0

    def _fact(self, line: str) -> None:
        prefix = "draft " if self._draft else ""
        if cells := _CELLS.search(line):
            self.facts[prefix + "cells"] = cells["cells"]
            self.facts[prefix + "KV layers"] = cells["layers"]
            self.facts[prefix + "K"] = cells["k"]
            self.facts[prefix + "V"] = cells["v"]
        elif rotation := _ROTATION.search(line):
            self.facts[f"{prefix}{rotation['which'].upper()} rotated"] = (
                "no" if rotation["size"] == "0" else "yes"
            )

    def detail(self) -> str:
        """The types and cells of the KV cache."""
        if "cells" not in self.facts:
            return ""
        k, v = self.facts["K"], self.facts["V"]
        rotated = " with rotation" if self.facts.get("K rotated") == "yes" else ""
        return f"KV {k if k == v else f'{k}/{v}'}{rotated}, {self.facts['cells']} cells a stream"


def explain_exit(code: int | None, lines: Sequence[str], model: str, server: str) -> Problem:
    """Why llama-server ended by itself, from its exit code (None: unknown) and the end of its log."""
    trial = max((number for number, line in enumerate(lines, 1) if _TRIAL_ENDED in line), default=0)
    for told in (lines[trial:], lines):
        if (problem := explain_lines(told, _RULES, model, server, code)) is not None:
            return problem
    evidence: dict[str, object] = {"exit_code": code}
    if code is not None and code > 128:
        code = 128 - code
    if code in (-signal.SIGILL, -signal.SIGSEGV, -signal.SIGFPE, -signal.SIGBUS):
        return _crash(code, evidence)
    if code == -signal.SIGKILL:
        return Problem(
            reason=Reason.OUT_OF_MEMORY,
            message="The engine was ended with SIGKILL.",
            cause="Its log cannot tell who sent it; most often that is the system when memory runs out.",
            fix=Fix(text="Choose a smaller context, fewer streams or a smaller model."),
            evidence=evidence,
        )
    errors = (line.strip() for line in reversed(lines) if " E " in line or "error" in line.lower())
    last = next((line for line in errors if "[withheld:" not in line), "")
    return Problem(
        reason=Reason.ENGINE_CRASHED,
        message=tr(
            "The engine was ended by signal {signal}.[ It said: {said}]", signal=-code, said=last[:300]
        )
        if code is not None and code < 0
        else tr("The engine ended[ with code {code}].[ It said: {said}]", code=code, said=last[:300]),
        fix=Fix(text="Read the end of its log."),
        evidence={**evidence, "line": last[:400]} if last else evidence,
    )


def _crash(code: int, evidence: dict[str, object]) -> Problem:
    name = signal_name(-code)
    amx = processor_has_amx()
    if code == -signal.SIGILL or (amx and code == -signal.SIGSEGV):
        return Problem(
            reason=Reason.ILLEGAL_INSTRUCTION,
            message=tr("The engine used an instruction that this processor refused ({name}).", name=name),
            cause="The server was compiled with AMX by a compiler that breaks its set-up."
            if amx
            else "The server was compiled for another processor.",
            fix=Fix(
                text="Use the server built by this program, which holds the correction, or start with "
                "--no-repack."
                if amx
                else "Build the server on this machine, or use the prebuilt one."
            ),
            evidence={**evidence, "signal": name, "amx": amx},
        )
    return Problem(
        reason=Reason.ENGINE_CRASHED,
        message=tr("The engine crashed ({name}).", name=name),
        fix=Fix(text="Read the end of its log; try the other server."),
        evidence={**evidence, "signal": name, "amx": amx},
    )


# Each was seen on llama-server 0c1e57098; the first line of the log that matches one explains the end.
# The server tries what fits before it loads, and goes on where that fails: no error of it ended anything.
_TRIAL_ENDED = "fitting params to free memory took"
_RULES = (
    ExitRule(
        r"cannot open shared object file|error while loading shared libraries: (?P<library>\S+?):",
        Reason.ENGINE_UNUSABLE,
        "The server {version} misses a library.",
        "It was built on another system, or a driver was removed.",
        "Build it again, or choose another server.",
    ),
    ExitRule(
        r"invalid argument: (?P<flag>\S+)",
        Reason.FLAG_UNSUPPORTED,
        "The server does not know the argument {flag}.",
        "It is another version than the one that the plan was made for.",
        "Remove the argument, or choose another server.",
    ),
    ExitRule(
        r"Unsupported cache type: (?P<kv_type>\S+)",
        Reason.KV_TYPE_UNSUPPORTED,
        "The server cannot keep the KV cache as {kv_type}.",
        "",
        "Choose one of the types that it offers.",
    ),
    ExitRule(
        r"error while handling argument \"(?P<flag>[^\"]+)\": (?P<said>.*)",
        Reason.SETTING_INVALID,
        "The server refused {flag}: {said}.",
        "",
        "Correct the setting.",
    ),
    ExitRule(
        r"failed to open GGUF file .{1,1500}\((?P<said>[^()]{1,120})\)",
        Reason.MODEL_FILE_MISSING,
        "The engine cannot open {model}: {said}.",
        "The file was moved, or its disk is not attached.",
        "Rescan the model folders, or choose another model.",
    ),
    ExitRule(
        r"invalid magic characters|failed to read magic",
        Reason.NOT_GGUF,
        "{model} is not a GGUF file.",
        "",
        "Choose a file in GGUF format.",
    ),
    ExitRule(
        r"has invalid ggml type (?P<type>\d{1,9})",
        Reason.QUANTIZATION_UNSUPPORTED,
        "This server does not know the quantisation of {model}: type {type} of GGML.",
        "The file is newer than the server, or was made for a fork of llama.cpp.",
        "Update the server, or choose another quantisation of the model.",
    ),
    ExitRule(
        r"data is not within the file bounds|failed to read (?:key-value pairs|tensor (?:info|data))|"
        r"gguf_init\w*: failed to read",
        Reason.GGUF_TRUNCATED,
        "{model} is truncated.",
        "The download or the copy did not finish.",
        "Fetch the file again.",
    ),
    ExitRule(
        r"unknown model architecture: '(?P<architecture>[^']*)'",
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        "This server does not know the architecture {architecture}.",
        "The model is newer than the server, or needs a fork of llama.cpp.",
        "Update the server, or choose one that knows it.",
    ),
    ExitRule(
        r"unsupported (?:GGUF )?version|GGUFv\d+ is no longer supported|is larger than the current maximum",
        Reason.GGUF_TOO_NEW,
        "{model} is in a version of GGUF that this server does not read.",
        "",
        "Update the server, or fetch a current conversion.",
    ),
    ExitRule(
        r"CUDA error: (?P<said>no kernel image is available for execution on the device|"
        r"device kernel image is invalid)",
        Reason.KERNEL_UNSUPPORTED,
        "The server {version} was not built for this GPU: {said}.",
        "It was built for other generations of GPUs, or with a newer CUDA than the driver knows.",
        "Build the server on this machine, or update the driver.",
    ),
    # Only as an error: where CUDA cannot be initialised, the server says so and computes on the processor.
    ExitRule(
        r"CUDA error: (?P<said>CUDA driver version is insufficient|no CUDA-capable device is detected|"
        r"the provided PTX was compiled with an unsupported toolchain)",
        Reason.ENGINE_UNUSABLE,
        "The server {version} cannot use the GPU: {said}.",
        "The driver is missing, or older than the CUDA that the server was built with.",
        "Update the driver, or choose the server that computes on the processor.",
    ),
    ExitRule(
        r"insufficient memory|failed to allocate .*buffer|unable to allocate|out of memory|bad_alloc|"
        r"failed to allocate compute|not enough (?:memory|VRAM)",
        Reason.OUT_OF_MEMORY,
        "The memory did not suffice for {model} with this context.",
        "Weights, KV cache and compute buffers together are larger than what is free.",
        "Choose a smaller context, fewer streams, a smaller KV type or fewer layers on the GPU.",
    ),
    ExitRule(
        r"failed to create MTP context",
        Reason.SETTING_INVALID,
        "{model} has no MTP layer that this server can draft with.",
        "The file was converted without it, or its architecture has none.",
        "Switch speculation off, or use an n-gram kind.",
    ),
    ExitRule(
        r"couldn't bind HTTP server socket, hostname: (?P<address>[^,]+)",
        Reason.PORT_IN_USE,
        "The engine could not listen on {address}.",
        "Another process listens there, or an old socket file is in the way.",
        "Stop the other process, and start again.",
    ),
    ExitRule(
        r"missing tensor '(?P<tensor>[^']{0,200})'|wrong (?:number of tensors|shape)",
        Reason.MODEL_WEIGHTS_MISMATCH,
        "{model} and this server do not fit together: it does not hold the parts that the server expects.",
        "It was converted with a fault, or for another version or a fork of llama.cpp.",
        "Update the server, or fetch another conversion of the model.",
    ),
    ExitRule(
        r"error loading model vocabulary: (?P<said>.*)|error loading model hyperparameters: (?P<said2>.*)",
        Reason.MODEL_FILE_DAMAGED,
        "{model} is not a complete model for this server.",
        "It was converted with a fault, or for another version of llama.cpp.",
        "Fetch another conversion of the model.",
    ),
)
