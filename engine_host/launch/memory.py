"""How much memory the KV cache of a llama.cpp start will want, from the model's own metadata."""

from engine_host.library.gguf import GgufInfo

# Bytes an element: ggml's block size over the elements in a block (ggml-common.h).
_ELEMENT_BYTES = {
    "f32": 4.0,
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
}


def kv_bytes_per_token(model: GgufInfo, kv_type_k: str, kv_type_v: str) -> float | None:
    """KV bytes of one token over all full-attention layers; None when the metadata or a type is unknown.

    layers × kv_heads × (head_dim × bytes(K) + value_dim × bytes(V)); in a hybrid only every
    `full_attention_interval`-th layer keeps a KV cache. A sliding window is counted as full attention,
    so for such a model this is an upper bound.
    """
    bytes_k, bytes_v = _ELEMENT_BYTES.get(kv_type_k), _ELEMENT_BYTES.get(kv_type_v)
    layers = model.attention_layers
    if not layers or not model.kv_heads or not model.head_dim or bytes_k is None or bytes_v is None:
        return None
    value_dim = model.value_dim or model.head_dim
    return layers * model.kv_heads * (model.head_dim * bytes_k + value_dim * bytes_v)
