"""From nibbles, and from fp32, to what the tensor cores multiply.

Functions with two bodies give the same numbers from both: PTX that handles four bytes of a register at once,
and plain Triton for the interpreter, which knows no assembly.
"""

import os

import triton
import triton.language as tl

from .levels import level

ASSEMBLY = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") != "1")


@triton.jit
def rounded_to_4_bits(number):
    """fp32 with 4 significant bits left, to nearest even: what e4m3 holds from 2 ** -6 up."""
    bits = number.to(tl.int32, bitcast=True)
    bits = (bits + 0x7FFFF + ((bits >> 20) & 1)) & -0x100000
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def to_fp8(number):
    """fp32 to e4m3, to nearest even."""
    if not ASSEMBLY:
        # The interpreter drops the carry of a mantissa that rounds up to the next power of two: 1.97 becomes
        # 1.0. Rounded beforehand, there is nothing left for it to round.
        number = rounded_to_4_bits(number)
    return number.to(tl.float8e4nv)


@triton.jit
def values_of(packed, scale):
    """The fp16 values of the low and of the high nibbles of `packed` uint8.

    scale: int32 of the same shape, step (fp16) in its lower and centre (fp16) in its upper half. 0x6400 | n
    is the fp16 number 1024 + n, and 0x6400 | n << 4 is 1024 + 16 n: two nibbles become numbers in one logical
    instruction, exactly (Kim et al. 2022, "Who says elephants can't run").
    """
    if ASSEMBLY:
        low, high = tl.inline_asm_elementwise(
            """{
            .reg .b32 even, odd, step, centre, p, q, r, s, eight, sixteenth, shift;
            mov.b32 eight, 0x64086408;
            mov.b32 sixteenth, 0x2c002c00;
            mov.b32 shift, 0xd480d480;
            prmt.b32 step, $5, $5, 0x1010;
            prmt.b32 centre, $5, $5, 0x3232;
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
            fma.rn.f16x2 $0, p, step, centre;
            fma.rn.f16x2 $1, q, step, centre;
            fma.rn.f16x2 $2, r, step, centre;
            fma.rn.f16x2 $3, s, step, centre;
            }""",
            "=r,=r,=r,=r,r,r,r,r,r",
            [packed, scale],
            dtype=(tl.float16, tl.float16),
            is_pure=True,
            pack=4,
        )
    else:
        step = (scale & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
        centre = (scale >> 16).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
        low = (((packed & 15).to(tl.float32) - 8.0) * step + centre).to(tl.float16)
        high = (((packed >> 4).to(tl.float32) - 8.0) * step + centre).to(tl.float16)
    return low, high


@triton.jit
def fp8_byte_of(number):
    """The byte of fp32 as e4m3, to nearest even, for GPUs that have no instruction for it (before SM 8.9).

    Triton's own way there is another format, which ends at 1.75. Numbers are within 448 of zero.
    """
    size = tl.abs(number)
    bits = (rounded_to_4_bits(size).to(tl.int32, bitcast=True) >> 20) - ((127 - 7) << 3)
    # Below 2 ** -6 the byte counts steps of 2 ** -9. Adding 1.5 * 2 ** 23 rounds to whole numbers.
    few = (size * 512.0 + 12582912.0).to(tl.int32, bitcast=True) & 15
    byte = tl.where(size < 0.015625, few, bits)
    return (byte | ((number.to(tl.int32, bitcast=True) >> 24) & 0x80)).to(tl.uint8)


@triton.jit
def shifted_fp8(byte):
    """The fp16 number that is an e4m3 byte times 2 ** -8, exactly: as Marlin does (Frantar et al. 2024)."""
    wide = byte.to(tl.int16)
    return (((wide & 0x80) << 8) | ((wide & 0x7F) << 7)).to(tl.float16, bitcast=True)


@triton.jit
def signed_level(code):
    """The fp32 level of a nibble of a 4-bit key."""
    magnitude = level((code & 7).to(tl.int32))
    return tl.where((code & 8) != 0, -magnitude, magnitude)


@triton.jit
def key_levels_of(packed):
    """The fp8 levels of the low and the high nibbles of `packed` uint8, four at a time, by bytes."""
    if ASSEMBLY:
        low, high = tl.inline_asm_elementwise(
            """{
            .reg .b32 w, x, y, l, h;
            mov.b32 l, 0x504b4539;
            mov.b32 h, 0x5c595653;
            and.b32 x, $2, 0x07070707;
            shr.b32 y, x, 4;
            or.b32 x, x, y;
            prmt.b32 x, x, 0, 0x4420;
            prmt.b32 x, l, h, x;
            shl.b32 y, $2, 4;
            lop3.b32 $0, y, 0x80808080, x, 0xea;
            shr.b32 w, $2, 4;
            and.b32 x, w, 0x07070707;
            shr.b32 y, x, 4;
            or.b32 x, x, y;
            prmt.b32 x, x, 0, 0x4420;
            prmt.b32 x, l, h, x;
            lop3.b32 $1, $2, 0x80808080, x, 0xea;
            }""",
            "=r,=r,r",
            [packed],
            dtype=(tl.float8e4nv, tl.float8e4nv),
            is_pure=True,
            pack=4,
        )
    else:
        low = signed_level(packed & 15).to(tl.float8e4nv)
        high = signed_level(packed >> 4).to(tl.float8e4nv)
    return low, high
