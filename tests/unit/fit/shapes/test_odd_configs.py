"""Configs that say their sizes in forms of their own, and hostile ones: counted right, or refused by name."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.fit.estimate import estimate
from engine_host.fit.shapes.model import Layer, read_shape
from engine_host.fit.shapes.read import model_of_config
from engine_host.fit.shapes.weights import matrices, weights_of
from engine_host.fit.start import Device, Start
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import EngineKind
from tests.unit.fit.test_kv import DENSE

SHAPES = ("gemma-4-e4b", "glm-4.5-air-fp8", "granite-4-h-small", "qwen36-35b-a3b")


def config(hidden: int, layers: int, heads: int, vocabulary: int, **more: Any) -> dict[str, Any]:
    """A config by its main numbers."""
    main = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads}
    return {**main, "vocab_size": vocabulary, **more}


FALCON_7B = config(4544, 32, 71, 65_024, model_type="falcon", multi_query=True, tie_word_embeddings=True)
FALCON_40B = config(
    8192, 60, 128, 65_024, model_type="falcon", new_decoder_architecture=True, num_kv_heads=8,
    ffn_hidden_size=32_768, tie_word_embeddings=True,
)  # fmt: skip
PHI_2 = config(2560, 32, 32, 51_200, model_type="phi", intermediate_size=10_240, num_key_value_heads=None)
STARCODER2_15B = config(
    6144, 40, 48, 49_152, model_type="starcoder2", num_key_value_heads=4, intermediate_size=24_576,
    sliding_window=4096,
)  # fmt: skip
OPT_6_7B = config(4096, 32, 32, 50_272, model_type="opt", ffn_dim=16_384, tie_word_embeddings=True)
EXAONE_4_32B = config(
    5120, 64, 40, 102_400, model_type="exaone4", num_key_value_heads=8, head_dim=128,
    intermediate_size=27_392, sliding_window=4096, sliding_window_pattern="LLLG",
)  # fmt: skip
ERNIE_4_5_21B = config(
    2560, 28, 20, 103_424, model_type="ernie4_5_moe", num_key_value_heads=4, intermediate_size=12_288,
    moe_intermediate_size=1536, moe_num_experts=64, moe_k=6, moe_num_shared_experts=2,
    moe_layer_start_index=1, tie_word_embeddings=True,
)  # fmt: skip
BAMBA_9B = config(
    4096, 32, 32, 128_256, model_type="bamba", num_key_value_heads=8, intermediate_size=14_336,
    attn_layer_indices=[9, 18, 27], mamba_n_heads=128, mamba_d_head=64, mamba_d_state=128,
    mamba_n_groups=1, mamba_d_conv=4,
)  # fmt: skip
GEMMA_3N_E4B = {
    "text_config": config(
        2048, 35, 8, 262_400, model_type="gemma3n_text", num_key_value_heads=2, head_dim=256,
        intermediate_size=[16_384] * 35, num_kv_shared_layers=15, vocab_size_per_layer_input=262_144,
        hidden_size_per_layer_input=256, sliding_window=512, tie_word_embeddings=True,
    )
}  # fmt: skip
INTERN_VL3_8B = {
    "architectures": ["InternVLChatModel"],
    "llm_config": config(
        3584, 28, 28, 151_674, model_type="qwen2", num_key_value_heads=4, intermediate_size=18_944
    ),
}
QWEN_OMNI_7B = {"thinker_config": {"text_config": INTERN_VL3_8B["llm_config"]}}


@pytest.mark.parametrize(
    ("read", "billions", "kv_heads", "head_dim", "full"),
    [
        pytest.param(FALCON_7B, 6.92, 1, 64, 32, id="falcon-7b"),
        pytest.param(FALCON_40B, 41.3, 8, 64, 60, id="falcon-40b"),
        pytest.param(PHI_2, 2.78, 32, 80, 32, id="phi-2"),
        pytest.param(STARCODER2_15B, 15.96, 4, 128, 0, id="starcoder2-15b"),
        pytest.param(OPT_6_7B, 6.66, 32, 128, 32, id="opt-6.7b"),
        pytest.param(EXAONE_4_32B, 32.0, 8, 128, 16, id="exaone-4.0-32b"),
        pytest.param(ERNIE_4_5_21B, 21.83, 4, 128, 28, id="ernie-4.5-21b-a3b"),
        pytest.param(BAMBA_9B, 9.78, 8, 128, 3, id="bamba-9b"),
        pytest.param(INTERN_VL3_8B, 7.6, 4, 128, 28, id="internvl3-8b, its language model"),
        pytest.param(QWEN_OMNI_7B, 7.6, 4, 128, 28, id="qwen2.5-omni-7b, its language model"),
    ],
)
def test_published_numbers_of_weights_and_heads(
    read: dict[str, Any], billions: float, kv_heads: int, head_dim: int, full: int
) -> None:
    shape = read_shape(read)
    assert weights_of(shape).total == pytest.approx(billions * 1e9, rel=0.01)
    assert (shape.kv_heads, shape.head_dim, shape.count(Layer.FULL)) == (kv_heads, head_dim, full)
    counted = sum(one.weights for one in matrices(shape))
    assert counted == pytest.approx(weights_of(shape).total - weights_of(shape).embedding, rel=0.01)


def test_one_number_for_each_layer_is_a_number_where_all_are_alike() -> None:
    shape = read_shape(GEMMA_3N_E4B)
    assert (shape.feed_forward, shape.shared_kv) == (16_384, 15)
    assert shape.cached(Layer.FULL) + shape.cached(Layer.SLIDING) == 20
    with pytest.raises(HostError, match="intermediate_size"):
        read_shape({**DENSE, "intermediate_size": [8192, 16_384]})


@pytest.mark.parametrize(
    ("change", "key"),
    [
        pytest.param({"attn_layer_period": 8, "attn_layer_offset": 4}, "attn_layer_period", id="jamba"),
        pytest.param({"linear_attn_config": {"kda_layers": [1]}}, "linear_attn_config", id="kimi-linear"),
        pytest.param(
            {"block_configs": [{}], "num_key_value_heads": None}, "block_configs", id="nemotron-nas"
        ),
        pytest.param({"block_types": ["recurrent", "attention"]}, "block_types", id="recurrentgemma"),
        pytest.param({"full_attn_idxs": [2, 5]}, "full_attn_idxs", id="lfm2"),
        pytest.param({"layer_types": ["conv"] * 36}, "layer_types", id="lfm2, newer"),
        pytest.param({"attn_type_list": [0] * 7 + [1]}, "attn_type_list", id="minimax-text-01"),
        pytest.param({"mamba_d_state": 256, "mamba_n_heads": 24}, "mamba_d_state", id="falcon-h1"),
        pytest.param({"hybrid_override_pattern": "M-M*"}, "hybrid_override_pattern", id="nemotron-h"),
        pytest.param({"cross_attention_layers": [3, 8]}, "cross_attention_layers", id="llama-3.2-vision"),
        pytest.param({"is_encoder_decoder": True}, "is_encoder_decoder", id="t5"),
        pytest.param(
            {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_topk": 2048},
            "index_topk",
            id="deepseek-v3.2",
        ),
        pytest.param({"use_cla": True, "cla_share_factor": 2}, "use_cla", id="hunyuan-large"),
        pytest.param({"ffn_experts": 16}, "ffn_experts", id="another word for a mixture"),
        pytest.param({"num_key_value_heads": [4, 8] * 18}, "num_key_value_heads", id="openelm"),
        pytest.param({"num_key_value_heads": 0}, "num_key_value_heads", id="no heads"),
        pytest.param({"num_key_value_heads": 64}, "num_key_value_heads", id="more than queries have"),
        pytest.param({"head_dim": "128"}, "head_dim", id="a word"),
        pytest.param({"head_dim": None, "hidden_size": 8}, "head_dim", id="nothing to divide"),
        pytest.param({"num_hidden_layers": 1e30}, "num_hidden_layers", id="1e30 layers"),
        pytest.param({"num_attention_heads": -3}, "num_attention_heads", id="negative"),
        pytest.param({"num_kv_shared_layers": 36}, "num_kv_shared_layers", id="nobody keeps a cache"),
        pytest.param(
            {"text_config": {"text_config": {"text_config": {}}}}, "text_config", id="in one another"
        ),
    ],
)
def test_what_is_said_in_an_unknown_form_is_refused_and_named(change: dict[str, Any], key: str) -> None:
    with pytest.raises(HostError) as caught:
        read_shape({**DENSE, **change})
    assert caught.value.reason is Reason.UNSUPPORTED
    assert caught.value.problem.evidence == {"key": key}


def test_without_a_feed_forward_part_the_cache_is_known_and_the_weights_are_not() -> None:
    silent = {**DENSE, "intermediate_size": None}
    assert read_shape(silent).layers == read_shape(DENSE).layers
    with pytest.raises(HostError, match="intermediate_size"):
        model_of_config(silent, "silent")


def test_a_word_for_none_is_none() -> None:
    for nothing in (None, False, 0, -1):
        assert read_shape({**DENSE, "sliding_window": nothing, "num_experts": nothing}) == read_shape(DENSE)
    assert read_shape({**DENSE, "head_dim": 128.0, "attn_type_list": [1] * 36}) == read_shape(DENSE)


@pytest.mark.parametrize("name", SHAPES)
def test_no_value_in_a_config_crashes_an_estimate(name: str) -> None:
    """Each value in turn is replaced; what comes out is an estimate or a sentence."""
    whole = json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8"))
    start = Start(EngineKind.VLLM, (Device("GPU", 24 << 30),), cpu=False, context=8192)
    for place in filter(lambda one: isinstance(one, dict), (whole, whole.get("text_config"))):
        for key, good in list(place.items()):
            bad: Any
            for bad in (-7, "x", 1e30, float("nan"), [1, 2], {}, None, 1 << 32):
                place[key] = bad
                # An estimate, or a problem in words.
                with suppress(HostError):
                    estimate(model_of_config(whole, "hostile"), start)
            place[key] = good
