"""The second pass: what the shares of a context found becomes one answer."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["splits"], do_not_specialize_on_alignment=["starts"])
def combine_kernel(
    partial,
    partial_lse,
    out,
    starts,
    splits,
    out_token_stride,
    out_head_stride,
    padded_splits: tl.constexpr,
    group: tl.constexpr,
    rows: tl.constexpr,
    kv_heads: tl.constexpr,
    head_size: tl.constexpr,
    channels: tl.constexpr,
):
    """Weigh shares by 2 ** their log2-sum-exp2 (Flash-Decoding, Dao et al. 2023); no tokens give 0.

    One program makes `channels` channels of one row, so that a single long context still fills the GPU.
    """
    pair = tl.program_id(0)
    row = tl.program_id(1)
    channel = tl.program_id(2) * channels + tl.arange(0, channels)
    query_start = tl.load(starts + pair // kv_heads)
    if row // group >= tl.load(starts + pair // kv_heads + 1) - query_start:
        return
    split = tl.arange(0, padded_splits)
    place = (pair * splits + split) * rows + row
    sums = tl.load(partial_lse + place, mask=split < splits, other=-float("inf"))
    highest = tl.max(sums, 0)
    weights = tl.exp2(sums - tl.where(highest == -float("inf"), 0.0, highest))
    # A share without tokens wrote no partial: its memory is not read.
    parts = tl.load(
        partial + place.to(tl.int64)[:, None] * head_size + channel[None, :],
        mask=(weights > 0.0)[:, None],
        other=0.0,
    ).to(tl.float32)
    total = tl.sum(weights, 0)
    answer = tl.sum(parts * weights[:, None], 0) / tl.where(total > 0.0, total, 1.0)
    token = query_start + row // group
    head = pair % kv_heads * group + row % group
    at = out + token.to(tl.int64) * out_token_stride + head * out_head_stride + channel
    tl.store(at, answer.to(out.dtype.element_ty))
