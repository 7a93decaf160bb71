"""KV bytes against figures that vLLM itself logged, and against published ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.core.package_data import resources
from engine_host.fit.kv import heads_on_gpu, slot_bytes, state_bytes, token_bytes
from engine_host.fit.pool import Pool, vllm_pool
from engine_host.fit.shapes.model import Layer, ModelShape, read_shape
from engine_host.protocol.errors import Reason

GIB = 2**30
DEMO = Path(__file__).parents[3] / "resources" / "models" / "sndr-demo"
SHAPES = Path(__file__).parent / "shapes"
DENSE: dict[str, Any] = {
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
    "intermediate_size": 12_288,
    "dtype": "bfloat16",
}
# Qwen3.6-27B, as its config says.
HYBRID: dict[str, Any] = {
    "num_hidden_layers": 64,
    "hidden_size": 5120,
    "num_attention_heads": 24,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 248_320,
    "intermediate_size": 17_408,
    "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 48,
    "mamba_ssm_dtype": "float32",
    "mtp_num_hidden_layers": 1,
    "dtype": "bfloat16",
}


def groups(pool: Pool, kind: Layer) -> int:
    """Return the number of groups of one kind of layer."""
    found = pool.of(kind)
    return 0 if found is None else found.count


def block_of(pool: Pool, kind: Layer) -> int | None:
    """The tokens of a block of one kind of layer."""
    found = pool.of(kind)
    return None if found is None else found.block_tokens


def demo() -> ModelShape:
    folder = resources() / "models" / "sndr-demo"
    return read_shape(json.loads((folder / "config.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize(("context", "logged"), [(2048, 266_240), (8192, 496_981), (1024, 169_425)])
def test_the_size_that_vllm_logged_on_the_cpu(context: int, logged: int) -> None:
    """vLLM 0.32.0, the demo model, 1 GiB, MTP with 3 drafts: "CPU KV cache size: … tokens"."""
    pool = vllm_pool(demo(), "auto", build="cpu", draft_tokens=3, mtp=True)
    assert pool.block_tokens == 384, "logged: Setting attention block size to 384 tokens"
    assert pool.tokens(GIB, context) == logged


def test_a_state_is_padded_to_the_page() -> None:
    pool = vllm_pool(demo(), "auto", build="cpu", draft_tokens=3, mtp=True)
    state = state_bytes(demo(), draft_tokens=3)
    assert f"{100 * (pool.page_bytes / state - 1):.2f}" == "37.14", (
        "logged: Padding mamba page size by 37.14%"
    )


@pytest.mark.parametrize(
    ("kv_cache_dtype", "head_128", "head_256"),
    [("auto", 512, 1024), ("fp8", 256, 512), ("turboquant_k8v4", 196, 388), ("turboquant_4bit_nc", 134, 262)],
)
def test_slots_have_their_real_size(kv_cache_dtype: str, head_128: int, head_256: int) -> None:
    assert slot_bytes(read_shape(DENSE), kv_cache_dtype) == head_128
    assert slot_bytes(read_shape({**DENSE, "head_dim": 256}), kv_cache_dtype) == head_256


def test_a_hybrid_keeps_tokens_in_its_attention_layers_alone() -> None:
    shape = read_shape(HYBRID)
    assert (shape.count(Layer.FULL), shape.count(Layer.GATED_DELTA)) == (16, 48)
    assert 16 * token_bytes(shape, "auto") == 65_536
    assert 16 * token_bytes(shape, "fp8") == 32_768
    assert 16 * token_bytes(shape, "turboquant_k8v4") == 16 * 4 * 388


def test_heads_are_kept_several_times_when_there_are_more_gpus() -> None:
    shape = read_shape({**DENSE, "num_key_value_heads": 2})
    assert [heads_on_gpu(shape, tp) for tp in (1, 2, 4, 8)] == [2, 1, 1, 1]
    assert token_bytes(shape, "auto", tp=8) == 512


def test_latent_attention_keeps_one_vector_for_all_heads() -> None:
    shape = read_shape({**DENSE, "kv_lora_rank": 512, "qk_rope_head_dim": 64})
    assert token_bytes(shape, "auto") == token_bytes(shape, "auto", tp=8) == 1152


def test_a_window_bounds_what_its_layers_keep() -> None:
    """Five of six layers with a window of 1024, as in Gemma 3."""
    kinds = (["sliding_attention"] * 5 + ["full_attention"]) * 6
    shape = read_shape({**DENSE, "layer_types": kinds, "sliding_window": 1024})
    pool = vllm_pool(shape, "auto", batched_tokens=2048)
    assert (pool.layers, groups(pool, Layer.FULL), groups(pool, Layer.SLIDING)) == (6, 1, 5)
    assert pool.stream_blocks(131_072) == 8192 + 5 * (320 + 1)
    assert pool.stream_blocks(16) == 1 + 5 * 2


def test_gemma_3_as_an_h200_had_it() -> None:
    """27B, whose config lists no layers: 60,330 blocks of 131,072-byte pages, and the tokens vLLM logged."""
    shape = read_shape(json.loads((SHAPES / "gemma-3-27b.json").read_text()))
    pool = vllm_pool(shape, "auto", batched_tokens=8192)
    assert (pool.layers, groups(pool, Layer.FULL), groups(pool, Layer.SLIDING)) == (10, 1, 6)
    assert pool.page_bytes == 131_072
    assert pool.tokens(60_330 * pool.block_bytes, 65_536) == 371_946


GEMMA_4 = {
    **DENSE,
    "num_hidden_layers": 60,
    "num_attention_heads": 32,
    "num_key_value_heads": 16,
    "num_global_key_value_heads": 4,
    "head_dim": 256,
    "global_head_dim": 512,
    "attention_k_eq_v": True,
    "sliding_window": 1024,
    "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 10,
}


def test_full_layers_may_have_fewer_and_wider_heads_than_those_with_a_window() -> None:
    """Gemma 4 31B: 4 heads of 512 keep every token, 16 of 256 the newest 1,024."""
    shape = read_shape(GEMMA_4)
    assert token_bytes(shape.full, "auto") == 4 * 512 * 2 * 2
    assert token_bytes(shape, "auto") == 16 * 256 * 2 * 2
    pool = vllm_pool(shape, "auto", batched_tokens=2048)
    assert (pool.block_tokens, block_of(pool, Layer.SLIDING)) == (32, 16), "pages of one size"
    assert pool.page_bytes == 16 * token_bytes(shape, "auto") == 32 * token_bytes(shape.full, "auto")
    assert (pool.layers, groups(pool, Layer.FULL), groups(pool, Layer.SLIDING)) == (10, 1, 5)
    assert pool.stream_blocks(131_072) == 4096 + 5 * (320 + 1)


def test_more_gpus_than_global_heads_keep_them_several_times() -> None:
    shape = read_shape({**GEMMA_4, "num_global_key_value_heads": 1})
    assert token_bytes(shape.full, "auto", tp=2) == token_bytes(shape.full, "auto")
    assert token_bytes(shape, "auto", tp=2) == token_bytes(shape, "auto") // 2


def test_a_page_that_does_not_divide_the_larger_one_is_padded() -> None:
    shape = read_shape({**GEMMA_4, "num_key_value_heads": 6, "num_global_key_value_heads": 2})
    pool = vllm_pool(shape, "auto")
    assert (pool.block_tokens, block_of(pool, Layer.SLIDING)) == (16, 16)
    assert pool.page_bytes == 16 * token_bytes(shape, "auto")


def test_wider_full_layers_make_the_windows_blocks_grow() -> None:
    shape = read_shape({**GEMMA_4, "num_key_value_heads": 4, "attention_k_eq_v": False, "head_dim": 128})
    assert shape.full.kv_heads == 4, "without shared keys the heads are as many"
    pool = vllm_pool(shape, "auto")
    assert (pool.block_tokens, block_of(pool, Layer.SLIDING)) == (16, 64)


def test_without_windows_every_layer_is_alike() -> None:
    shape = read_shape({**DENSE, "global_head_dim": 512, "num_global_key_value_heads": 1})
    assert shape.full is shape


def test_groups_are_filled_up_when_the_kinds_are_about_as_many() -> None:
    """12 windowed layers and 13 full ones: two groups of 13, as vLLM's own comment says of gpt-oss."""
    kinds = ["sliding_attention", "full_attention"] * 12 + ["full_attention"]
    shape = read_shape({**DENSE, "num_hidden_layers": 25, "layer_types": kinds, "sliding_window": 128})
    pool = vllm_pool(shape, "auto")
    assert (pool.layers, groups(pool, Layer.FULL), groups(pool, Layer.SLIDING)) == (13, 1, 1)


def test_streams_and_context_invert_each_other() -> None:
    pool = vllm_pool(read_shape(HYBRID), "turboquant_k8v4", draft_tokens=3, mtp=True)
    size = 20 * GIB
    for streams in (1, 3, 16):
        longest = pool.longest(size, streams, 1_000_000)
        assert pool.streams(size, longest) >= streams
        assert pool.stream_blocks(longest + 1) * streams > pool.blocks(size)
    assert pool.longest(size, 1, 262_144) == 262_144
    assert pool.longest(0, 1, 262_144) == 0


@pytest.mark.parametrize("kind", ["auto", "fp8", "turboquant_k8v4"])
def test_a_drafting_layer_keeps_as_much_as_any_other(kind: str) -> None:
    """vLLM gives it the model's KV type; TurboQuant spares the model's own ends alone, and no hybrid's."""
    dense = read_shape({**DENSE, "num_nextn_predict_layers": 1})
    alone, drafting = (vllm_pool(dense, kind, mtp=mtp) for mtp in (False, True))
    assert drafting.block_bytes - alone.block_bytes == alone.block_tokens * token_bytes(dense, kind)
    hybrid = read_shape(HYBRID)
    alone, drafting = (vllm_pool(hybrid, kind, mtp=mtp) for mtp in (False, True))
    assert (alone.layers, groups(alone, Layer.FULL)) == (16, 1)
    assert (drafting.layers, groups(drafting, Layer.FULL), len(drafting.pages)) == (17, 1, 1)


def test_spared_layers_as_an_h200_had_them() -> None:
    """MiMo 7B with its MTP layer in 112.73 GiB: tokens that vLLM 0.26 logged, without the patch and with."""
    shape = read_shape(json.loads((SHAPES / "mimo-7b.json").read_text()))
    for spared, context, logged in ((True, 33_092, 1_775_210), (False, 33_092, 2_085_648)):
        pool = vllm_pool(shape, "turboquant_k8v4", draft_tokens=3, mtp=True, spared_layers=spared)
        assert pool.tokens(int(112.73 * GIB), context) == pytest.approx(logged, rel=1e-4)
        assert pool.block_tokens == (32 if spared else 16)


def test_grouped_kernels_have_larger_blocks() -> None:
    """The bundled hybrid with MTP 3 on an H100 and an H200: tokens that were predicted for blocks of 16 at
    least, and those that vLLM 0.32 made with the kernels' 64 (docs/proof.md)."""
    shape = read_shape(json.loads((DEMO / "config.json").read_text()))
    usual, grouped = (
        vllm_pool(shape, "turboquant_k8v4", draft_tokens=3, mtp=True, grouped_attention=on)
        for on in (False, True)
    )
    assert (usual.block_tokens, grouped.block_tokens) == (720, 768)
    assert usual.stream_blocks(4096) == grouped.stream_blocks(4096)
    for predicted, made in ((51_295_963, 48_062_464), (90_985_910, 85_270_235)):
        assert predicted * usual.block_bytes / grouped.block_bytes == pytest.approx(made, rel=1e-3)
    plain = vllm_pool(shape, "fp8", draft_tokens=3, mtp=True, grouped_attention=True)
    assert plain == vllm_pool(shape, "fp8", draft_tokens=3, mtp=True)


def test_prefix_caching_keeps_one_more_state() -> None:
    shape = read_shape(HYBRID)
    without, with_it = (vllm_pool(shape, "auto", prefix_caching=on) for on in (False, True))
    states = [found.of(Layer.GATED_DELTA) for found in (without, with_it)]
    assert [group.blocks(8192) for group in states if group] == [3, 6]


@pytest.mark.parametrize(
    "missing", ["num_hidden_layers", "hidden_size", "vocab_size", "linear_num_value_heads"]
)
def test_what_the_config_does_not_say_is_not_guessed(missing: str) -> None:
    config = {name: value for name, value in HYBRID.items() if name != missing}
    with pytest.raises(HostError, match=missing) as caught:
        read_shape(config)
    assert caught.value.reason is Reason.UNSUPPORTED
    assert caught.value.problem.evidence == {"key": missing}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"layer_types": ["mystery"] * 36}, "mystery"),
        ({"layer_types": ["full_attention"]}, "there are 36"),
        ({"layer_types": ["sliding_attention"] * 36}, "window"),
    ],
)
def test_layers_that_are_not_known_are_named(change: dict[str, Any], word: str) -> None:
    with pytest.raises(HostError, match=word):
        read_shape({**DENSE, **change})


def test_an_unknown_kv_type_is_refused() -> None:
    with pytest.raises(HostError, match="nvfp4"):
        slot_bytes(read_shape(DENSE), "nvfp4")


def test_a_model_that_sees_keeps_its_language_model_one_level_down() -> None:
    assert read_shape({"architectures": ["X"], "text_config": DENSE}) == read_shape(DENSE)
