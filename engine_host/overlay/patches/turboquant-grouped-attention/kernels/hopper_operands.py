"""From the cache's nibbles to what Hopper's tensor cores multiply: see `hopper.py`."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .hopper_scores import TILE, layout_of_norms


@gluon.constexpr_function
def layout_of_results(rows):
    """The layout of the answer, channels by rows."""
    return gl.NVMMADistributedLayout([3, 0], [4, 1], [16, rows, 16])


@gluon.constexpr_function
def layout_of_pairs(head_size):
    """Pairs of bytes of 32 tokens' values: each where the tensor cores want the four numbers it holds.

    With heads of 64 a thread has one byte of each token, and pairs are bytes. By bits of the number of a
    register, a lane and a warp: what each adds to (token, pair).
    """
    if head_size == 64:
        return gl.DistributedLinearLayout(
            [[1, 0], [8, 0], [16, 0]],
            [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]],
            [[0, 8], [0, 16]],
            [],
            [32, 32],
        )
    near = head_size // 128
    return gl.DistributedLinearLayout(
        [[1, 0], [8, 0], [16, 0]] + ([[0, 1]] if near == 2 else []),
        [[2, 0], [4, 0], [0, near], [0, 2 * near], [0, 4 * near]],
        [[0, 8 * near], [0, 16 * near]],
        [],
        [32, head_size // 4],
    )


@gluon.jit
def _numbers_of(pairs, scale):
    """The fp16 values of the four nibbles of each 16-bit word, lowest first; see `values_of` in `convert.py`.

    Two words of neighbouring tokens share a register: half of it is one token's value, half the other's.
    """
    return gl.inline_asm_elementwise(
        """{
        .reg .b32 step, centre, p, q, r, s, w, eight, sixteenth, shift;
        mov.b32 eight, 0x64086408;
        mov.b32 sixteenth, 0x2c002c00;
        mov.b32 shift, 0xd480d480;
        prmt.b32 step, $5, $6, 0x5410;
        prmt.b32 centre, $5, $6, 0x7632;
        shr.b32 w, $4, 8;
        lop3.b32 p, $4, 0x000f000f, 0x64006400, 0xea;
        lop3.b32 q, $4, 0x00f000f0, 0x64006400, 0xea;
        lop3.b32 r, w, 0x000f000f, 0x64006400, 0xea;
        lop3.b32 s, w, 0x00f000f0, 0x64006400, 0xea;
        sub.rn.f16x2 p, p, eight;
        sub.rn.f16x2 r, r, eight;
        fma.rn.f16x2 q, q, sixteenth, shift;
        fma.rn.f16x2 s, s, sixteenth, shift;
        fma.rn.f16x2 $0, p, step, centre;
        fma.rn.f16x2 $1, q, step, centre;
        fma.rn.f16x2 $2, r, step, centre;
        fma.rn.f16x2 $3, s, step, centre;
        }""",
        "=r,=r,=r,=r,r,r,r",
        [pairs, scale],
        dtype=(gl.float16, gl.float16, gl.float16, gl.float16),
        is_pure=True,
        pack=2,
    )


@gluon.jit
def _numbers_of_bytes(packed, scale):
    """The same for bytes: four tokens share a register, whose low nibbles are one channel's values."""
    return gl.inline_asm_elementwise(
        """{
        .reg .b32 step0, centre0, step1, centre1, even, odd, p, q, r, s, eight, sixteenth, shift;
        mov.b32 eight, 0x64086408;
        mov.b32 sixteenth, 0x2c002c00;
        mov.b32 shift, 0xd480d480;
        prmt.b32 step0, $5, $6, 0x5410;
        prmt.b32 centre0, $5, $6, 0x7632;
        prmt.b32 step1, $7, $8, 0x5410;
        prmt.b32 centre1, $7, $8, 0x7632;
        prmt.b32 even, $4, 0, 0x4140;
        prmt.b32 odd, $4, 0, 0x4342;
        lop3.b32 p, even, 0x000f000f, 0x64006400, 0xea;
        lop3.b32 q, odd, 0x000f000f, 0x64006400, 0xea;
        lop3.b32 r, even, 0x00f000f0, 0x64006400, 0xea;
        lop3.b32 s, odd, 0x00f000f0, 0x64006400, 0xea;
        sub.rn.f16x2 p, p, eight;
        sub.rn.f16x2 q, q, eight;
        fma.rn.f16x2 r, r, sixteenth, shift;
        fma.rn.f16x2 s, s, sixteenth, shift;
        fma.rn.f16x2 $0, p, step0, centre0;
        fma.rn.f16x2 $1, q, step1, centre1;
        fma.rn.f16x2 $2, r, step0, centre0;
        fma.rn.f16x2 $3, s, step1, centre1;
        }""",
        "=r,=r,=r,=r,r,r,r,r,r",
        [packed, scale],
        dtype=(gl.float16, gl.float16),
        is_pure=True,
        pack=4,
    )


@gluon.jit
def _levels_of(packed):
    """The fp8 levels of eight nibbles as two words, in the order of the nibbles; see `levels.py`."""
    return gl.inline_asm_elementwise(
        """{
        .reg .b32 x, y, z, l, h;
        mov.b32 l, 0x504b4539;
        mov.b32 h, 0x5c595653;
        and.b32 x, $2, 0x77777777;
        shr.u32 y, x, 16;
        prmt.b32 x, l, h, x;
        prmt.b32 y, l, h, y;
        shl.b32 z, $2, 4;
        prmt.b32 l, z, $2, 0x5140;
        prmt.b32 h, z, $2, 0x7362;
        lop3.b32 $0, l, 0x80808080, x, 0xea;
        lop3.b32 $1, h, 0x80808080, y, 0xea;
        }""",
        "=&r,=&r,r",
        [packed],
        dtype=(gl.int32, gl.int32),
        is_pure=True,
        pack=1,
    )


@gluon.jit
def expand(memory, norm_memory, codes, norms, head_size: gl.constexpr):
    """Write a tile's 4-bit keys as fp8, channels as their nibbles lie: 0, half, 1, half + 1 and so on.

    Norms are written in the order in which a thread multiplies them.
    """
    first, second = _levels_of(codes)
    words: gl.constexpr = gl.NVMMASharedLayout(128 if head_size > 64 else 64, 32)
    memory = memory._reinterpret(gl.int32, [TILE, head_size // 4], words)
    memory.store(gl.reshape(gl.join(first, second), (TILE, head_size // 4)))
    numbers = gl.permute(gl.reshape(norms.to(gl.float32), (8, 4, 2)), (1, 0, 2))
    norm_memory.store(gl.reshape(numbers, (TILE,)))


@gluon.jit
def norms_of(norm_memory, copies: gl.constexpr, layout: gl.constexpr):
    """The norms that `expand` wrote, as those of a tile's tokens in a layout."""
    lengths = gl.permute(gl.reshape(norm_memory.load(layout_of_norms(copies)), (4, 8, 2)), (1, 0, 2))
    return gl.convert_layout(gl.reshape(lengths, (TILE,)), layout)


@gluon.jit
def values_of(pairs, scale, rows: gl.constexpr, head_size: gl.constexpr):
    """Values of 32 tokens as an operand [head_size, 32], without leaving the registers they are in.

    Its rows are channels in the order that makes this so: `channels_in_order` undoes it.
    """
    spread, _ = gl.broadcast(scale[:, None], pairs)
    if head_size == 64:
        low, high = _numbers_of_bytes(pairs, spread)
        numbers = gl.permute(gl.reshape(gl.join(low, high), (32, 4, 8, 2)), (1, 3, 2, 0))
    else:
        near: gl.constexpr = head_size // 128
        first, second, third, fourth = _numbers_of(pairs, spread)
        # In the last two dimensions the nibble of a byte and the byte of a pair.
        numbers = gl.join(gl.join(first, second), gl.join(third, fourth))
        numbers = gl.permute(gl.reshape(numbers, (32, 4, 8, near, 2, 2)), (4, 3, 1, 5, 2, 0))
    return gl.convert_layout(
        gl.reshape(numbers, (head_size, 32)), gl.DotOperandLayout(0, layout_of_results(rows), 2)
    )


@gluon.jit
def channels_in_order(result, rows: gl.constexpr, head_size: gl.constexpr):
    """[rows, head_size] of a result whose rows are in the order of `values_of`."""
    if head_size == 64:
        parts = gl.permute(gl.reshape(result, (4, 2, 8, rows)), (3, 1, 0, 2))
    else:
        near: gl.constexpr = head_size // 128
        parts = gl.permute(gl.reshape(result, (2, near, 4, 2, 8, rows)), (5, 0, 2, 4, 1, 3))
    return gl.reshape(parts, (rows, head_size))
