# ruff: noqa: E501 - lines of a log are as long as they are
"""llama-server's log is parsed: stages, buffers, and the reason of its end."""

import pytest

from engine_host.engines.llamacpp import log as llamacpp_log
from engine_host.engines.llamacpp.log import LlamaCppStageReader, explain_exit
from engine_host.protocol.errors import Reason

LOG = """\
0.00.003.998 I srv    load_model: loading model '/m/tiny.gguf'
0.00.020.068 I common_params_fit_impl: projected to use 13 MiB of host memory vs. 24105 MiB
0.00.021.991 I load_tensors: loading model tensors, this can take a while... (load_mode = mmap)
0.00.022.475 I load_tensors:   CPU_Mapped model buffer size =     1.17 MiB
0.00.022.742 I llama_context: constructing llama_context
0.00.022.984 I llama_kv_cache:        CPU KV buffer size =     0.50 MiB
llama_kv_cache: size = 0.50 MiB (  2048 cells,   1 layers,  2/2 seqs), K (q8_0): 0.27 MiB, V (q4_0): 0.2 MiB
0.00.023.148 I llama_kv_cache: attn_rot_k = 1, n_embd_head_k_all = 64
0.00.023.984 I llama_kv_cache:        CPU KV buffer size =     0.25 MiB
0.00.024.984 I llama_memory_recurrent:        CPU RS buffer size =     1.64 MiB
0.00.029.492 I sched_reserve:        CPU compute buffer size =     5.82 MiB
0.00.030.492 I sched_reserve:        CPU compute buffer size =     5.00 MiB
0.00.029.580 I cmn  common_init_: warming up the model with an empty run - please wait ...
0.00.071.500 I common_speculative_init_result: creating MTP draft context against the target model
0.00.071.561 I llama_context: constructing llama_context
0.00.072.276 I llama_kv_cache:        CPU KV buffer size =     1.00 MiB
0.00.156.995 I srv  llama_server: listening on unix:///run/e.sock
""".splitlines()


def test_stages_go_forward_with_the_buffers() -> None:
    reader = LlamaCppStageReader()
    stages_read = [stage for line in LOG if (stage := reader.feed(line))]
    names = list(dict.fromkeys(stage.name for stage in stages_read))
    assert names == ["Weights", "Context and KV", "Warm-up", "Serving"]
    assert [stage.name for stage in stages_read] == sorted(
        (stage.name for stage in stages_read), key=names.index
    )
    mib = 2**20
    assert stages_read[-1].buffers == {
        "CPU_Mapped model": round(1.17 * mib),
        "CPU KV": mib // 2 + mib // 4,  # a sliding-window model has two caches
        "CPU recurrent state": round(1.64 * mib),
        "CPU compute": 5 * mib,  # laid out anew: the last one counts
        "draft CPU KV": mib,
    }
    assert "KV q8_0/q4_0 with rotation, 2048 cells a stream" in {stage.detail for stage in stages_read}


def test_the_newer_words_for_rotation() -> None:
    reader = LlamaCppStageReader()
    reader.feed("llama_kv_cache: n_rot_k = 64, n_embd_head_k_all = 64")
    reader.feed("llama_kv_cache: n_rot_v = 0, n_embd_head_k_all = 64")
    reader.feed("print_info: n_rot                 = 64")
    assert reader.facts == {"K rotated": "yes", "V rotated": "no"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("E gguf_init_from_file: failed to open GGUF file 'x' (No such file)", Reason.MODEL_FILE_MISSING),
        ("E gguf_init_from_reader: invalid magic characters: 'hell', expected 'GGUF'", Reason.NOT_GGUF),
        ("E gguf_init_from_reader: failed to read magic", Reason.NOT_GGUF),
        ("E gguf_init_from_reader: failed to read key-value pairs", Reason.GGUF_TRUNCATED),
        ("E tensor 'x' data is not within the file bounds, model is corrupted", Reason.GGUF_TRUNCATED),
        ("E error loading model: unknown model architecture: 'new'", Reason.MODEL_ARCHITECTURE_UNKNOWN),
        ("E ggml_aligned_malloc: insufficient memory (attempted to allocate 1 MB)", Reason.OUT_OF_MEMORY),
        ("E cudaMalloc failed: out of memory", Reason.OUT_OF_MEMORY),
        ("E srv start: couldn't bind HTTP server socket, hostname: /a.sock, port: 1", Reason.PORT_IN_USE),
        ("error: invalid argument: --bogus", Reason.FLAG_UNSUPPORTED),
        ('error while handling argument "-ctk": Unsupported cache type: turbo4', Reason.KV_TYPE_UNSUPPORTED),
        ('error while handling argument "-c": expected value for argument', Reason.SETTING_INVALID),
        ("E load_model: failed to create MTP context", Reason.SETTING_INVALID),
        ("E error loading model vocabulary: cannot find tokenizer merges", Reason.MODEL_FILE_DAMAGED),
        (
            "E gguf_init_from_file_impl: tensor 'blk.25.ffn_down.weight' has invalid ggml type 42 (NONE)",
            Reason.QUANTIZATION_UNSUPPORTED,
        ),
        (
            "E gguf_init_from_reader: tensor 'blk.0.ffn_down.weight' has invalid ggml type 99. should be in [0, 43)",
            Reason.QUANTIZATION_UNSUPPORTED,
        ),
        ("CUDA error: no kernel image is available for execution on the device", Reason.KERNEL_UNSUPPORTED),
        ("CUDA error: device kernel image is invalid", Reason.KERNEL_UNSUPPORTED),
        ("CUDA error: CUDA driver version is insufficient for CUDA runtime version", Reason.ENGINE_UNUSABLE),
        (
            "E llama_model_load: error loading model: done_getting_tensors: wrong number of tensors; expected "
            "2131, got 720",
            Reason.MODEL_WEIGHTS_MISMATCH,
        ),
        (
            "E llama_model_load: error loading model: missing tensor 'blk.0.attn_q.weight'",
            Reason.MODEL_WEIGHTS_MISMATCH,
        ),
        (
            "x: error while loading shared libraries: libcuda.so.1: cannot open shared object file",
            Reason.ENGINE_UNUSABLE,
        ),
    ],
)
def test_lines_that_explain_an_end(line: str, reason: Reason) -> None:
    problem = explain_exit(1, ["I hello", line, "E exiting due to model loading error"], "m.gguf", "built")
    assert problem.reason is reason
    assert problem.evidence["exit_code"] == 1
    assert problem.evidence["line"] == line
    assert problem.fix is not None
    assert "{" not in problem.sentence()


@pytest.mark.parametrize("code", [-4, 132])
def test_an_illegal_instruction(code: int) -> None:
    problem = explain_exit(code, ["I warming up"], "m.gguf", "built")
    assert problem.reason is Reason.ILLEGAL_INSTRUCTION
    assert problem.evidence["signal"] == "SIGILL"


@pytest.mark.parametrize(
    ("amx", "reason"), [(True, Reason.ILLEGAL_INSTRUCTION), (False, Reason.ENGINE_CRASHED)]
)
def test_a_segmentation_fault_is_amx_where_there_is_amx(
    monkeypatch: pytest.MonkeyPatch, amx: bool, reason: Reason
) -> None:
    monkeypatch.setattr(llamacpp_log, "processor_has_amx", lambda: amx)
    problem = explain_exit(-11, [], "m.gguf", "own")
    assert problem.reason is reason
    assert ("--no-repack" in problem.sentence()) is amx


def test_a_server_that_goes_on_without_its_gpu_ends_for_another_reason() -> None:
    lines = [
        "ggml_cuda_init: failed to initialize CUDA: CUDA driver version is insufficient for CUDA runtime "
        "version",
        "E srv start: couldn't bind HTTP server socket, hostname: /a.sock, port: 1",
    ]
    assert explain_exit(1, lines, "m", "s").reason is Reason.PORT_IN_USE


def test_ends_without_a_word() -> None:
    assert explain_exit(-9, [], "m", "s").reason is Reason.OUT_OF_MEMORY
    assert explain_exit(None, [], "m", "s").reason is Reason.ENGINE_CRASHED
    problem = explain_exit(3, ["0.1 E something odd happened"], "m", "s")
    assert "something odd" in problem.message


def test_an_error_of_the_trial_before_the_load_ended_nothing() -> None:
    trial = [
        "0.00.097 E ggml_aligned_malloc: insufficient memory (attempted to allocate 205.08 MB)",
        "0.00.111 E common_fit_params: encountered an error while trying to fit params to free device memory",
        "0.00.111 I common_fit_params: fitting params to free memory took 0.10 seconds",
    ]
    end = [
        "0.00.204 E ggml_aligned_malloc: insufficient memory (attempted to allocate 2000.00 MB)",
        "0.00.205 E llama_init_from_model: failed to initialize the context",
    ]
    assert "2000.00 MB" in explain_exit(1, trial + end, "m", "s").evidence["line"]
    port = "couldn't bind HTTP server socket, hostname: /x, port: 80"
    assert explain_exit(1, [*trial, port], "m", "s").reason is Reason.PORT_IN_USE
    # Where nothing else is told, it is all that there is.
    assert explain_exit(1, trial, "m", "s").reason is Reason.OUT_OF_MEMORY


def test_a_line_whose_text_was_withheld_explains_nothing() -> None:
    lines = [
        "0.1.1.1 E llama_decode: failed to decode, ret = -3",
        "0.1.1.2 E srv  send_error: [withheld: 9 bytes]",
    ]
    assert "failed to decode" in explain_exit(1, lines, "m", "s").message


@pytest.mark.parametrize("number", ["1.2.3", "..", "9" * 400, "²", "٣", "1e9"])
def test_a_size_that_is_none_ends_nothing(number: str) -> None:
    reader = LlamaCppStageReader()
    reader.feed("load_tensors: loading model tensors")
    assert reader.feed(f"x: CPU KV buffer size = {number} MiB") is None
    assert reader.buffers == {}


def test_a_flood_of_buffers_is_no_machine() -> None:
    reader = LlamaCppStageReader()
    for n in range(1000):
        reader.feed(f"x: GPU{n} KV buffer size = 1.0 MiB")
    assert len(reader.buffers) == 64


def test_a_name_with_brackets_is_no_reason() -> None:
    line = "gguf_init: failed to open GGUF file '/m/a (1) (2).gguf' (No such file or directory)"
    problem = explain_exit(1, [line], "a", "s")
    assert "cannot open a: No such file or directory" in problem.message
