"""Numbers of weights by formula, against files that are here and sizes that are published."""

import json

import pytest

from engine_host.core.package_data import resources
from engine_host.fit.shapes.model import read_shape
from engine_host.fit.shapes.weights import weights_of
from engine_host.library.checkpoint import read_checkpoint
from tests.unit.fit.test_kv import DENSE, HYBRID


def test_the_demo_model_has_as_many_weights_as_its_file() -> None:
    folder = resources() / "models" / "sndr-demo"
    shape = read_shape(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    found = read_checkpoint(folder)
    assert found.parameters is not None
    assert weights_of(shape).total == pytest.approx(found.parameters, rel=2e-3)


def test_a_dense_model_of_eight_billion() -> None:
    """Qwen3-8B: 8.19 billion, of which 6.95 billion are not in the two tables."""
    found = weights_of(read_shape(DENSE))
    assert found.total == pytest.approx(8.19e9, rel=0.01)
    assert found.total - 2 * 151_936 * 4096 == pytest.approx(6.95e9, rel=0.01)
    assert found.read == pytest.approx(found.total - 151_936 * 4096, rel=1e-3)


def test_a_hybrid_of_twenty_seven_billion() -> None:
    assert weights_of(read_shape(HYBRID)).total == pytest.approx(27e9, rel=0.05)


def test_a_mixture_reads_only_what_a_token_uses() -> None:
    """Qwen3-30B-A3B: 30.5 billion, 3.3 of them for one token."""
    config = {
        **DENSE,
        "num_hidden_layers": 48,
        "hidden_size": 2048,
        "num_key_value_heads": 4,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
    }
    found = weights_of(read_shape(config))
    assert found.total == pytest.approx(30.5e9, rel=0.01)
    assert found.read + 151_936 * 2048 == pytest.approx(3.3e9, rel=0.03)


def test_latent_attention_and_a_first_layer_without_a_mixture() -> None:
    """DeepSeek-V2-Lite: 15,706,484,224, as its files hold."""
    config = {
        "model_type": "deepseek_v2",
        "num_hidden_layers": 27,
        "hidden_size": 2048,
        "intermediate_size": 10_944,
        "num_attention_heads": 16,
        "vocab_size": 102_400,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "num_experts_per_tok": 6,
        "moe_intermediate_size": 1408,
        "first_k_dense_replace": 1,
    }
    assert weights_of(read_shape(config)).total == 15_706_484_224
