"""RMS norm of input plus residual by the kernel that vLLM takes without one: a row, a program."""

from functools import wraps


def with_the_sum_first(original):
    """The same function; input and residual are added in their own type, as the fused kernel adds them."""

    @wraps(original)
    def rms_norm_batch_invariant(input, weight, eps=1e-6, residual=None):
        if residual is None:
            return original(input, weight, eps)
        if input.shape != residual.shape:
            raise ValueError(f"input of {tuple(input.shape)} and residual of {tuple(residual.shape)}")
        from sndr_overlay.hits import count

        count("batch-invariant-residual-norm")
        residual.add_(input)
        return original(residual, weight, eps), residual

    return rms_norm_batch_invariant
