"""A hybrid's configuration, with prefix caching off before its Mamba cache mode is derived from it."""


def without_prefix_cache(original):
    """As the original, for a configuration without prefix caching when something is drafted."""
    from functools import wraps

    from sndr_overlay.hits import count

    @wraps(original)
    def verify_and_update_config(cls, vllm_config):
        count("hybrid-speculation-prefix-cache")
        cache = vllm_config.cache_config
        if vllm_config.speculative_config is not None and cache.enable_prefix_caching:
            from vllm.logger import init_logger

            cache.enable_prefix_caching = False
            init_logger("vllm.sndr").warning(
                "Prefix caching is off: with speculation on a hybrid model its hits are wrong."
            )
        return original(cls, vllm_config)

    return verify_and_update_config
