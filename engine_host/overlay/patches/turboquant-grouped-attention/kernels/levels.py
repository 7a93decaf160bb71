"""The sixteen levels of a 4-bit key.

They are those of Lloyd and Max for a normal distribution, moved to numbers that fp8 e4m3 holds exactly: a
4-bit key is then one table look-up away from what the tensor cores multiply. Expected squared error 0.00957
of the variance; unrestricted levels reach 0.00950 (Max, 1960). The sign is bit 3 of a nibble, the magnitude
its bits 0 to 2.
"""

import triton
import triton.language as tl

LEVELS = (1.125, 3.25, 5.5, 8.0, 11.0, 14.0, 18.0, 24.0)
# So many units of a level are one standard deviation.
UNITS = 8.73
# The same magnitudes as e4m3 bytes, four to a word, smallest first.
LOW_WORD = 0x504B4539
HIGH_WORD = 0x5C595653


@triton.jit
def nearest(magnitude):
    """The index 0 to 7 of the level nearest to a magnitude in units: bounds lie half-way between levels."""
    index = (magnitude > 2.1875).to(tl.int32)
    index += (magnitude > 4.375).to(tl.int32)
    index += (magnitude > 6.75).to(tl.int32)
    index += (magnitude > 9.5).to(tl.int32)
    index += (magnitude > 12.5).to(tl.int32)
    index += (magnitude > 16.0).to(tl.int32)
    return index + (magnitude > 21.0).to(tl.int32)


@triton.jit
def level(index):
    """The fp32 magnitude of an index 0 to 7."""
    low = tl.where(index == 0, 1.125, tl.where(index == 1, 3.25, tl.where(index == 2, 5.5, 8.0)))
    high = tl.where(index == 4, 11.0, tl.where(index == 5, 14.0, tl.where(index == 6, 18.0, 24.0)))
    return tl.where(index < 4, low, high)
