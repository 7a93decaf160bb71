"""The Walsh-Hadamard rotation as a butterfly: size * log2(size) additions instead of a matrix product.

Rotating keys and queries alike leaves their products as they are, and spreads a key's energy evenly over its
channels, so that one set of levels fits all of them (QuaRot, Ashkboos et al. 2024; TurboQuant, Zandieh et al.
2026).
"""

import torch
import triton
import triton.language as tl


@triton.jit
def butterfly(rows, count: tl.constexpr, size: tl.constexpr):
    """Rotate each row of a [count, size] tile; orthonormal, hence its own inverse.

    Stage s replaces the pairs (a, b) at distance 2 ** s by (a + b, a - b); log2(size) stages make H * row.
    """
    stages: tl.constexpr = size.bit_length() - 1
    for stage in tl.static_range(stages):
        pairs = tl.reshape(rows, (count, size // (2 << stage), 2, 1 << stage))
        first, second = tl.split(tl.permute(pairs, (0, 1, 3, 2)))
        pairs = tl.permute(tl.join(first + second, first - second), (0, 1, 3, 2))
        rows = tl.reshape(pairs, (count, size))
    return rows * (1.0 / (size * 1.0) ** 0.5)


@triton.jit(do_not_specialize=["rows"])
def _rotate_kernel(
    source,
    target,
    rows,
    token_stride,
    head_stride,
    heads: tl.constexpr,
    head_size: tl.constexpr,
    rows_a_program: tl.constexpr,
):
    row = tl.program_id(0) * rows_a_program + tl.arange(0, rows_a_program)
    inside = (row < rows)[:, None]
    channel = tl.arange(0, head_size)[None, :]
    at = (row // heads).to(tl.int64) * token_stride + row % heads * head_stride
    tile = tl.load(source + at[:, None] + channel, mask=inside, other=0.0).to(tl.float32)
    to = target + row.to(tl.int64)[:, None] * head_size + channel
    tl.store(to, butterfly(tile, rows_a_program, head_size).to(target.dtype.element_ty), mask=inside)


def rotate(source: torch.Tensor, target: torch.Tensor) -> None:
    """Write the rotated rows of `source` [tokens, heads, head_size], channels contiguous, to `target`.

    target: the same shape, contiguous.
    """
    tokens, heads, head_size = source.shape
    many = 16
    _rotate_kernel[(triton.cdiv(tokens * heads, many),)](
        source, target, tokens * heads, source.stride(0), source.stride(1), heads, head_size, many
    )
