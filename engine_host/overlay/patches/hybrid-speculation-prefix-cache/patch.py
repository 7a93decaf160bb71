"""A hybrid that drafts: states kept densely where answers were compared, else no prefix cache."""

COMPARED = ("turboquant_k8v4", "turboquant_4bit_nc")


def is_measured(vllm_config, cuda):
    """Return True where answers after a hit were compared: vLLM 0.32's V2 runner on CUDA, these types of KV.

    The V1 runner moves counts of accepted tokens while they are still being copied (vllm#53919, #51571), and
    0.26 has neither of the two settings.
    """
    cache, speculation = vllm_config.cache_config, vllm_config.speculative_config
    has_both = hasattr(cache, "prefix_cache_retention_interval") and hasattr(
        speculation, "disable_eagle_block_drop"
    )
    kv = str(cache.cache_dtype)
    if not (cuda and has_both) or (kv.startswith("turboquant") and kv not in COMPARED):
        return False
    return bool(vllm_config.use_v2_model_runner)


def checkpoint_or_switch_off(original):
    """As the original, for a configuration whose prefix cache is right, or off, when something is drafted."""
    from functools import wraps

    from sndr_overlay.hits import count

    @wraps(original)
    def verify_and_update_config(cls, vllm_config):
        count("hybrid-speculation-prefix-cache")
        cache = vllm_config.cache_config
        if vllm_config.speculative_config is not None and cache.enable_prefix_caching:
            from vllm.logger import init_logger
            from vllm.platforms import current_platform

            log = init_logger("vllm.sndr")
            if is_measured(vllm_config, current_platform.is_cuda()):
                # A state at each block boundary; without them one boundary of a prompt can be found again.
                cache.prefix_cache_retention_interval = None
                # The draft layer's entry at a hit's end rests on another token: drafts, which are verified.
                vllm_config.speculative_config.disable_eagle_block_drop = True
                log.info("Prefix caching keeps the state of every block, and a hit takes all of them.")
            else:
                cache.enable_prefix_caching = False
                log.warning("Prefix caching is off: a hybrid that speculates has wrong hits here.")
        return original(cls, vllm_config)

    return verify_and_update_config
