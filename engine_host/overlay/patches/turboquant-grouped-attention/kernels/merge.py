"""Two attentions of the same queries over different tokens become one, by their log-sum-exps."""

import torch
import triton
import triton.language as tl


@triton.jit(
    do_not_specialize=["rows", "one_lse_stride", "other_lse_stride", "target_lse_stride"],
    do_not_specialize_on_alignment=["one_lse", "other_lse", "target_lse"],
)
def _merge_kernel(
    one,
    one_lse,
    other,
    other_lse,
    target,
    target_lse,
    rows,
    one_stride,
    other_stride,
    target_stride,
    one_lse_stride,
    other_lse_stride,
    target_lse_stride,
    head_size: tl.constexpr,
    count: tl.constexpr,
):
    head = tl.program_id(1)
    row = tl.program_id(0) * count + tl.arange(0, count)
    inside = row < rows
    lse = tl.load(one_lse + head * one_lse_stride + row, mask=inside, other=0.0)
    other_sum = tl.load(other_lse + head * other_lse_stride + row, mask=inside, other=0.0)
    # FlashAttention says +inf of a row that sees nothing in one of its versions, -inf in the others.
    lse = tl.where(lse == float("inf"), -float("inf"), lse)
    other_sum = tl.where(other_sum == float("inf"), -float("inf"), other_sum)
    highest = tl.maximum(lse, other_sum)
    shift = tl.where(highest == -float("inf"), 0.0, highest)
    weight = tl.exp(lse - shift)
    other_weight = tl.exp(other_sum - shift)
    total = weight + other_weight
    divisor = tl.where(total > 0.0, total, 1.0)
    channel = tl.arange(0, head_size)[None, :]
    mask = inside[:, None]
    wide = row.to(tl.int64)[:, None]
    mine = tl.load(one + wide * one_stride + head * head_size + channel, mask=mask, other=0.0).to(tl.float32)
    theirs = tl.load(other + wide * other_stride + head * head_size + channel, mask=mask, other=0.0)
    merged = mine * (weight / divisor)[:, None] + theirs.to(tl.float32) * (other_weight / divisor)[:, None]
    to = target + wide * target_stride + head * head_size + channel
    tl.store(to, merged.to(target.dtype.element_ty), mask=mask)
    tl.store(target_lse + head * target_lse_stride + row, shift + tl.log(divisor), mask=inside)


def merge(
    one: torch.Tensor,
    one_lse: torch.Tensor,
    other: torch.Tensor,
    other_lse: torch.Tensor,
    target: torch.Tensor,
    target_lse: torch.Tensor,
) -> None:
    """Write attention over both sets of tokens to `target`, which may be `one`.

    one, other, target: [rows, heads, head_size] of any float type, heads contiguous. Their log-sum-exps:
    fp32 [heads, rows], natural logarithm (Dao et al. 2023).
    """
    rows, heads, head_size = one.shape
    count = 16
    _merge_kernel[(triton.cdiv(rows, count), heads)](
        one,
        one_lse,
        other,
        other_lse,
        target,
        target_lse,
        rows,
        one.stride(0),
        other.stride(0),
        target.stride(0),
        one_lse.stride(0),
        other_lse.stride(0),
        target_lse.stride(0),
        head_size=head_size,
        count=count,
    )
