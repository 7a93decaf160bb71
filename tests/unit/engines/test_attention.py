# ruff: noqa: E501 - lines of a log are as long as they are
"""How an engine computes attention, read off the lines of its start: real ones, and those that pretend."""

import pytest

from engine_host.engines.llamacpp.log import LlamaCppStageReader
from engine_host.engines.vllm.log import VllmStageReader
from engine_host.protocol.engines import Attention

WORKER = "(Worker pid=22556) INFO 11-27 21:33:21 "
# Of vLLM 0.32 for processors, started with --attention-backend=TRITON_ATTN.
ON_CPU = WORKER + "[cpu.py:178] Cannot use AttentionBackendEnum.TRITON_ATTN backend on CPU."
# Of vLLM on an RTX 3090.
CHOSEN = "INFO 11-21 03:24:17 [cuda.py:470] Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'FLASHINFER', 'TRITON_ATTN', 'FLEX_ATTENTION']."
# As vllm/platforms/cuda.py and v1/attention/backends/fa_utils.py of vLLM 0.32 write them.
PRECLUDED = "WARNING 11-21 03:24:17 [cuda.py:491] --block-size 8 precluded higher-priority backend(s) FLASH_ATTN, FLASHINFER. Using TRITON_ATTN instead, which may result in reduced performance. Consider removing --block-size to auto-select the optimal block size."
ASKED = WORKER + "[cuda.py:445] Using AttentionBackendEnum.FLASHINFER backend."
OLDER = (
    "WARNING 11-21 03:24:18 [fa_utils.py:140] Cannot use FA version 3 with ALiBi, defaulting to FA version 2."
)
TEXT = 'INFO 11-21 03:24:17 [config.py:1] Resolved architecture: Qwen3 "Using FLEX_ATTENTION attention backend out of potential backends: []."'
SERVING = "(APIServer pid=1) INFO 11-21 03:24:17 [api_server.py:1] Starting vLLM server on unix:/run/e.sock"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([ON_CPU], {"backend": "CPU_ATTN", "passed_over": ("TRITON_ATTN",), "asked": True}),
        ([CHOSEN], {"backend": "FLASH_ATTN", "others": ("FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION")}),
        (
            [PRECLUDED, CHOSEN.replace("FLASH_ATTN'", "X'").replace("FLASH_ATTN ", "TRITON_ATTN ")],
            {"backend": "TRITON_ATTN", "passed_over": ("FLASH_ATTN", "FLASHINFER")},
        ),
        ([ASKED], {"backend": "FLASHINFER", "asked": True, "why": ""}),
        ([ASKED.replace("[cuda.py:445]", "[cpu.py:163]")], {}),
        ([OLDER, CHOSEN], {"backend": "FLASH_ATTN", "asked": False}),
        ([CHOSEN, ASKED, ON_CPU], {"backend": "FLASH_ATTN", "asked": False, "passed_over": ()}),
        ([TEXT], {}),
        ([SERVING, CHOSEN, PRECLUDED, OLDER], {}),
        (["Using A backend.", "Using a_b attention backend out of potential backends: [x].", "backend"], {}),
        ([CHOSEN.replace("'FLASHINFER'", "'" + "A" * 500 + "'")], {}),
    ],
)  # fmt: skip
def test_of_vllm(lines: list[str], told: dict[str, object]) -> None:
    reader = VllmStageReader()
    for line in lines:
        reader.feed(line)
    known = reader.attention
    if not told:
        assert known == Attention()
    assert {name: getattr(known, name) for name in told} == told


def test_the_line_that_tells_why_is_kept_without_its_time() -> None:
    reader = VllmStageReader()
    reader.feed(OLDER)
    assert reader.attention.why == "Cannot use FA version 3 with ALiBi, defaulting to FA version 2."
    reader.feed(PRECLUDED)
    assert reader.attention.why.startswith("--block-size 8 precluded")


# Of llama.cpp build 11549, and of a build from 2025 ("was auto").
LOADS = "0.01.112.852 I load_tensors: loading model tensors, this can take a while... (load_mode = mmap)"
SAYS = "0.01.158.431 I llama_context: flash_attn            = "
IS = "0.01.386.483 I resolve_fused_ops: Flash Attention "
ELSEWHERE = "0.01.386.400 W resolve_fused_ops: layer 0 is assigned to device CUDA0 but Flash Attention is assigned to device CPU (usually due to missing support)"
DELTA = "0.01.386.500 W resolve_fused_ops: fused Gated Delta Net (chunked) not supported, set to disabled"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([SAYS + "auto", IS + "enabled"], Attention(backend="flash attention")),
        ([SAYS + "enabled"], Attention(backend="flash attention", asked=True)),
        ([SAYS + "disabled"], Attention(backend="no flash attention", asked=True)),
        (
            [SAYS + "auto", ELSEWHERE, IS + "not supported, set to disabled"],
            Attention(backend="no flash attention", passed_over=("Flash Attention",), why=ELSEWHERE),
        ),
        (
            [SAYS + "auto", IS + "enabled", DELTA, DELTA],
            Attention(backend="flash attention", passed_over=("fused Gated Delta Net (chunked)",)),
        ),
        (["I llama_context: Flash Attention was auto, set to disabled"], Attention()),
        (
            ["sched_reserve: Flash Attention was auto, set to disabled"],
            Attention(backend="no flash attention", passed_over=("Flash Attention",)),
        ),
        (
            [SAYS + "auto", IS + "enabled", "I loading draft model", SAYS + "disabled"],
            Attention(backend="flash attention"),
        ),
        (["0.00.156.995 I srv  llama_server: listening on unix:///e.sock", SAYS + "disabled"], Attention()),
        (["I llama_model_loader: - kv 2: general.name str = " + SAYS + "disabled"], Attention()),
        ([SAYS + "disabled" * 99], Attention()),
    ],
)  # fmt: skip
def test_of_llamacpp(lines: list[str], told: Attention) -> None:
    reader = LlamaCppStageReader()
    for line in lines:
        reader.feed(line)
    assert reader.attention == told
