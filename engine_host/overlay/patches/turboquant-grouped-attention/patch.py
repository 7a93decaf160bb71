"""The replacements for parts of vLLM's TurboQuant backend; where they do not apply they call the original."""

from functools import wraps


def cudagraph_support(builder, vllm_config):
    """Whole graphs of verify steps with our kernel; vLLM's own verify is a loop that must not be captured."""
    from vllm.v1.attention.backend import AttentionCGSupport

    from .decision import decide

    if decide(vllm_config).used or vllm_config.speculative_config is None:
        return builder._cudagraph_support
    return AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE


def new_builder(original):
    """A builder for layers of ours: several tokens of a request are decode, as far as the kernel goes."""

    @wraps(original)
    def init(self, kv_cache_spec, layer_names, vllm_config, device):
        from .decision import decide

        # Set first: the original's last act is to reserve memory.
        self._sndr = decide(vllm_config)
        original(self, kv_cache_spec, layer_names, vllm_config, device)
        if self._sndr.used:
            from .wiring import adopt

            adopt(self, layer_names, vllm_config)

    return init


def reserve_workspace(original):
    """Memory for the largest batch, taken before graphs are captured."""

    @wraps(original)
    def _reserve_workspace(self):
        if not self._sndr.used:
            return original(self)
        from .wiring import reserve

        return reserve(self)

    return _reserve_workspace


def build(original):
    """Metadata with exact lengths on the GPU for every request that decodes or verifies."""

    @wraps(original)
    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        if not self._sndr.used:
            return original(self, common_prefix_len, common_attn_metadata, fast_build)
        from .wiring import metadata

        return metadata(self, common_attn_metadata)

    return build


def update_cache(original):
    """Storing tokens."""

    @wraps(original)
    def do_kv_cache_update(self, layer, key, value, kv_cache, slot_mapping):
        wired = self.__dict__.get("_sndr")
        if wired is None:
            return original(self, layer, key, value, kv_cache, slot_mapping)
        return wired.store(key, value, kv_cache, slot_mapping)

    return do_kv_cache_update


def forward(original):
    """Attention of a batch."""

    @wraps(original)
    def forward(
        self,
        layer,
        query,
        key,
        value,
        kv_cache,
        attn_metadata,
        output=None,
        output_scale=None,
        output_block_scale=None,
    ):
        wired = self.__dict__.get("_sndr")
        if wired is None or attn_metadata is None or output is None or attn_metadata.num_actual_tokens <= 0:
            return original(
                self,
                layer,
                query,
                key,
                value,
                kv_cache,
                attn_metadata,
                output,
                output_scale,
                output_block_scale,
            )
        from sndr_overlay.hits import count

        count("turboquant-grouped-attention")
        wired.forward(query, key, value, kv_cache, attn_metadata, output)
        return output

    return forward
