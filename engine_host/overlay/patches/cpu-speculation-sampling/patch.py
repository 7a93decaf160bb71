"""The kernel that repeats a value of each request for each of its drafted tokens, for every type of value.

vLLM's own converts the output to int64 first and writes into that copy: for temperature and top-p (float32)
and for top-k (int32) the result is lost.
"""


def expand(_original):
    """A kernel that writes into the output itself."""
    import torch
    from sndr_overlay.hits import count

    def expand_kernel(
        output,
        input_val,
        cu_num_tokens,
        replace_from,
        replace_to,
        MAX_NUM_TOKENS=None,  # noqa: N803 - the callers name it so
    ):
        count("cpu-speculation-sampling")
        ends = cu_num_tokens.to(torch.int64)
        lengths = torch.diff(ends, prepend=ends.new_zeros(1))
        values = torch.where(input_val == replace_from, replace_to, input_val).to(output.dtype)
        output[: int(ends[-1])] = values.repeat_interleave(lengths)

    return expand_kernel
