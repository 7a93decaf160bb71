"""Weights of a config.json with `quantization_config` and no files, in the forms that publishers write."""

import time
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.fit.shapes.quantization import read_quantization
from engine_host.fit.shapes.read import model_of_config
from engine_host.fit.shapes.weights import matrices, weights_of
from engine_host.protocol.errors import Reason
from tests.pace import within

GIB = 2**30
LLAMA_70B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 8192,
    "intermediate_size": 28_672,
    "num_attention_heads": 64,
    "num_hidden_layers": 80,
    "num_key_value_heads": 8,
    "vocab_size": 128_256,
    "torch_dtype": "bfloat16",
}
LLAMA_8B = {
    **LLAMA_70B,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
}
GPT_OSS_20B: dict[str, Any] = {
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "head_dim": 64,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_attention_heads": 64,
    "num_hidden_layers": 24,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "num_experts_per_tok": 4,
    "sliding_window": 128,
    "vocab_size": 201_088,
    "quantization_config": {
        "quant_method": "mxfp4",
        "modules_to_not_convert": [
            "model.layers.*.self_attn",
            "model.layers.*.mlp.router",
            "model.embed_tokens",
            "lm_head",
        ],
    },
}
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
GROUP = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True}
NVFP4 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True}


def compressed(
    weights: dict[str, Any], *ignore: str, targets: tuple[str, ...] = ("Linear",)
) -> dict[str, Any]:
    """The form of compressed-tensors."""
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"targets": [*targets], "weights": weights}},
        "ignore": [*ignore],
    }


def loaded(config: dict[str, Any], quantization: dict[str, Any] | None = None, **more: Any) -> float:
    """GiB of the weights."""
    if quantization is not None:
        config = {**config, "quantization_config": quantization}
    return model_of_config(config, "it", **more).weights.loaded(drafting=False) / GIB


def test_llama_70b_in_fp8_is_half_as_large() -> None:
    assert loaded(LLAMA_70B) == pytest.approx(131.4, abs=0.05)
    assert loaded(LLAMA_70B, FP8) == pytest.approx(67.7, abs=0.05)


@pytest.mark.parametrize(
    ("config", "quantization", "gigabytes"),
    [
        # Sizes of the files that their publishers put on Hugging Face.
        (LLAMA_8B, AWQ, 5.73),
        (LLAMA_8B, {"quant_method": "gptq", "bits": 4, "group_size": 128}, 5.73),
        (GPT_OSS_20B, None, 13.76),
        ({**GPT_OSS_20B, "num_hidden_layers": 36, "num_local_experts": 128}, None, 65.25),
    ],
    ids=["Llama 3.1 8B AWQ", "Llama 3.1 8B GPTQ", "gpt-oss-20b", "gpt-oss-120b"],
)
def test_published_files_are_met(
    config: dict[str, Any], quantization: dict[str, Any] | None, gigabytes: float
) -> None:
    assert loaded(config, quantization) * GIB / 1e9 == pytest.approx(gigabytes, rel=0.01)


@pytest.mark.parametrize(
    ("quantization", "bits"),
    [
        (FP8, 8),
        ({**FP8, "weight_block_size": [128, 128]}, 8 + 32 / 128**2),
        (AWQ, 4 + 20 / 128),
        ({"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True}, 4 + 20 / 128),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, 4.125),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, 8),
        (compressed(GROUP), 4 + 16 / 128),
        (compressed({**GROUP, "symmetric": False}), 4 + 20 / 128),
        (compressed(NVFP4), 4.5),
        (compressed({"num_bits": 8, "type": "float", "strategy": "channel"}), 8),
        (compressed({"num_bits": 8, "strategy": "block", "block_structure": [128, 128]}), 8 + 32 / 128**2),
    ],
)
def test_bits_of_a_weight_with_its_scales(quantization: dict[str, Any], bits: float) -> None:
    found = read_quantization({"quantization_config": quantization})
    assert found is not None
    assert found.bits("layers.0.mlp.down_proj") == pytest.approx(bits)
    assert found.bits("lm_head") is None


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.self_attn",
        "model.language_model.layers.0.self_attn.q_proj",
        "language_model.model.layers.0.self_attn.q_proj",
        "layers.0",
        "q_proj",
        "self_attn",
        "re:.*self_attn.*",
        "re:model[.]layers[.]0[.].*",
        "model.layers.*.self_attn",
        "model.layers.*.self_attn*",
        "*.q_proj",
    ],
)
def test_lists_of_what_is_left_alone(name: str) -> None:
    written = {"quantization_config": {**FP8, "modules_to_not_convert": [name]}}
    found = read_quantization(written)
    assert found is not None
    assert found.bits("layers.0.self_attn.q_proj") is None
    assert found.bits("layers.10.mlp.up_proj") == 8


def test_a_layer_is_not_mistaken_for_another() -> None:
    found = read_quantization({"quantization_config": {**FP8, "ignored_layers": ["model.layers.1"]}})
    assert found is not None
    assert (found.bits("layers.1.mlp.up_proj"), found.bits("layers.10.mlp.up_proj")) == (None, 8)


def test_groups_of_targets_have_bits_of_their_own() -> None:
    quantization = {
        "quant_method": "compressed-tensors",
        "config_groups": {
            "group_0": {"targets": ["re:.*self_attn.*"], "weights": {"num_bits": 8, "strategy": "channel"}},
            "group_1": {"targets": ["re:.*mlp.*"], "weights": NVFP4},
            "group_2": {"targets": ["Linear"], "input_activations": {"num_bits": 8}},
        },
    }
    found = read_quantization({"quantization_config": quantization})
    assert found is not None
    assert (found.bits("layers.0.self_attn.o_proj"), found.bits("layers.0.mlp.up_proj")) == (8, 4.5)
    assert found.bits("layers.0.linear_attn.out_proj") is None


def test_the_head_is_quantised_where_the_config_says_so() -> None:
    without = loaded(LLAMA_8B, AWQ)
    table = 128_256 * 4096
    with_it = loaded(LLAMA_8B, {**AWQ, "lm_head": True})
    assert (without - with_it) * GIB == pytest.approx(table * (2 - (4 + 20 / 128) / 8), abs=1e4)


def test_the_quantisation_may_stand_beside_the_language_model() -> None:
    assert loaded({"text_config": {**LLAMA_70B, "quantization_config": FP8}}) == loaded(LLAMA_70B, FP8)


def test_bits_that_a_person_gives_win() -> None:
    assert loaded(LLAMA_70B, FP8, bits=4) == loaded(LLAMA_70B, bits=4)


def test_a_method_that_is_not_known_is_not_guessed() -> None:
    with pytest.raises(HostError, match="mystery") as caught:
        loaded(LLAMA_70B, {"quant_method": "mystery"})
    assert caught.value.reason is Reason.UNSUPPORTED
    assert loaded(LLAMA_70B, {"quant_method": "mystery"}, bits=4) > 0


@pytest.mark.parametrize("config", [LLAMA_70B, GPT_OSS_20B])
def test_matrices_are_nearly_all_of_the_weights(config: dict[str, Any]) -> None:
    shape = model_of_config(config, "it").shape
    found = weights_of(shape)
    linear = sum(matrix.weights for matrix in matrices(shape))
    assert 0.995 < linear / (found.total - found.embedding) <= 1


@pytest.mark.parametrize(
    "quantization",
    [
        {**FP8, "ignored_layers": 5},
        {**FP8, "ignored_layers": [5]},
        {**FP8, "ignored_layers": {"lm_head": 1}},
        {**FP8, "ignored_layers": ["re:("]},
        {**FP8, "ignored_layers": ["re:a{1000}"]},
        {**FP8, "ignored_layers": ["re:(?!x)y"]},
        {**FP8, "ignored_layers": ["re:" + "a" * 2000]},
        {**AWQ, "bits": "four"},
        {**AWQ, "bits": 10**400},
        {**AWQ, "bits": float("inf")},
        {**AWQ, "bits": [4]},
        {**AWQ, "group_size": 2**40},
        {"quant_method": "gptq", "dynamic": ["-:a"]},
        {"quant_method": "auto-round", "extra_config": {"a": 16}},
        {"quant_method": "auto-round", "extra_config": {"a": {"bits": "x"}}},
        {"quant_method": "compressed-tensors", "config_groups": [1]},
        {"quant_method": "compressed-tensors", "config_groups": {"a": 1}},
        compressed({"num_bits": {}, "group_size": 1}),
        compressed({"num_bits": 4, "group_size": "x"}),
        {"quant_method": "compressed-tensors", "config_groups": {str(n): {} for n in range(100)}},
    ],
    ids=str,
)
def test_a_form_that_cannot_be_read_is_said(quantization: dict[str, Any]) -> None:
    with pytest.raises(HostError) as caught:
        read_quantization({"quantization_config": quantization})
    assert caught.value.reason is Reason.UNSUPPORTED
    assert "quantization_config" in str(caught.value)


@pytest.mark.parametrize(
    "weights",
    [
        {"num_bits": 8, "strategy": "block", "block_structure": block}
        for block in ([0, 0], [0], [-1, 2], "ab", 5)
    ],
    ids=str,
)
def test_blocks_of_no_size_have_no_scales(weights: dict[str, Any]) -> None:
    found = read_quantization({"quantization_config": compressed(weights)})
    assert found is not None
    assert found.bits("layers.0.mlp.down_proj") == 8


def test_patterns_take_time_by_the_length_of_a_name() -> None:
    written = {"quantization_config": {**FP8, "ignored_layers": ["re:(a+)+$", "re:(.*)*x", r"re:(\w+\.?)+!"]}}
    found = read_quantization(written)
    assert found is not None
    began = time.thread_time()
    assert found.bits("layers.0." + "a" * 60 + ".q_proj") == 8
    assert within(time.thread_time() - began, 0.5), "Python's own patterns would take years"
