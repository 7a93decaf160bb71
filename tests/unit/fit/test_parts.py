"""The parts of a start of vLLM on a GPU: where each is from, and that they lie in their bands."""

from dataclasses import replace
from typing import Any

import pytest

from engine_host.fit.parts import GIB, Basis, Start, fixed_parts
from engine_host.fit.shape import read_shape
from tests.unit.fit.test_kv import HYBRID


def start(**values: Any) -> Start:
    return replace(Start(context=8192, streams=4), **values)


def test_every_part_says_where_it_is_from() -> None:
    parts = {part.name: part for part in fixed_parts(read_shape(HYBRID), start(tp=2, file_bytes=28 * GIB))}
    assert parts["weights"].basis is Basis.FILES
    assert parts["weights"].bytes == 14 * GIB
    assert {"gated-delta prefill", "NCCL", "CUDA graphs", "CUDA context", "activations"} <= set(parts)
    for part in parts.values():
        assert part.low <= part.bytes <= part.high
        assert part.about


def test_the_prefill_of_gated_delta_layers_is_about_what_was_reported() -> None:
    """27B on one card, a step of 4,128 tokens: about 500 MiB."""
    parts = {part.name: part for part in fixed_parts(read_shape(HYBRID), start(batched_tokens=4128))}
    assert parts["gated-delta prefill"].bytes == pytest.approx(500 * 2**20, rel=0.05)
