"""Hostile log lines: what a client sent is echoed by engines, so no line may cost more than it is long."""

import time
from collections.abc import Callable

import pytest

from engine_host.engines.llamacpp.log import LlamaCppStageReader
from engine_host.engines.llamacpp.log import explain_exit as explain_llamacpp
from engine_host.engines.vllm.log import VllmStageReader
from engine_host.engines.vllm.log import explain_exit as explain_vllm

LONG = 256 * 1024
# Each makes another kind of pattern begin again at every place of the line.
PIECES = [
    "a",
    "a ",
    "1",
    "= ",
    "(",
    "\\S+ for ",
    "K (q8_0), V (",
    "Error: ",
    "x::= ",
    "error: argument ",
    "/a.gguf'",
    "No valid attention backend found for ",
    "Timed out waiting for engine core processes to start. ",
    "--block-size 8 precluded higher-priority backend(s) FLASH_ATTN, ",
    "Using FLASH_ATTN attention backend out of potential backends: ['A', ",
    "Cannot use FA ",
    "llama_context: flash_attn = ",
    "sched: layer 1 is assigned to device A but ",
    "a quantization is currently not supported ",
]


def read(line: str) -> None:
    LlamaCppStageReader().feed(line)
    VllmStageReader().feed(line)


def explain(line: str) -> None:
    explain_llamacpp(1, [line], "m", "s")
    explain_vllm(1, [line], "m", "v")


@pytest.mark.parametrize("act", [read, explain])
@pytest.mark.parametrize("piece", PIECES)
def test_a_long_line_costs_no_more_than_a_short_one(act: Callable[[str], None], piece: str) -> None:
    def seconds(line: str) -> float:
        began = time.perf_counter()
        act(line)
        return time.perf_counter() - began

    short, long = piece * (2000 // len(piece)), piece * (LONG // len(piece))
    # The shortest of some: what a busy machine adds is no property of the pattern.
    taken = min(seconds(short) for _ in range(5)), min(seconds(long) for _ in range(5))
    assert taken[1] < 20 * taken[0] + 0.01, taken
