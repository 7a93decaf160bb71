"""The second pass: what the shares of a context found becomes one answer."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["fixed_shares"], do_not_specialize_on_alignment=["starts", "first_slots"])
def combine_kernel(
    partial,
    partial_lse,
    out,
    starts,
    first_slots,
    fixed_shares,
    out_token_stride,
    out_head_stride,
    together: tl.constexpr,
    fixed: tl.constexpr,
    group: tl.constexpr,
    rows: tl.constexpr,
    kv_heads: tl.constexpr,
    head_size: tl.constexpr,
    channels: tl.constexpr,
):
    """Weigh shares by 2 ** their log2-sum-exp2 (Flash-Decoding, Dao et al. 2023); no tokens give 0.

    One program makes `channels` channels of one row, so that a single long context still fills the GPU, from
    `together` shares at a time. fixed: each request has `fixed_shares` of them.
    """
    request = tl.program_id(0) // kv_heads
    head = tl.program_id(0) % kv_heads
    row = tl.program_id(1)
    channel = tl.program_id(2) * channels + tl.arange(0, channels)
    query_start = tl.load(starts + request)
    if row // group >= tl.load(starts + request + 1) - query_start:
        return
    if fixed:
        first = request * fixed_shares
        shares = fixed_shares
    else:
        first = tl.load(first_slots + request)
        shares = tl.load(first_slots + request + 1) - first
    highest = -float("inf")
    total = 0.0
    answer = tl.zeros([channels], tl.float32)
    for some in range(0, shares, together):
        share = some + tl.arange(0, together)
        place = ((first + share) * kv_heads + head) * rows + row
        sums = tl.load(partial_lse + place, mask=share < shares, other=-float("inf"))
        risen = tl.maximum(highest, tl.max(sums, 0))
        shift = tl.where(risen == -float("inf"), 0.0, risen)
        weights = tl.exp2(sums - shift)
        decay = tl.exp2(highest - shift)
        # A share without tokens wrote no partial: its memory is not read.
        parts = tl.load(
            partial + place.to(tl.int64)[:, None] * head_size + channel[None, :],
            mask=(weights > 0.0)[:, None],
            other=0.0,
        ).to(tl.float32)
        total = total * decay + tl.sum(weights, 0)
        answer = answer * decay + tl.sum(parts * weights[:, None], 0)
        highest = risen
    answer = answer / tl.where(total > 0.0, total, 1.0)
    token = query_start + row // group
    at = out + token.to(tl.int64) * out_token_stride + (head * group + row % group) * out_head_stride
    tl.store(at + channel, answer.to(out.dtype.element_ty))
