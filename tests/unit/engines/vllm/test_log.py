# ruff: noqa: E501 - lines of a log are as long as they are
"""Stages and ends in vLLM's log; the lines are what vLLM 0.32 printed on a CPU and prints on a GPU."""

import signal

import pytest

from engine_host.engines.vllm.log import VllmStageReader, explain_exit
from engine_host.protocol.errors import Reason

CPU_EAGER = """\
(APIServer pid=2806) INFO 11-21 03:23:59 [api_utils.py:347]  version 0.32.0
(APIServer pid=2806) INFO 11-21 03:24:17 [model.py:733] Resolved architecture: Qwen3_5ForCausalLM
(EngineCore pid=2900) INFO 11-21 03:24:31 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='m'
(Worker pid=2940) INFO 11-21 03:24:48 [cpu_model_runner.py:68] Starting to load model /models/m...
(Worker pid=2940) INFO 11-21 03:24:49 [default_loader.py:501] Loading weights took 0.08 seconds
(Worker pid=2940) INFO 11-21 03:24:50 [cpu_worker.py:260] Explicitly set (1.0/19.46) GiB for KV cache on node 0.
(EngineCore pid=2900) INFO 11-21 03:24:50 [kv_cache_utils.py:2327] CPU KV cache size: 465,920 tokens, Maximum
(EngineCore pid=2900) INFO 11-21 03:24:53 [core.py:402] init engine (profile, create kv cache, warmup model) took 2.80 s
(APIServer pid=2806) INFO 11-21 03:24:53 [entry.py:140] Starting vLLM server on unix:/run/e.sock
""".splitlines()
GPU = """\
(APIServer pid=1) INFO 11-21 03:24:17 [model.py:733] Resolved architecture: MiMoForCausalLM
(EngineCore pid=2) INFO 11-21 03:24:48 [gpu_model_runner.py:5040] Starting to load model /models/m...
(EngineCore pid=2) INFO 11-21 03:24:52 [gpu_model_runner.py:5150] Model loading took 14.25 GiB memory and 3.2 seconds
(EngineCore pid=2) INFO 11-21 03:24:59 [backends.py:1167] Dynamo bytecode transform time: 6.10 s
(EngineCore pid=2) INFO 11-21 03:25:20 [gpu_worker.py:760] Available KV cache memory: 101.5 GiB
(EngineCore pid=2) INFO 11-21 03:25:20 [kv_cache_utils.py:2327] GPU KV cache size: 738,112 tokens
(EngineCore pid=2) INFO 11-21 03:25:31 [gpu_model_runner.py:6582] Graph capturing finished in 9 secs, took 0.75 GiB
(EngineCore pid=2) INFO 11-21 03:25:31 [core.py:402] init engine (profile, create kv cache, warmup model) took 39.10 s
""".splitlines()
CRASH = """\
(Worker pid=7400) ERROR 11-21 03:42:36 [multiproc_executor.py:1063] Traceback (most recent call last):
(Worker pid=7400) ERROR 11-21 03:42:36 [multiproc_executor.py:1063]     precopy_mamba_align_fused_kernel[grid](
(Worker pid=7400) ERROR 11-21 03:42:36 [multiproc_executor.py:1063] TypeError: 'function' object is not subscriptable
(EngineCore pid=6977) ERROR 11-21 03:42:36 [core.py:1500] RuntimeError: Worker failed with error, see root cause above
(APIServer pid=6958) ERROR 11-21 03:42:36 [async_llm.py:700] EngineDeadError: EngineCore encountered an issue.
""".splitlines()


def stages(lines: list[str]) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Each stage with its detail, and the sizes at the end."""
    reader = VllmStageReader()
    details: dict[str, str] = {}
    for line in lines:
        if found := reader.feed(line):
            details.setdefault(found.name, found.detail)
    return list(details.items()), reader.buffers


def test_stages_on_the_cpu() -> None:
    details, buffers = stages(CPU_EAGER)
    assert [name for name, _ in details] == ["Configuration", "Weights", "Warm-up", "Serving"]
    assert dict(details)["Warm-up"] == "465,920 tokens"
    # The stage has a time of its own, so that this one says what it is of.
    assert dict(details)["Serving"] == "engine initialised in 2.80 s"
    assert buffers == {"KV": 2**30}


def test_on_the_cpu_the_size_of_the_checkpoint_stands_for_the_weights() -> None:
    said = "(Worker pid=1) INFO 11-21 03:24:48 [weight_utils.py:1108] Filesystem type for checkpoints: EXT4. Checkpoint size: 1.50 GiB."
    assert stages([*CPU_EAGER[:4], said, *CPU_EAGER[4:]])[1] == {"KV": 2**30, "checkpoint": 3 * 2**29}
    assert "checkpoint" not in stages([*GPU[:2], said, *GPU[2:]])[1]


def test_stages_on_a_gpu() -> None:
    details, buffers = stages(GPU)
    expected = ["Configuration", "Weights", "Memory profile", "Compile", "Graph capture", "Serving"]
    assert [name for name, _ in details] == expected
    assert dict(details)["Memory profile"] == "14.25 GiB"
    assert set(buffers) == {"model", "KV", "CUDA graphs"}


def test_a_copy_for_drafts_is_a_buffer_of_its_own() -> None:
    copied = (
        "[head.py:96] Drafts are chosen by a copy of the output matrix in 8 bits: 248320 x 5120, 1.19 GiB."
    )
    _, buffers = stages([*GPU[:3], f"(EngineCore pid=2) INFO 11-22 03:24:53 {copied}", *GPU[3:]])
    assert buffers["draft head"] == round(1.19 * 2**30)
    assert buffers["model"] == round(14.25 * 2**30)


def test_a_stage_comes_once_and_nothing_follows_the_last() -> None:
    reader = VllmStageReader()
    assert all(reader.feed(line) for line in GPU)
    assert not any(reader.feed(line) for line in GPU if "GiB" not in line)


def test_the_first_exception_explains_the_others() -> None:
    problem = explain_exit(1, CRASH, "m", "vLLM 0.32.0")
    assert problem.reason is Reason.ENGINE_CRASHED
    assert "TypeError: 'function' object is not subscriptable" in problem.message


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("vllm: error: unrecognized arguments: --nonsense", Reason.FLAG_UNSUPPORTED),
        ("main.py: error: unrecognized arguments: --nonsense", Reason.FLAG_UNSUPPORTED),
        ("vllm serve: error: argument --kv-cache-dtype: invalid choice: 'x'", Reason.SETTING_INVALID),
        ("(EngineCore pid=2) ERROR 11-21 03:25:31 [core.py:1] torch.OutOfMemoryError: CUDA out of memory.",
         Reason.OUT_OF_MEMORY),
        ("ValueError: No available memory for the cache blocks. Try increasing", Reason.OUT_OF_MEMORY),
        ("ValueError: Model architectures ['FooForCausalLM'] are not supported for now.",
         Reason.MODEL_ARCHITECTURE_UNKNOWN),
        ("safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata",
         Reason.MODEL_FILE_DAMAGED),
        ("RuntimeError: Cannot find any model weights with `/models/m`", Reason.MODEL_FILE_MISSING),
        ("OSError: [Errno 98] Address already in use", Reason.PORT_IN_USE),
        ("RuntimeError: Found no NVIDIA driver on your system.", Reason.ENGINE_UNUSABLE),
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 12080). Please update your GPU driver",
         Reason.ENGINE_UNUSABLE),
        ("(EngineCore pid=2) ERROR 07-28 15:07:22 [core.py:632] RuntimeError: CUDA error: no kernel image is available "
         "for execution on the device", Reason.KERNEL_UNSUPPORTED),
        ("ValueError: Failed to find a kernel that can implement the WNA16 linear layer. Reasons: ",
         Reason.KERNEL_UNSUPPORTED),
        ("ValueError: No valid attention backend found for NVIDIA GeForce RTX 2080 Ti with AttentionSelectorConfig("
         "head_size=576, dtype=torch.bfloat16). Reasons: {}.", Reason.KERNEL_UNSUPPORTED),
        ("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla V100-SXM2-"
         "16GB GPU has compute capability 7.0.", Reason.KERNEL_UNSUPPORTED),
        ("  Value error, The quantization method modelopt_fp4 is not supported for the current GPU. Minimum capability: "
         "89. Current capability: 75. [type=value_error]", Reason.QUANTIZATION_UNSUPPORTED),
        ("  Value error, Unknown quantization method: exl3. Must be one of ['awq', 'fp8'].",
         Reason.QUANTIZATION_UNSUPPORTED),
        ("  Value error, bitsandbytes quantization is currently not supported in cpu. [type=value_error]",
         Reason.QUANTIZATION_UNSUPPORTED),
        ("RuntimeError: Quantization scheme is not supported for the current GPU. Min capability: 89. Current "
         "capability: 80.", Reason.QUANTIZATION_UNSUPPORTED),
        ("ValueError: There is no module or parameter named 'mtp.fc' in Qwen3_5ForCausalLM. The available parameters",
         Reason.MODEL_WEIGHTS_MISMATCH),
        ("ValueError: Following weights were not initialized from checkpoint: {'lm_head.weight'}",
         Reason.MODEL_WEIGHTS_MISMATCH),
        ("AssertionError: Attempted to load weight (torch.Size([1024])) into parameter (torch.Size([2048]))",
         Reason.MODEL_WEIGHTS_MISMATCH),
        ("KeyError: 'layers.0.mlp.experts.w2_weight_scale_inv'", Reason.MODEL_WEIGHTS_MISMATCH),
        ("TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight "
         "loading for large models. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S). To increase",
         Reason.ENGINE_START_TIMEOUT),
    ],
)  # fmt: skip
def test_ends_with_a_known_cause(line: str, reason: Reason) -> None:
    problem = explain_exit(
        1, ["something", line, "RuntimeError: Engine core initialization failed."], "m", "0.32"
    )
    assert problem.reason is reason
    assert problem.fix is not None
    assert problem.evidence["exit_code"] == 1
    assert "{" not in problem.sentence()


@pytest.mark.parametrize(
    "line",
    [
        "KeyError: 'messages'",
        "INFO 11-21 03:24:17 [cuda.py:470] Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN']",
        "(APIServer pid=1) INFO 11-21 03:25:50 [shm_broadcast.py:109] No available shared memory broadcast block found in "
        "60 seconds. This typically happens when some processes are hanging or doing some time-consuming work "
        "(e.g. compilation, weight/kv cache quantization).",
    ],
)
def test_lines_of_a_start_that_goes_well_explain_nothing(line: str) -> None:
    problem = explain_exit(1, [line], "m", "vLLM 0.32.0")
    assert problem.reason is Reason.ENGINE_CRASHED


def test_the_words_name_what_the_log_named() -> None:
    start = "ValueError: No valid attention backend found for NVIDIA GeForce RTX 2080 Ti with X("
    problem = explain_exit(1, [start], "m", "vLLM 0.32.0")
    assert problem.message == "vLLM 0.32.0 cannot compute the attention of m on NVIDIA GeForce RTX 2080 Ti."
    weights = "ValueError: There is no module or parameter named 'mtp.fc' in Qwen3_5ForCausalLM."
    assert "has no place for: mtp.fc." in explain_exit(1, [weights], "m", "vLLM 0.32.0").message


def test_a_kill_is_most_often_the_memory() -> None:
    assert explain_exit(-signal.SIGKILL, [], "m", "0.32").reason is Reason.OUT_OF_MEMORY
    assert explain_exit(-signal.SIGSEGV, [], "m", "0.32").reason is Reason.ENGINE_CRASHED
    assert explain_exit(None, [], "m", "0.32").message == "vLLM ended."


def test_a_process_of_vllm_that_was_killed_is_named() -> None:
    dead = "(APIServer pid=1) ERROR 11-21 07:13:00 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: "
    core = explain_exit(0, ["INFO: up", dead + "EngineCore encountered an issue."], "m", "0.32")
    assert (core.reason, core.evidence["exit_code"]) == (Reason.ENGINE_CRASHED, 0)
    assert core.message == "vLLM's EngineCore ended without a word, and vLLM with it."
    failed = '(APIServer pid=1) TypeError: can only concatenate str (not "list") to str'
    earlier = explain_exit(0, [failed, dead + "EngineCore encountered an issue."], "m", "0.32")
    assert earlier.message == core.message, "a request that failed before is not why it ended"
    line = (
        "(EngineCore pid=2) ERROR Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down"
    )
    worker = explain_exit(1, [line, dead + "EngineCore encountered an issue."], "m", "0.32")
    assert worker.reason is Reason.OUT_OF_MEMORY
    assert "worker VllmWorker-0" in worker.message
    assert worker.evidence["process_exit_code"] == -9


def test_what_a_process_said_before_it_died_wins() -> None:
    problem = explain_exit(0, ["ValueError: a b", "X.EngineDeadError: EngineCore encountered"], "m", "0.32")
    assert "ValueError: a b" in problem.message


def test_an_error_whose_text_was_withheld_does_not_hide_what_is_known() -> None:
    error = "(EngineCore pid=7) ERROR 11-22 19:19:49 [core.py:1512] RuntimeError: [withheld: 9 bytes]"
    dead = (
        "(EngineCore pid=7) ERROR 11-22 19:19:49 [multiproc_executor.py:315] Worker proc VllmWorker-0 died "
        "unexpectedly (exit code: -9), shutting down executor."
    )
    problem = explain_exit(0, [dead, error], "m", "0.32")
    assert problem.message == "vLLM's worker VllmWorker-0 ended without a word, and vLLM with it."
    alone = explain_exit(1, [error], "m", "0.32")
    assert "RuntimeError (its text may hold a request" in alone.message


@pytest.mark.parametrize("said", ["[withheld: 16 bytes]", "Executor failed."])
@pytest.mark.parametrize("code", ["-9", "None"])
def test_a_worker_that_is_gone_is_named_whatever_the_engine_core_says_of_it(said: str, code: str) -> None:
    """As on two H200s, where a worker that was killed was not yet collected when vLLM asked for its code."""
    head = "(EngineCore pid=7) ERROR 11-27 05:10:20 "
    lines = [
        f"{head}[multiproc_executor.py:316] Worker proc VllmWorker-1 died unexpectedly (exit code: {code}), "
        "shutting down executor.",
        f"{head}[core.py:1512] Traceback (most recent call last):",
        f'{head}[core.py:1512]   File "/opt/vllm/v1/engine/core.py", line 1702, in _handle_client_request',
        f"{head}[core.py:1512] RuntimeError: {said}",
    ]
    problem = explain_exit(0, lines, "m", "0.32")
    assert problem.message == "vLLM's worker VllmWorker-1 ended without a word, and vLLM with it."
    assert "killed it" in problem.cause
    assert problem.reason is (Reason.OUT_OF_MEMORY if code == "-9" else Reason.ENGINE_CRASHED)
    assert problem.evidence.get("process_exit_code") == (-9 if code == "-9" else None)


def test_an_engine_core_that_told_its_error_is_not_said_to_have_ended_without_a_word() -> None:
    # As vLLM 0.32 wrote it: the worker's traceback, that of the engine core, then those of every request.
    head = "(Worker pid=5913) ERROR 11-27 00:49:42 [multiproc_executor.py:1063] "
    lines = [
        f"{head}Traceback (most recent call last):",
        f'{head}  File "/opt/vllm/v1/worker/gpu_worker.py", line 1298, in sample_tokens',
        f"{head}[withheld: 59 bytes]",
        f'{head}  File "/opt/vllm/v1/worker/gpu_model_runner.py", line 3502, in _bookkeeping_sync',
        f"{head}[withheld: 41 bytes]",
        f"{head}RuntimeError: [withheld: 34 bytes]",
        '(EngineCore pid=5359) ERROR 11-27 00:49:42 [core.py:1512]   File "core.py", line 1, in step',
        "(EngineCore pid=5359) ERROR 11-27 00:49:42 [core.py:1512] RuntimeError: [withheld: 115 bytes]",
        "(APIServer pid=4248) ERROR 11-27 00:49:42 [serving.py:929] vllm.v1.engine.exceptions.EngineDeadError: "
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    ]
    problem = explain_exit(0, lines, "m", "0.32")
    assert problem.reason is Reason.ENGINE_CRASHED
    assert problem.message == (
        "vLLM ended with code 0. It said: RuntimeError (its text may hold a request and was not kept) "
        "in _bookkeeping_sync (gpu_model_runner.py, line 3502)"
    )
    assert problem.fix is not None
    assert "memory" not in problem.fix.text


@pytest.mark.parametrize("number", ["1..2", "9" * 400, "1.2.3", "²"])
def test_a_size_that_is_none_ends_nothing(number: str) -> None:
    reader = VllmStageReader()
    reader.feed(f"Model loading took {number} GiB memory")
    assert reader.buffers == {}


@pytest.mark.parametrize("code", [-40, -64, -65, -1000])
def test_a_signal_without_a_name_is_told(code: int) -> None:
    problem = explain_exit(code, [], "m", "v")
    assert problem.reason is Reason.ENGINE_CRASHED
    assert problem.message.startswith("vLLM was ended by ")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "Speculation is on and turboquant-grouped-attention cannot be used: the self-test is off by 3.1e-01 "
            "(turboquant_k8v4, 128, 32/8). vLLM's own TurboQuant kernels answer wrongly with drafts. Switch one "
            "of the two off.",
            "the self-test is off by 3.1e-01 (turboquant_k8v4, 128, 32/8)",
        ),
        (
            "VLLM_BATCH_INVARIANT is set and turboquant-grouped-attention cannot be used: FlashAttention None. "
            "vLLM's own TurboQuant kernels are not batch-invariant. Unset it, or choose another KV type.",
            "FlashAttention None",
        ),
    ],
)
def test_kernels_that_cannot_be_used_end_a_start_with_their_reason(said: str, words: str) -> None:
    lines = [
        f"(EngineCore pid=2) ERROR 11-22 19:42:36 [core.py:1500] RuntimeError: {said}",
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above.",
    ]
    problem = explain_exit(1, lines, "m", "vLLM 0.32.0, CUDA")
    assert problem.reason is Reason.KV_TYPE_UNSUPPORTED
    assert problem.message == f"TurboQuant cannot be used for this start: {words}."
    assert problem.fix is not None
    assert "fp8" in problem.fix.text
