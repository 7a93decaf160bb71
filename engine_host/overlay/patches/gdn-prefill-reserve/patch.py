"""Reserve the memory of a gated-delta prefill beside the KV cache, off the KV cache's share.

One layer at a time computes, for T tokens in chunks of 64 (fla's chunk_gated_delta_rule, forward): w of [T,
H, K], and u, new values and the output of [T, H, V], and a state of [T / 64, H, K, V]; all in the
activations' type, with H, K and V the value heads, key and value sizes of this rank.
"""

CHUNK = 64


def bytes_per_token(value_heads, key_size, value_size, element):
    """Bytes a token for the transients of one layer's scan; `element` is the activations' size in bytes."""
    return value_heads * element * (key_size + 3 * value_size + key_size * value_size // CHUNK)


def reserve(vllm_config):
    """Bytes that the scan needs at the largest step of this configuration; 0 without gated-delta layers."""
    model = vllm_config.model_config
    text = getattr(model.hf_config, "text_config", None) or model.hf_config
    heads = getattr(text, "linear_num_value_heads", None)
    if not heads:
        return 0
    ranks = vllm_config.parallel_config.tensor_parallel_size
    per_token = bytes_per_token(
        -(-heads // ranks), text.linear_key_head_dim, text.linear_value_head_dim, model.dtype.itemsize
    )
    return per_token * vllm_config.scheduler_config.max_num_batched_tokens


def with_reserve(original):
    """As the original, less what the scan needs; a KV cache of a given size is left as it was given."""
    from functools import wraps

    from sndr_overlay.hits import count

    @wraps(original)
    def determine_available_memory(self):
        count("gdn-prefill-reserve")
        available = original(self)
        if self.vllm_config.cache_config.kv_cache_memory_bytes:
            return available
        kept = reserve(self.vllm_config)
        if kept:
            from vllm.logger import init_logger

            init_logger("vllm.sndr").info(
                "%.2f GiB are kept for the prefill of gated-delta layers.", kept / 2**30
            )
        return max(available - kept, 0)

    return determine_available_memory
