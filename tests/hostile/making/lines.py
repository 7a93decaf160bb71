"""Log lines as nobody should print them: those of both engines with other numbers, names and lengths."""

import re

from hypothesis import strategies as st

from tests.hostile.making.text import HOSTILE, long_words, words

KNOWN = (
    "0.00.022.475 I load_tensors:   CPU_Mapped model buffer size =     1.17 MiB",
    "0.00.022.984 I llama_kv_cache:        CPU KV buffer size =     0.50 MiB",
    "llama_kv_cache: size = 0.50 MiB (  2048 cells,   1 layers,  2/2 seqs), K (q8_0): 0.27 MiB, V (q4_0): 1",
    "llama_kv_cache: attn_rot_k = 1, n_embd_head_k_all = 64",
    "0.00.029.492 I sched_reserve:        CPU compute buffer size =     5.82 MiB",
    "0.00.156.995 I srv  llama_server: listening on unix:///run/e.sock",
    "creating MTP draft context",
    "load_tensors: loading model tensors, this can take a while...",
    'error while handling argument "--ctx-size": stoi',
    "error: invalid argument: --nonsense",
    "gguf_init_from_file: failed to open GGUF file '/a (1).gguf' (No such file or directory)",
    "llama_model_load: error loading model: unknown model architecture: 'new'",
    "couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 80",
    "error loading model vocabulary: unknown tokenizer",
    "(EngineCore pid=2900) INFO 11-21 03:24:50 [kv_cache_utils.py:2327] CPU KV cache size: 465,920 tokens, x",
    "(EngineCore pid=2900) INFO 11-21 03:24:53 [core.py:402] init engine (profile, create) took 2.80 s",
    "INFO 11-21 03:24:50 [gpu_model_runner.py:1] Model loading took 4.20 GiB memory and 1.2 seconds",
    "Available KV cache memory: 1.20 GiB",
    "Graph capturing finished in 3 secs, took 0.30 GiB",
    "INFO 11-21 03:24:17 [cuda.py:470] Using A_B attention backend out of potential backends: ['A_B', 'C'].",
    "--block-size 8 precluded higher-priority backend(s) FLASH_ATTN, A_B. Using TRITON_ATTN instead, x",
    "Cannot use FA version 3 with ALiBi, defaulting to FA version 2.",
    "0.01.158.431 I llama_context: flash_attn            = disabled",
    "W resolve_fused_ops: Flash Attention not supported, set to disabled",
    "Explicitly set (4.00/8.00) GiB for KV cache",
    "Starting to load model /models/x...",
    "Resolved architecture: Qwen3ForCausalLM",
    "(Worker pid=7400) ERROR 11-21 03:42:36 [multiproc_executor.py:1063] TypeError: no",
    "Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.",
    "vllm serve: error: unrecognized arguments: --nonsense",
    "api_server.py: error: argument --dtype: invalid choice: 'x'",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "Model architectures ['NewModel'] are not supported for now.",
    "0.02.269.837 W slot update_slots: id  0 | task 3 | n_past was set to 12",
    "Engine 000: Avg prompt throughput: 1.2 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 1",
    "sampler chain: logits -> penalties -> ?dry -> top-k -> dist",
    "| memory breakdown [MiB] | total free self model context compute unaccounted |",
    "#12 0x00007f2c in ggml_abort () from /lib/libggml.so",
)
_NUMBERS = ("0", "1.2.3", "..", "9" * 20, "9" * 400, "-1", "1e9", "²", "٣", "", "0x10", "NaN", "1,2,3")


def _other_numbers(line: str, numbers: list[str]) -> str:
    left = [*numbers]
    return re.sub(r"[0-9][0-9.,]*", lambda found: left.pop() if left else found[0], line)


_lines = st.sampled_from(KNOWN)
_numbered = st.builds(_other_numbers, _lines, st.lists(st.sampled_from(_NUMBERS), max_size=6))
_joined = st.lists(st.one_of(_lines, words), min_size=1, max_size=6).map("".join)
_cut = st.builds(lambda line, at, word: line[:at] + word + line[at:], _lines, st.integers(0, 120), words)
_repeated = st.builds(
    lambda line, start, length, times: (line[start : start + length] * times)[:300_000],
    _lines,
    st.integers(0, 80),
    st.integers(1, 40),
    st.integers(1, 20_000),
)
lines = st.one_of(_lines, _numbered, _cut, _joined, _repeated, words, long_words).map(
    lambda line: line.replace("\n", " ")
)
"""Lines without their end."""

PIECES = tuple(
    dict.fromkeys(
        [
            *(
                line[start : start + length]
                for line in KNOWN
                for start in (0, 12, 30, 50)
                for length in (1, 7, 24)
                if start < len(line)
            ),
            *(word for word in HOSTILE if 0 < len(word) < 40 and "\n" not in word),
            *(
                "a",
                "a ",
                " ",
                "1",
                "= ",
                "(",
                ")",
                "K (q8_0), V (",
                "error: ",
                "Error: ",
                "'",
                '"',
                "/a.gguf'",
            ),
        ]
    )
)
"""Pieces of which a line may be made that begins a pattern again at every place."""
