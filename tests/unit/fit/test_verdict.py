"""Verdicts: their bounds invert each other, and a change that is offered makes it fit."""

from dataclasses import replace
from typing import Any

import pytest

from engine_host.fit.parts import GIB, Basis, Start, fixed_parts
from engine_host.fit.shape import read_shape
from engine_host.fit.verdict import FitReason, Memory, Verdict, fit
from tests.unit.fit.test_kv import DENSE, HYBRID

CARD = Memory(24 * GIB)
LIMIT = 262_144


def start(**values: Any) -> Start:
    return replace(Start(context=8192, streams=4), **values)


def test_a_small_model_fits_a_large_card() -> None:
    found = fit(read_shape(DENSE), start(), Memory(80 * GIB), LIMIT)
    assert (found.verdict, found.reason, found.changes) == (Verdict.FITS, None, ())
    assert found.most_streams >= 4
    assert found.longest >= 8192
    assert found.room_at_worst < found.room


def test_weights_alone_are_too_much() -> None:
    found = fit(read_shape(HYBRID), start(), CARD, LIMIT)
    assert (found.verdict, found.reason) == (Verdict.NO, FitReason.WEIGHTS)
    assert found.most_streams == 0
    assert {change.setting for change in found.changes} <= {"tensor_parallel"}


def test_what_is_asked_lies_between_the_two_bounds() -> None:
    """The longest context at these streams fits, one block more does not; and so with the streams."""
    shape = read_shape(DENSE)
    found = fit(shape, start(), CARD, LIMIT)
    at_edge = fit(shape, start(context=found.longest), CARD, LIMIT)
    assert at_edge.verdict is not Verdict.NO
    assert fit(shape, start(context=found.longest + 16), CARD, LIMIT).verdict is Verdict.NO
    assert fit(shape, start(streams=found.most_streams + 1), CARD, LIMIT).reason is FitReason.STREAMS


@pytest.mark.parametrize("asked", [start(context=32_768, streams=8), start(context=131_072, streams=1)])
def test_every_change_that_is_offered_helps(asked: Start) -> None:
    shape = read_shape(DENSE)
    found = fit(shape, asked, CARD, LIMIT)
    assert found.verdict is Verdict.NO
    assert found.changes
    names = {"tensor_parallel": "tp"}
    for change in found.changes:
        values: dict[str, Any] = {names.get(change.setting, change.setting): change.value}
        changed = replace(asked, **values)
        assert fit(shape, changed, CARD, LIMIT).verdict is not Verdict.NO, change


def test_what_others_hold_is_counted() -> None:
    shape = read_shape(DENSE)
    alone, beside = (fit(shape, start(), replace(CARD, taken=taken), LIMIT) for taken in (0, 6 * GIB))
    assert alone.room - beside.room == alone.budget - beside.budget > 3 * GIB


def test_a_finer_cache_holds_less_and_a_coarser_one_more() -> None:
    shape = read_shape(DENSE)
    kinds = ("auto", "fp8", "turboquant_k8v4", "turboquant_4bit_nc")
    found = [fit(shape, start(kv_cache_dtype=kind), CARD, LIMIT).longest for kind in kinds]
    assert found == sorted(found)
    assert found[1] == pytest.approx(2 * found[0], rel=0.02)
    # Four of the 36 layers stay as they are.
    assert found[2] == pytest.approx(36 * 512 / (32 * 196 + 4 * 512) * found[0], rel=0.02)


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
