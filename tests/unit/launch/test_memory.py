"""The KV cache's bytes a token, from the model's metadata."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_host.launch.memory import kv_bytes_per_token
from tests.unit.launch.models import model

# From the widest to the narrowest.
TYPES = ["f32", "f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]


def test_a_dense_model() -> None:
    assert kv_bytes_per_token(model(), "f16", "f16") == 16 * 4 * (64 * 2 + 64 * 2)
    assert kv_bytes_per_token(model(value_dim=32), "f16", "f16") == 16 * 4 * (64 * 2 + 32 * 2)
    assert kv_bytes_per_token(model(value_dim=None), "q8_0", "f16") == 16 * 4 * (64 * 34 / 32 + 64 * 2)


def test_a_hybrid_keeps_a_cache_in_every_fourth_layer_only() -> None:
    hybrid = model(full_attention_interval=4, ssm={"state_size": 128})
    assert kv_bytes_per_token(hybrid, "f16", "f16") == 4 * 4 * 256


@pytest.mark.parametrize("missing", ["layers", "kv_heads", "head_dim"])
def test_what_the_file_does_not_tell_is_not_measured(missing: str) -> None:
    assert kv_bytes_per_token(model(**{missing: None}), "f16", "f16") is None


def test_an_unknown_type_is_not_measured() -> None:
    assert kv_bytes_per_token(model(), "turbo3", "f16") is None
    assert kv_bytes_per_token(model(), "f16", "turbo3") is None


@settings(deadline=None)
@given(
    layers=st.integers(1, 200),
    heads=st.integers(1, 128),
    dim=st.sampled_from([32, 64, 128, 256]),
    wide=st.integers(0, len(TYPES) - 1),
    narrow=st.integers(0, len(TYPES) - 1),
    other=st.sampled_from(TYPES),
)
def test_is_positive_and_grows_with_the_model_and_the_type(
    layers: int, heads: int, dim: int, wide: int, narrow: int, other: str
) -> None:
    wide, narrow = min(wide, narrow), max(wide, narrow)
    one = model(layers=layers, kv_heads=heads, head_dim=dim, value_dim=dim)
    found = kv_bytes_per_token(one, TYPES[wide], other)
    less = kv_bytes_per_token(one, TYPES[narrow], other)
    more = kv_bytes_per_token(
        model(layers=layers + 1, kv_heads=heads, head_dim=dim, value_dim=dim), TYPES[wide], other
    )
    assert found is not None
    assert less is not None
    assert more is not None
    assert 0 < less <= found < more
    assert kv_bytes_per_token(one, other, TYPES[wide]) == found, "keys and values of one size weigh the same"
