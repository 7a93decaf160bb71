"""The CPU's choice of an attention backend, which says no to a cache that it cannot read."""


def refuse(original):
    """As the original, but for a KV cache whose kernels need a GPU."""
    from functools import wraps

    from sndr_overlay.hits import count

    @wraps(original)
    def get_attn_backend_cls(cls, selected_backend, attn_selector_config, num_heads=None):
        count("cpu-refuses-turboquant")
        kind = str(getattr(attn_selector_config, "kv_cache_dtype", None) or "")
        if kind.startswith(("turboquant_", "ultraquant_")):
            raise ValueError(
                f"The KV cache {kind} needs a GPU: on the CPU it would be read as if it were not "
                "compressed, and answers would silently be wrong. Use --kv-cache-dtype auto."
            )
        return original(cls, selected_backend, attn_selector_config, num_heads)

    return get_attn_backend_cls
