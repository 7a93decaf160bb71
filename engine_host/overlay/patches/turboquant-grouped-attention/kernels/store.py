"""Writing keys and values into the quantised cache: many tokens a program, rows as whole vectors."""

import torch
import triton
import triton.language as tl

from .convert import fp8_byte_of, to_fp8
from .hadamard import butterfly
from .layout import CacheLayout
from .levels import UNITS, level, nearest

TOKENS_A_PROGRAM = 16


@triton.jit
def _nibble(value, centre, step):
    """The nearest of 16 even steps, nibble 8 being the centre."""
    return tl.minimum(tl.maximum((value - centre) / step + 8.5, 0.0), 15.0).to(tl.int32)


@triton.jit(do_not_specialize=["tokens"], do_not_specialize_on_alignment=["slots"])
def _store_kernel(
    keys,
    values,
    fp8_cache,
    byte_cache,
    half_cache,
    word_cache,
    slots,
    tokens,
    key_token_stride,
    key_head_stride,
    value_token_stride,
    value_head_stride,
    units,
    kv_heads: tl.constexpr,
    head_size: tl.constexpr,
    block_size: tl.constexpr,
    block_stride: tl.constexpr,
    fp8_keys: tl.constexpr,
    native_fp8: tl.constexpr,
    count: tl.constexpr,
):
    half: tl.constexpr = head_size // 2
    key_bytes: tl.constexpr = head_size if fp8_keys else half
    page_bytes: tl.constexpr = block_size * (key_bytes + half + (4 if fp8_keys else 6))
    value_offset: tl.constexpr = block_size * key_bytes
    scale_offset: tl.constexpr = value_offset + block_size * half
    head = tl.program_id(1)
    token = tl.program_id(0).to(tl.int64) * count + tl.arange(0, count)
    slot = tl.load(slots + token, mask=token < tokens, other=-1).to(tl.int64)
    # A slot below zero is padding of a captured batch.
    valid = slot >= 0
    mask = valid[:, None]
    slot = tl.where(valid, slot, 0)
    page = slot // block_size * block_stride + head * page_bytes
    within = slot % block_size
    column = tl.arange(0, half)[None, :]

    row = values + (token * value_token_stride + head * value_head_stride)[:, None] + column
    low = tl.load(row, mask=mask, other=0.0).to(tl.float32)
    high = tl.load(row + half, mask=mask, other=0.0).to(tl.float32)
    smallest = tl.minimum(tl.min(low, 1), tl.min(high, 1))
    largest = tl.maximum(tl.max(low, 1), tl.max(high, 1))
    # Both numbers are rounded to fp16 before the nibbles are chosen, so that these suit what a reader will
    # see. A constant row has no step: the smallest normal fp16 number keeps the division finite.
    step16 = tl.maximum((largest - smallest) / 15.0, 6.103515625e-05).to(tl.float16)
    step = step16.to(tl.float32)
    centre16 = (smallest + 8.0 * step).to(tl.float16)
    centre = centre16.to(tl.float32)
    packed = _nibble(low, centre[:, None], step[:, None]) | (
        _nibble(high, centre[:, None], step[:, None]) << 4
    )
    at = page + value_offset + within * half
    tl.store(byte_cache + at[:, None] + column, packed.to(tl.uint8), mask=mask)
    scale = step16.to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF
    scale |= centre16.to(tl.int16, bitcast=True).to(tl.int32) << 16
    tl.store(word_cache + page // 4 + scale_offset // 4 + within, scale, mask=valid)

    channel = tl.arange(0, head_size)[None, :]
    row = keys + (token * key_token_stride + head * key_head_stride)[:, None] + channel
    key = tl.load(row, mask=mask, other=0.0).to(tl.float32)
    at = page + within * key_bytes
    if fp8_keys:
        # The largest e4m3 number; beyond it a conversion may give NaN.
        key = tl.minimum(tl.maximum(key, -448.0), 448.0)
        if native_fp8:
            tl.store(fp8_cache + at[:, None] + channel, to_fp8(key), mask=mask)
        else:
            tl.store(byte_cache + at[:, None] + channel, fp8_byte_of(key), mask=mask)
    else:
        length = tl.sqrt(tl.sum(key * key, 1))
        # Channels of a rotated unit vector have the standard deviation 1 / sqrt(head_size).
        spread = units * (head_size * 1.0) ** 0.5 / tl.maximum(length, 1e-30)
        key = butterfly(key, count, head_size) * spread[:, None]
        index = nearest(tl.abs(key))
        magnitude = level(index)
        # The stored norm undoes the quantisation's change of length: step 2 of EDEN, Vargaftik et al. 2022.
        norm = length / tl.sqrt(tl.sum(magnitude * magnitude, 1))
        code = index | ((key < 0.0).to(tl.int32) << 3)
        first, second = tl.split(tl.permute(tl.reshape(code, (count, 2, half)), (0, 2, 1)))
        tl.store(byte_cache + at[:, None] + column, (first | (second << 4)).to(tl.uint8), mask=mask)
        norm_offset: tl.constexpr = (scale_offset + block_size * 4) // 2
        tl.store(half_cache + page // 2 + norm_offset + within, norm.to(tl.float16), mask=valid)


def store(
    keys: torch.Tensor,
    values: torch.Tensor,
    cache: torch.Tensor,
    slots: torch.Tensor,
    layout: CacheLayout,
    native_fp8: bool = True,
) -> None:
    """Quantise tokens into their slots.

    keys, values: [tokens, kv_heads, head_size], fp16 or bf16, channels contiguous. cache: uint8 of
    `layout.cache_shape`; blocks may lie further apart than their bytes. slots: [tokens] integers, block *
    block_size + place in the block; below zero is skipped.
    """
    tokens, kv_heads, head_size = keys.shape
    if tokens == 0:
        return
    _store_kernel[(triton.cdiv(tokens, TOKENS_A_PROGRAM), kv_heads)](
        keys,
        values,
        cache.view(torch.float8_e4m3fn) if native_fp8 else cache,
        cache,
        cache.view(torch.float16),
        cache.view(torch.int32),
        slots,
        tokens,
        keys.stride(0),
        keys.stride(1),
        values.stride(0),
        values.stride(1),
        UNITS,
        kv_heads=kv_heads,
        head_size=head_size,
        block_size=layout.block_size,
        block_stride=cache.stride(0),
        fp8_keys=layout.fp8_keys,
        native_fp8=native_fp8,
        count=TOKENS_A_PROGRAM,
    )
