"""The parts of a start of vLLM on a GPU: where each is from, and that they lie in their bands."""

from dataclasses import replace
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.fit import vllm
from engine_host.fit.estimate import estimate
from engine_host.fit.parts import DRAFT_HEAD, GIB, Basis, Part, Start, fixed_parts, is_before, step_width
from engine_host.fit.shapes.model import Layer, read_shape
from engine_host.protocol.errors import Reason
from tests.unit.fit import test_report
from tests.unit.fit.test_kv import DENSE, HYBRID


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


def test_a_copy_of_the_output_matrix_takes_a_byte_a_number() -> None:
    """As an H200 had it: 1.19 GiB of 248,320 x 5,120 numbers."""
    shape = read_shape(HYBRID)
    (copy,) = (
        one for one in fixed_parts(shape, start(mtp=True, eight_bit_head=True)) if one.name == DRAFT_HEAD
    )
    assert copy.bytes == shape.vocabulary * (shape.hidden + 4) == copy.low == copy.high
    assert round(copy.bytes / GIB, 2) == 1.19
    halved = fixed_parts(shape, start(mtp=True, eight_bit_head=True, tp=2))
    assert part(halved, DRAFT_HEAD).bytes == copy.bytes // 2
    for settings in (start(mtp=True), start(eight_bit_head=True)):
        assert DRAFT_HEAD not in {one.name for one in fixed_parts(shape, settings)}


def test_the_prefill_of_gated_delta_layers_is_about_what_was_reported() -> None:
    """27B on one card, a step of 4,128 tokens: about 500 MiB."""
    parts = {part.name: part for part in fixed_parts(read_shape(HYBRID), start(batched_tokens=4128))}
    assert parts["gated-delta prefill"].bytes == pytest.approx(500 * 2**20, rel=0.05)


@pytest.mark.parametrize(
    ("kept", "settings"),
    [
        (True, {}),
        (True, {"kv_cache_dtype": "fp8"}),
        (True, {"kv_cache_dtype": "turboquant_k8v4"}),
        (True, {"kv_cache_dtype": "turboquant_4bit_nc"}),
        (False, {"kv_cache_dtype": "turboquant_k3v4_nc"}),
        (False, {"version": "0.26.0"}),
        (False, {"build": "cpu"}),
        (False, {"prefix_caching": False}),
    ],
)
def test_a_hybrid_that_drafts_keeps_states_where_hits_were_compared(
    kept: bool, settings: dict[str, Any]
) -> None:
    """The patch hybrid-speculation-prefix-cache decides; each stream then has one state more."""
    shape = read_shape(HYBRID)
    drafting = start(draft_tokens=3, mtp=True, **settings)
    states = drafting.pool(shape).of(Layer.GATED_DELTA)
    assert states is not None
    assert states.blocks(8192) == states.count * (5 if kept else 4)


def part(found: tuple[Part, ...], name: str) -> Part:
    return next(one for one in found if one.name == name)


def test_the_cache_is_what_is_left_of_vllms_share() -> None:
    """Nothing that lies beyond the share makes the cache smaller, as long as it is free."""
    read, settings = test_report.model("hybrid"), test_report.start()
    found = estimate(read, settings)
    inside = sum(part.bytes for part in found.parts if not part.beyond)
    assert found.kv_budget == vllm.share(test_report.CARD, settings) - inside
    assert {part.name for part in found.parts if part.beyond} == {"CUDA context", "gated-delta prefill"}
    # With all of the GPU as its share there is no room beyond it.
    whole = estimate(read, replace(settings, gpu_memory=1.0))
    assert whole.budget == test_report.CARD.total
    assert whole.kv_budget == whole.budget - sum(part.bytes for part in whole.parts)


@pytest.mark.parametrize(
    ("config", "version", "beyond"),
    [(DENSE, "0.26.0", True), (HYBRID, "0.26.0", False), (DENSE, "0.32.0", False), (HYBRID, "0.32.0", False)],
)
def test_graphs_come_off_the_share_where_they_are_foreseen(
    config: dict[str, Any], version: str, beyond: bool
) -> None:
    found = fixed_parts(read_shape(config), start(version=version))
    assert part(found, "CUDA graphs").beyond is beyond
    assert ("stream buffers" in {one.name for one in found}) is not (config is HYBRID and version == "0.26.0")


def test_versions_are_compared_by_their_numbers() -> None:
    assert is_before("0.26.0", (0, 32))
    assert is_before("0.9.1", (0, 32))
    assert not is_before("0.32.0+cpu", (0, 32))
    assert not is_before("1.0", (0, 32))
    assert not is_before("nightly", (0, 32))


def test_a_step_is_as_wide_as_its_widest_layer_and_shared_among_gpus() -> None:
    shape = read_shape(DENSE)
    assert step_width(shape) == 4 * 4096 + 3 * 12_288
    assert step_width(shape, tp=2) == 4 * 4096 + 3 * 6144
    logits = replace(start(), streams=1024, batched_tokens=1024, eager=True)
    few = replace(logits, streams=1)
    wide, narrow = (part(fixed_parts(shape, one), "activations") for one in (logits, few))
    assert wide.bytes > narrow.bytes, "so many streams have more logits than a step has values"


def test_one_stream_is_no_streams() -> None:
    notes = [part.about for part in fixed_parts(read_shape(HYBRID), start(streams=1))]
    assert "a step of 2,048 tokens, logits of 1 stream" in notes


def test_who_answers_with_vectors_has_neither_scores_nor_their_buffers() -> None:
    """vLLM 0.32: PoolingRunner in place of the sampler, and no output matrix (adapters.py)."""
    shape = read_shape(DENSE)
    writes = start(streams=256, batched_tokens=512, eager=True)
    pools = replace(writes, embeddings=True)
    assert "stream buffers" in {one.name for one in fixed_parts(shape, writes)}
    found = fixed_parts(shape, pools)
    assert "stream buffers" not in {one.name for one in found}
    assert part(found, "activations").bytes < part(fixed_parts(shape, writes), "activations").bytes
    assert "vectors of 256 streams" in part(found, "activations").about


def test_one_batch_is_in_flight_where_nothing_is_written() -> None:
    """Asynchronous scheduling is off for pooling models, so that a window keeps less."""
    shape = read_shape({**DENSE, "sliding_window": 4096, "use_sliding_window": True, "model_type": "mistral"})
    writes = start(context=32_768, batched_tokens=8192)
    reach = [one.pool(shape).groups[0].reach or 0 for one in (writes, replace(writes, embeddings=True))]
    assert reach[0] - reach[1] == 8192


def test_the_output_matrix_is_left_out_of_the_weights() -> None:
    model = test_report.model("dense")
    assert model.weights.head
    launch = test_report.start()
    written, pooled = (vllm.loaded_weights(model, replace(launch, embeddings=one)) for one in (False, True))
    assert written - pooled == model.weights.head


@pytest.mark.parametrize(
    ("architecture", "arguments", "pools"),
    [
        ("Qwen3ForCausalLM", (), False),
        ("Qwen3ForCausalLM", ("--runner", "pooling"), True),
        ("Qwen3ForCausalLM", ("--runner=pooling", "--convert=embed"), True),
        ("Qwen3ForSequenceClassification", (), True),
        ("Qwen3ForSequenceClassification", ("--runner", "generate"), False),
        ("Qwen2Model", (), True),
        ("GPT2LMHeadModel", (), False),
        ("", (), False),
    ],
)
def test_who_pools_by_argument_or_name(architecture: str, arguments: tuple[str, ...], pools: bool) -> None:
    model = replace(test_report.model("dense"), architecture=architecture)
    assert vllm.pools(model, arguments) is pools


def test_a_decoder_that_pools_keeps_a_cache_like_any_other() -> None:
    """vLLM 0.32 on the processor, 1 GiB: 349,440 tokens, with chunked prefill and prefix caching on."""
    config = {
        "hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 6, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 8192, "model_type": "qwen3",
    }  # fmt: skip
    pools = start(context=8192, embeddings=True, build="cpu")
    assert pools.pool(read_shape(config)).tokens(GIB, 8192) == 349_440


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"architectures": ["BertModel"]}, "architectures"),
        ({"architectures": ["XLMRobertaForSequenceClassification"]}, "architectures"),
        ({"architectures": ["LlamaBidirectionalModel"]}, "architectures"),
        ({"is_causal": False}, "is_causal"),
        ({"use_bidirectional_attention": True}, "use_bidirectional_attention"),
    ],
)
def test_models_that_read_a_text_at_once_are_not_predicted(more: dict[str, Any], key: str) -> None:
    with pytest.raises(HostError, match="not predicted yet") as caught:
        read_shape({**DENSE, **more})
    assert (caught.value.reason, caught.value.problem.evidence["key"]) == (Reason.UNSUPPORTED, key)
