"""Parse vLLM's log: the stages of a start, its sizes, and the reason of its end."""

import re
import signal
from collections.abc import Sequence

from engine_host.engines.exit_rules import ExitRule, explain_lines, signal_name
from engine_host.engines.stage_reader import NUMBER, StageReader, matched_part, size_of
from engine_host.engines.vllm.attention import attention_of
from engine_host.protocol.engines import Attention
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr

CONFIGURE = "Configuration"
WEIGHTS = "Weights"
COMPILE = "Compile"
MEMORY = "Memory profile"
GRAPHS = "Graph capture"
WARM_UP = "Warm-up"
SERVING = "Serving"

# "(EngineCore pid=2900) INFO 11-21 03:24:50 [kv_cache_utils.py:2327] CPU KV cache size: 465,920 tokens, …"
_STAGES = (
    (CONFIGURE, re.compile(r"Resolved architecture: (?P<detail>\S{1,200})")),
    (WEIGHTS, re.compile(r"Starting to load model (?P<detail>.+?)\.\.\.$")),
    (
        COMPILE,
        re.compile(r"Dynamo bytecode transform|Warming up model for the compilation|load AOT compilation"),
    ),
    (COMPILE, re.compile(r"Using cache directory: \S+ for vLLM's torch\.compile")),
    (MEMORY, re.compile(r"Model loading took (?P<detail>\S+ GiB)|Warming up done|torch\.compile took")),
    (GRAPHS, re.compile(r"GPU KV cache size: (?P<detail>[\d,]+ tokens)")),
    (WARM_UP, re.compile(r"CPU KV cache size: (?P<detail>[\d,]+ tokens)")),
    (SERVING, re.compile(r"init engine \([^()]{0,120}\) took (?P<init>[\d.]{1,12} s)\b")),
    (SERVING, re.compile(r"Starting vLLM server on")),
)
_GIB = re.compile(
    rf"Model loading took (?P<weights>{NUMBER}) GiB|Available KV cache memory: (?P<kv>{NUMBER}) GiB|"
    rf"Graph capturing finished in \S{{1,20}} secs, took (?P<graphs>{NUMBER}) GiB|"
    rf"Explicitly set \((?P<cpu_kv>{NUMBER})/{NUMBER}\) GiB for KV cache|"
    # Of the patch draft-head-8-bit, after vLLM has told what the model took.
    rf"copy of the output matrix in 8 bits: \d{{1,12}} x \d{{1,12}}, (?P<copy>{NUMBER}) GiB"
)
# On the CPU vLLM says nothing of what the model took, and this instead of it.
_CHECKPOINT_SIZE = re.compile(rf"Checkpoint size: (?P<checkpoint>{NUMBER}) GiB")
_BUFFERS = {"weights": "model", "kv": "KV", "graphs": "CUDA graphs", "cpu_kv": "KV", "copy": "draft head"}
_CHECKPOINT = "checkpoint"
_ERROR = re.compile(r"(?P<type>[A-Z]\w*(?:Error|Exception|Interrupt))\b: (?P<said>.*)")
_DEAD = re.compile(
    r"Worker proc (?P<worker>\S+) died unexpectedly \(exit code: (?P<code>-?\d+|None)|"
    r"EngineDeadError: EngineCore"
)
_FRAME = re.compile(r'\s*File "(?P<path>[^"]{1,400})", line (?P<line>\d{1,7}), in (?P<name>\S{1,100})$')
# "(Worker pid=7400) ERROR 11-21 03:42:36 [multiproc_executor.py:1063] TypeError: …"
_PREFIX = re.compile(r"^(?:\(\w[^)]*\) )?(?:[A-Z]+ \d\d-\d\d [\d:]+ \[[^]]*\] ?)?")


class VllmStageReader(StageReader):
    """Reads the stages of one start off vLLM's log lines.

    On the CPU compilation precedes the memory figures, on a GPU it runs inside the memory profile.
    `buffers` are bytes as vLLM printed them (it rounds to a hundredth of a GiB).
    """

    stages = _STAGES

    def __init__(self) -> None:
        super().__init__()
        self._checkpoint: int | None = None

    def measure(self, line: str) -> bool:
        """Note the sizes that a line tells."""
        found = _GIB.search(line)
        if found is None:
            if (of_files := _CHECKPOINT_SIZE.search(line)) is not None:
                self._checkpoint = size_of(of_files["checkpoint"], 2**30)
            return False
        for group, value in found.groupdict().items():
            if value is not None:
                self.keep(_BUFFERS[group], size_of(value, 2**30))
        if found["cpu_kv"] is not None and self._checkpoint is not None:
            self.keep(_CHECKPOINT, self._checkpoint)
        return True

    def attend(self, line: str) -> Attention:
        """Return what is known of the attention after this line."""
        beginning = _PREFIX.match(line)
        length = beginning.end() if beginning is not None else 0
        return attention_of(line[length:], line[:length], self.attention)


def explain_exit(code: int | None, lines: Sequence[str], model: str, version: str) -> Problem:
    """Why vLLM ended by itself, from its exit code (None: unknown) and the end of its log.

    The first exception that is none of vLLM's own wrappers explains the others: each process prints a
    traceback of its own when the one below it dies. Where a process below the API server died, the API
    server's own tracebacks are of requests that failed earlier, and explain nothing.
    """
    evidence: dict[str, object] = {"exit_code": code}
    lines = list(map(matched_part, lines))
    below = any(_DEAD.search(line) for line in lines)
    candidates = [line for line in lines if not (below and line.startswith("(APIServer"))]
    texts = (_PREFIX.sub("", line) for line in candidates)
    if (problem := explain_lines(texts, _RULES, model, version, code)) is not None:
        return problem
    own_messages = [own for line in candidates if (own := _own_error(line))]
    own_message = next((own for own in own_messages if "[withheld:" not in own), None)
    if code is not None and code < 0:
        name = signal_name(-code)
        killed = code == -signal.SIGKILL
        return Problem(
            reason=Reason.OUT_OF_MEMORY if killed and own_message is None else Reason.ENGINE_CRASHED,
            message=tr("vLLM was ended by {name}.[ It said: {said}]", name=name, said=own_message),
            cause="Somebody killed it; most often that is the system when memory runs out." if killed else "",
            fix=Fix(text="Choose a smaller context, fewer streams, a smaller KV cache or a smaller model."),
            evidence={**evidence, "signal": name},
        )
    lost = None if own_message is not None else _lost_process(lines, said=bool(own_messages))
    if lost is not None:
        return lost.model_copy(update={"evidence": {**evidence, **lost.evidence}})
    if own_message is not None:
        evidence["line"] = own_message
    elif own_messages:
        own_message = tr(
            "{own_messages} (its text may hold a request and was not kept)",
            own_messages=own_messages[0].partition(":")[0],
        )
        if place := _place_of(candidates):
            own_message += f" {place}"
            evidence["place"] = place
    return Problem(
        reason=Reason.ENGINE_CRASHED,
        message=tr("vLLM ended[ with code {code}].[ It said: {said}]", code=code, said=own_message),
        fix=Fix(text="Read the end of its log; try it with fewer patches, or without speculation."),
        evidence=evidence,
    )


def _place_of(lines: Sequence[str]) -> str:
    """Return where the first error was raised, by the traceback before it; empty where none is told."""
    place = ""
    for line in lines:
        text = _PREFIX.sub("", line)
        if (frame := _FRAME.match(text)) is not None:
            file = frame["path"].rpartition("/")[2]
            place = f"in {frame['name']} ({file[:80]}, line {frame['line']})"
        elif _own_error(line):
            break
    return place


def _lost_process(lines: Sequence[str], *, said: bool) -> Problem | None:
    """The end of one of vLLM's own processes that said nothing: the API server then ends in order.

    With `said` one of them has told an error, so only a process that was killed counts as one without a word.
    """
    found = next((dead for line in lines if (dead := _DEAD.search(line))), None)
    if found is None or (said and not found["worker"]):
        return None
    worker, code = found["worker"], found["code"]
    killed = code in (None, str(-signal.SIGKILL))
    name = f"worker {worker}" if worker else "EngineCore"
    cause = tr("Somebody killed it; most often that is the system when memory runs out.") if killed else ""
    if code == "None":
        # vLLM looks as soon as the process closes its files, which is before the system has its exit code.
        cause = tr(
            "It was gone before vLLM could ask how it ended: most often somebody, or the system, killed it."
        )
    return Problem(
        reason=Reason.OUT_OF_MEMORY if worker and killed else Reason.ENGINE_CRASHED,
        message=tr("vLLM's {name} ended without a word, and vLLM with it.", name=name),
        cause=cause,
        fix=Fix(text="Choose a smaller context, fewer streams, a smaller KV cache or a smaller model."),
        evidence={"process": name} | ({"process_exit_code": int(code)} if code and code != "None" else {}),
    )


def _own_error(line: str) -> str | None:
    found = _ERROR.match(_PREFIX.sub("", line))
    if found is None or found["type"] in {"EngineDeadError", "KeyboardInterrupt"}:
        return None
    # "RuntimeError: Engine core initialization failed. See root cause above.", and of a worker that is gone
    # "RuntimeError: Executor failed."
    if "root cause" in found["said"] or found["said"] == "Executor failed.":
        return None
    return f"{found['type']}: {found['said'][:300]}"


_OTHER_REVISION = (
    "The model is newer or older than this vLLM, or its weights and its config.json are of different models."
)
_ONE_REVISION = "Choose another vLLM (sndr engine list), or fetch the whole model again from one place."
# Messages of vLLM 0.26 and 0.32, torch and transformers; the first line that matches one explains the end.
_RULES = (
    # Said by the patch turboquant-grouped-attention (decision.py).
    ExitRule(
        r"turboquant-grouped-attention cannot be used: (?P<why>.+?)\. "
        r"vLLM's own TurboQuant kernels (?P<own>answer wrongly with drafts|are not batch-invariant)",
        Reason.KV_TYPE_UNSUPPORTED,
        "TurboQuant cannot be used for this start: {why}.",
        "This program's kernels were refused by their test on this GPU, or were not written for this model, "
        "and vLLM's own {own}.",
        "Take fp8 for the KV cache, or switch speculation and batch-invariant mode off.",
    ),
    ExitRule(
        r"(?:vllm|main\.py)(?: serve)?: error: unrecognized arguments: (?P<flag>.*)",
        Reason.FLAG_UNSUPPORTED,
        "{version} does not know the argument {flag}.",
        "It is another version than the one that the argument is from.",
        "Remove the argument, or choose another environment.",
    ),
    ExitRule(
        r"(?:vllm|main\.py)(?: serve)?: error: (?!argument )(?P<said>.*)|"
        r"error: argument (?P<argument>[^:]+): (?P<what>.*)",
        Reason.SETTING_INVALID,
        "vLLM refused its command line: {argument} {what}{said}.",
        "",
        "Correct the setting.",
    ),
    ExitRule(
        r"OutOfMemoryError: (?P<said>.*)|CUDA out of memory|DefaultCPUAllocator: can't allocate memory|"
        r"std::bad_alloc|MemoryError",
        Reason.OUT_OF_MEMORY,
        "The memory did not suffice for {model}.",
        "Weights, KV cache, activations and graphs together are larger than what is free.",
        "Choose a smaller context, fewer streams, a smaller share of the memory or a smaller model.",
    ),
    ExitRule(
        r"No available memory for the cache blocks|is less than desired GPU memory utilization|"
        r"larger than the available KV cache memory|KV cache is needed, which is larger",
        Reason.OUT_OF_MEMORY,
        "No memory is left for the KV cache of {model}.",
        "Weights and activations take what vLLM may use, or another process holds the memory.",
        "Choose a smaller context, or a larger share of the memory; stop what else runs there.",
    ),
    ExitRule(
        r"Model architectures \[(?P<architecture>[^]]*)\] (?:are not supported|failed to be inspected)|"
        r"does not recognize this architecture",
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        "{version} does not run the architecture {architecture}.",
        "The model is newer than this vLLM, or a package that it needs is missing.",
        "Choose another environment or another model.",
    ),
    ExitRule(
        r"There is no module or parameter named '(?P<tensor>[^']{1,200})'|"
        r"KeyError: '(?P<key>(?:model\.|language_model\.|layers\.)[\w.]{1,200})'",
        Reason.MODEL_WEIGHTS_MISMATCH,
        "{model} and {version} do not fit together: the file holds a part that this vLLM has no place for: "
        "{tensor}{key}.",
        _OTHER_REVISION,
        _ONE_REVISION,
    ),
    ExitRule(
        r"Following weights were not initialized from checkpoint|Tried to load weights of size torch\.Size|"
        r"Attempted to load weight \(torch\.Size",
        Reason.MODEL_WEIGHTS_MISMATCH,
        "{model} and {version} do not fit together: its weights are not those that this vLLM expects.",
        _OTHER_REVISION,
        _ONE_REVISION,
    ),
    ExitRule(
        r"[Tt]he quantization method (?P<method>\S{1,60}) is not supported for the current GPU|"
        r"Unknown quantization method: (?P<unknown>[^\s.]{1,60})\.|"
        r"(?<!\S)(?P<platform>\S{1,60}) quantization is currently not supported in",
        Reason.QUANTIZATION_UNSUPPORTED,
        "{version} cannot run the quantisation {method}{unknown}{platform} on this machine.",
        "This GPU cannot compute in that format, or this vLLM does not know it.",
        "Choose another quantisation of the model, or another environment.",
    ),
    ExitRule(
        r"Quantization scheme is not supported for the current GPU\.",
        Reason.QUANTIZATION_UNSUPPORTED,
        "{version} cannot run the quantisation of {model} on this GPU.",
        "This GPU cannot compute in that format.",
        "Choose another quantisation of the model.",
    ),
    ExitRule(
        r"Failed to find a kernel that can implement the (?P<layer>[^.]{1,80})\.",
        Reason.KERNEL_UNSUPPORTED,
        "{version} cannot compute the {layer} of {model} on this GPU.",
        "None of its programs for GPUs (kernels) takes this quantisation in these sizes.",
        "Choose another quantisation of the model, or another environment.",
    ),
    ExitRule(
        r"No valid attention backend found for (?P<device>[^()]{1,80}?) with ",
        Reason.KERNEL_UNSUPPORTED,
        "{version} cannot compute the attention of {model} on {device}.",
        "None of its programs for GPUs (kernels) takes this head size, KV type and number format.",
        "Set the KV type to auto, or choose another environment.",
    ),
    ExitRule(
        r"Bfloat16 is only supported on GPUs with compute capability of at least (?P<least>\d{1,2}\.\d)",
        Reason.KERNEL_UNSUPPORTED,
        "{model} is saved in bfloat16, which takes a GPU of compute capability {least} in {version}.",
        "This GPU is older.",
        "Start it in the other 16-bit format: --set extra_arguments='--dtype half'",
    ),
    ExitRule(
        r"no kernel image is available for execution on the device",
        Reason.KERNEL_UNSUPPORTED,
        "{version} was not built for this generation of GPUs.",
        "It was built for older or newer ones.",
        "Choose another environment, or run a GGUF file with llama.cpp.",
    ),
    ExitRule(
        r"Timed out waiting for (?:new )?engine core processes to start\."
        r".{1,200}?Waited (?P<seconds>\d{1,9})s",
        Reason.ENGINE_START_TIMEOUT,
        "vLLM gave up waiting for its own processes after {seconds} s; nothing had failed until then.",
        "A first start reads every weight from the disk and compiles, which can take longer than vLLM waits.",
        "Start it again: what was read and compiled is cached, and the next start is shorter.",
    ),
    ExitRule(
        r"SafetensorError: (?P<said>.*)|HeaderTooLarge|MetadataIncompleteBuffer|InvalidHeaderDeserialization",
        Reason.MODEL_FILE_DAMAGED,
        "A weight file of {model} is damaged: {said}.",
        "The download or the copy did not finish.",
        "Fetch the file again.",
    ),
    ExitRule(
        r"(?:Cannot find any model weights|No model weights found|Can't load tokenizer|"
        r"Can't load the configuration|is not a valid (?:repo|JSON)|"
        r"No such file or directory: '(?P<path>[^']*)')",
        Reason.MODEL_FILE_MISSING,
        "A file of {model} is missing. {path}",
        "The folder is not a complete model.",
        "Fetch the missing file, or choose another model.",
    ),
    ExitRule(
        r"Address already in use",
        Reason.PORT_IN_USE,
        "vLLM could not listen on its socket.",
        "Another process listens there, or an old socket file is in the way.",
        "Start it again.",
    ),
    ExitRule(
        r"(?:CUDA driver version is insufficient|no CUDA-capable device|Found no NVIDIA driver|"
        r"NVIDIA driver on your system is too old|PTX was compiled with an unsupported toolchain|"
        r"Failed to infer device type|libcuda\.so\.1)",
        Reason.ENGINE_UNUSABLE,
        "This build of vLLM found no GPU that it can use.",
        "The driver is missing or older than the CUDA that vLLM was built with (13 needs driver 580).",
        "Update the driver, or use the CPU build: sndr engine install vllm --build cpu",
    ),
)
