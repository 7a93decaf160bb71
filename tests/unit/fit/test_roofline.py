"""Ceilings of speed: bandwidth over what a step reads, and never below what somebody measured."""

from dataclasses import replace

import pytest

from engine_host.fit.roofline import expected, roofline, step_bytes
from tests.unit.fit.test_report import CARD, model, start


def test_the_ceiling_of_decoding_is_bandwidth_over_what_a_step_reads() -> None:
    read, settings = model("dense"), start(context=1)
    found = roofline(read, settings)
    assert found.decode == pytest.approx(936.2e9 / step_bytes(read, settings, 1))
    assert found.prefill is None, "its arithmetic was not given"
    deep = roofline(read, replace(settings, context=32_768, streams=4))
    assert deep.decode is not None
    assert deep.decode_at_depth is not None
    assert deep.decode_at_depth < deep.decode < (found.decode or 0)
    assert (deep.streams, deep.depth) == (4, 32_768)
    assert (deep.all_streams_at_depth or 0) < (deep.decode_all_streams or 0)
    both = roofline(read, replace(settings, devices=(CARD, CARD))).decode
    assert both == pytest.approx(2 * (found.decode or 0), rel=0.01)


def test_drafting_multiplies_by_its_length_and_reads_the_drafting_layers() -> None:
    read, settings = model("hybrid"), start(context=1024)
    plain = roofline(read, settings, 3.0).decode
    drafting = roofline(read, replace(settings, drafting=True), 3.0).decode
    assert plain is not None
    assert drafting is not None
    assert 1.9 * plain < drafting < 3.0 * plain


def test_each_draft_reads_the_output_matrix_or_its_copy_in_8_bits() -> None:
    read, settings = model("hybrid"), start(context=1, drafting=True, draft_tokens=3)
    one = (step_bytes(read, settings, 1) - step_bytes(read, replace(settings, draft_tokens=2), 1)) - (
        read.weights.drafting
    )
    assert one == read.weights.head == 2 * read.shape.vocabulary * read.shape.hidden
    copied = step_bytes(read, replace(settings, eight_bit_head=True), 1)
    assert step_bytes(read, settings, 1) - copied == 3 * read.weights.head // 2
    tied = replace(read, weights=replace(read.weights, head=0))
    own = replace(
        read.weights, drafting=read.weights.drafting + read.weights.head, drafting_tables=read.weights.head
    )
    assert step_bytes(replace(read, weights=own), settings, 1) == step_bytes(read, settings, 1), "not twice"
    without = replace(settings, drafting=False)
    assert (step_bytes(tied, settings, 1) - step_bytes(tied, without, 1)) == (
        step_bytes(read, settings, 1) - step_bytes(read, without, 1)
    )


def test_drafting_raises_the_bound() -> None:
    read, settings = model("hybrid"), start(context=131_072)
    plain, drafting = roofline(read, settings), roofline(read, replace(settings, drafting=True))
    assert (plain.tokens_per_step, drafting.tokens_per_step) == (1, 4)
    assert (plain.decode or 0) < (drafting.decode or 0)
    # It compares starts by what is usually taken, not by the bound.
    assert expected(100, 0) == 100
    assert expected(400, 3) == 250


def test_another_model_that_drafts_raises_it_too() -> None:
    read, settings = model("dense"), start(drafting=True)
    alone, helped = roofline(read, settings), roofline(replace(read, drafter=True), settings)
    assert (alone.tokens_per_step, helped.tokens_per_step) == (1, 4)


def test_a_drafting_layer_of_a_mixture_reads_the_experts_chosen() -> None:
    read = model("mixture")
    read = replace(
        read,
        shape=replace(read.shape, mtp_layers=1),
        weights=replace(read.weights, drafting=read.weights.experts // len(read.shape.layers)),
    )
    settings = start(drafting=True, context=1)
    more = step_bytes(read, settings, 1) - step_bytes(read, replace(settings, drafting=False), 1)
    assert more - 3 * read.weights.head < 3 * 0.25 * read.weights.drafting


def test_a_diffusion_model_has_no_ceiling_that_could_be_said() -> None:
    found = roofline(replace(model("dense"), architecture="DiffusionGemmaForBlockDiffusion"), start())
    assert found.decode is None
    assert "blocks" in found.why


def test_a_mixture_reads_more_experts_with_more_streams() -> None:
    read, settings = model("mixture"), start(context=1)
    one, many = (step_bytes(read, settings, streams) for streams in (1, 64))
    assert one < 0.25 * read.weights.loaded(drafting=False)
    assert 0.9 * read.weights.loaded(drafting=False) < many


def test_an_unknown_bandwidth_is_named() -> None:
    found = roofline(model("dense"), start(devices=(replace(CARD, bandwidth=None),)))
    assert found.decode is None
    assert "card" in found.why
