"""How much memory a start will want, estimated from the model's own metadata."""

from engine_host.fit.kv import GGML_ELEMENT, TURBOQUANT
from engine_host.library.checkpoint import CheckpointInfo
from engine_host.library.gguf import GgufInfo


def kv_bytes_per_token(model: GgufInfo, kv_type_k: str, kv_type_v: str) -> float | None:
    """KV bytes of one token over all full-attention layers; None when the metadata or a type is unknown.

    layers × kv_heads × (head_dim × bytes(K) + value_dim × bytes(V)); in a hybrid only every
    `full_attention_interval`-th layer keeps a KV cache. A sliding window is counted as full attention,
    so for such a model this is an upper bound.
    """
    bytes_k, bytes_v = GGML_ELEMENT.get(kv_type_k), GGML_ELEMENT.get(kv_type_v)
    layers = model.attention_layers
    if not layers or not model.kv_heads or not model.head_dim or bytes_k is None or bytes_v is None:
        return None
    value_dim = model.value_dim or model.head_dim
    return layers * model.kv_heads * (model.head_dim * bytes_k + value_dim * bytes_v)


def vllm_kv_bytes_per_token(model: CheckpointInfo, kv_cache_dtype: str) -> float | None:
    """KV bytes of one token over all full-attention layers in vLLM; None where the config is silent.

    A hybrid's states of fixed size come on top. Bytes of TurboQuant: D × bits of K and V and its scales
    (vLLM 0.32, TurboQuantConfig).
    """
    layers, heads, size = model.attention_layers, model.kv_heads, model.head_dim
    if not layers or not heads or not size:
        return None
    if kv_cache_dtype in TURBOQUANT:
        bits, extra = TURBOQUANT[kv_cache_dtype]
        return layers * heads * (size * bits / 8 + extra)
    if kv_cache_dtype.startswith("fp8"):
        element = 1
    else:
        element = 4 if "float32" in {model.dtype, kv_cache_dtype} else 2
    return float(layers * heads * size * 2 * element)


def weight_bytes(model: CheckpointInfo) -> int | None:
    """Bytes of a checkpoint's weights; of a shape an estimate from its config, at two bytes a weight."""
    if not model.shape:
        return model.size
    layers, width = model.layers, model.embedding_length
    if not layers or not width:
        return None
    attention = 2 * width * (model.head_dim or 0) * ((model.heads or 0) + (model.kv_heads or 0))
    if model.experts and model.expert_feed_forward:
        feed_forward = 3 * width * model.expert_feed_forward * model.experts
    else:
        feed_forward = 3 * width * (model.feed_forward or 4 * width)
    return 2 * (layers * (attention + feed_forward) + 2 * width * (model.vocabulary or 0))
