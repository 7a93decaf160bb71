"""From the cache to what other attention kernels read: a window of one request's tokens, not quantised."""

import torch
import triton
import triton.language as tl

from .convert import shifted_fp8, signed_level, values_of
from .hadamard import butterfly
from .layout import CacheLayout

TOKENS_A_PROGRAM = 32


@triton.jit(do_not_specialize=["first", "tokens"], do_not_specialize_on_alignment=["table_row"])
def _expand_kernel(
    byte_cache,
    half_cache,
    word_cache,
    table_row,
    keys,
    values,
    first,
    tokens,
    token_stride,
    kv_heads: tl.constexpr,
    head_size: tl.constexpr,
    block_size: tl.constexpr,
    block_stride: tl.constexpr,
    fp8_keys: tl.constexpr,
    count: tl.constexpr,
):
    half: tl.constexpr = head_size // 2
    key_bytes: tl.constexpr = head_size if fp8_keys else half
    value_offset: tl.constexpr = block_size * key_bytes
    scale_offset: tl.constexpr = value_offset + block_size * half
    norm_offset: tl.constexpr = scale_offset + block_size * 4
    page_bytes: tl.constexpr = norm_offset + (0 if fp8_keys else block_size * 2)
    head = tl.program_id(1)
    place = tl.program_id(0) * count + tl.arange(0, count)
    inside = place < tokens
    mask = inside[:, None]
    token = first + tl.where(inside, place, 0)
    page = tl.load(table_row + token // block_size).to(tl.int64) * block_stride + head * page_bytes
    within = token % block_size
    column = tl.arange(0, half)[None, :]
    channel = tl.arange(0, head_size)[None, :]
    at = (place.to(tl.int64) * token_stride + head * head_size)[:, None]

    scale = tl.load(word_cache + page // 4 + scale_offset // 4 + within)
    packed = tl.load(byte_cache + (page + value_offset + within * half)[:, None] + column)
    low, high = values_of(packed, tl.broadcast_to(scale[:, None], (count, half)))
    tl.store(values + at + column, low.to(values.dtype.element_ty), mask=mask)
    tl.store(values + at + half + column, high.to(values.dtype.element_ty), mask=mask)

    if fp8_keys:
        byte = tl.load(byte_cache + (page + within * head_size)[:, None] + channel)
        key = shifted_fp8(byte).to(tl.float32) * 256.0
    else:
        codes = tl.load(byte_cache + (page + within * half)[:, None] + column)
        norm = tl.load(half_cache + page // 2 + norm_offset // 2 + within).to(tl.float32)
        both = tl.join(signed_level(codes & 15), signed_level(codes >> 4))
        rotated = tl.reshape(tl.permute(both, (0, 2, 1)), (count, head_size)) * norm[:, None]
        key = butterfly(rotated, count, head_size)
    tl.store(keys + at + channel, key.to(keys.dtype.element_ty), mask=mask)


def expand(
    cache: torch.Tensor,
    table_row: torch.Tensor,
    first: int,
    keys: torch.Tensor,
    values: torch.Tensor,
    layout: CacheLayout,
) -> None:
    """Write the tokens from `first` on of a request to keys and values [tokens, kv_heads, head_size].

    table_row: int32 [blocks] of that request. keys and values: fp16 or bf16, contiguous; 4-bit keys come back
    as they were given, the rotation undone.
    """
    tokens, kv_heads, head_size = keys.shape
    _expand_kernel[(triton.cdiv(tokens, TOKENS_A_PROGRAM), kv_heads)](
        cache,
        cache.view(torch.float16),
        cache.view(torch.int32),
        table_row,
        keys,
        values,
        first,
        tokens,
        keys.stride(0),
        kv_heads=kv_heads,
        head_size=head_size,
        block_size=layout.block_size,
        block_stride=cache.stride(0),
        fp8_keys=layout.fp8_keys,
        count=TOKENS_A_PROGRAM,
    )
