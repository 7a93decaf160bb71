"""The convolution of a prefill, given a tensor whose strides say what its kernel checks.

vLLM hands over rows of a wider projection and calls `contiguous()` on them. A single row counts as contiguous
with any stride, so it keeps that of the projection, and the kernel refuses it.
"""


def with_plain_strides(original):
    """The same function; `x` is (channels, tokens) with the channels next to each other."""
    from sndr_overlay.hits import count

    def convolve(
        *,
        x,
        weight,
        bias,
        conv_states,
        query_start_loc,
        cache_indices,
        has_initial_state,
        silu_activation,
        is_weight_packed,
    ):
        if x.size(1) == 1 and x.stride() != (1, x.size(0)):
            count("cpu-one-token-prompt")
            x = x.as_strided(x.shape, (1, x.size(0)))
        return original(
            x=x,
            weight=weight,
            bias=bias,
            conv_states=conv_states,
            query_start_loc=query_start_loc,
            cache_indices=cache_indices,
            has_initial_state=has_initial_state,
            silu_activation=silu_activation,
            is_weight_packed=is_weight_packed,
        )

    return convolve
