"""Scores of a tile on Hopper, each in one thread: see `hopper.py`.

The product has 32 query rows, of which 8 or 16 may be real. Then each real row is in it several times, side
by side, in other lanes of the same warp; of its tokens each of these copies takes a part of its own, so that
a thread has fewer scores and what is done with a score is done once.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

TILE = gl.constexpr(64)
PRODUCT_ROWS = gl.constexpr(32)


@gluon.constexpr_function
def layout_of_scores(copies):
    """The layout of the scores [32 / copies, 64] once both terms are summed: a warp has its rows alone.

    By bits of the number of a register, a lane and a warp: what each adds to (row, token). Lanes that share a
    row lie side by side, as Triton's sums over lanes want them.
    """
    registers = [[0, 1], [0, 8], [0, 16], [0, 32]]
    lanes, warps = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[8, 0], [16, 0]]
    if copies == 2:
        registers = [[0, 1], [0, 8], [0, 16]]
        lanes, warps = [[0, 2], [0, 4], [0, 32], [1, 0], [2, 0]], [[4, 0], [8, 0]]
    elif copies == 4:
        registers = [[0, 1], [0, 8]]
        lanes, warps = [[0, 2], [0, 4], [0, 16], [0, 32], [1, 0]], [[2, 0], [4, 0]]
    return gl.DistributedLinearLayout(registers, lanes, warps, [], [32 // copies, 64])


@gluon.constexpr_function
def layout_of_norms(copies):
    """The norms of the tokens of a thread's scores lie side by side.

    Index 16 * quarter + place is token place // 2 * 8 + quarter * 2 + place % 2.
    """
    registers, lanes = [[1], [2], [4], [8]], [[16], [32], [0], [0], [0]]
    if copies == 2:
        registers, lanes = [[1], [2], [4]], [[16], [32], [8], [0], [0]]
    elif copies == 4:
        registers, lanes = [[1], [2]], [[16], [32], [4], [8], [0]]
    return gl.DistributedLinearLayout(registers, lanes, [[0], [0]], [], [64])


@gluon.jit
def of_rows(numbers, copies: gl.constexpr, layout: gl.constexpr):
    """Numbers of the product's 32 rows, equal in all copies, as those of the real rows."""
    once = gl.max(gl.reshape(numbers, (PRODUCT_ROWS // copies, copies)), 1)
    return gl.convert_layout(once, layout)


@gluon.jit
def _part(scores, bit: gl.constexpr):
    """Of each row's tokens the first half, in copies with this bit of their number the second."""
    tokens: gl.constexpr = scores.shape[1] // 2
    first, second = gl.split(gl.permute(gl.reshape(scores, (PRODUCT_ROWS, 2, tokens)), (0, 2, 1)))
    place = gl.arange(0, PRODUCT_ROWS, layout=gl.SliceLayout(1, first.type.layout))
    return gl.where(((place & bit) == 0)[:, None], first, second)


@gluon.jit
def scores_of(products, copies: gl.constexpr):
    """The scores [32 / copies, 64] from both terms of the product's rows, without leaving their threads."""
    scores = gl.reshape(gl.sum(gl.reshape(products, (4, 2, 8, TILE)), 1), (PRODUCT_ROWS, TILE))
    if copies == 4:
        scores = _part(scores, 2)
    if copies > 1:
        scores = gl.reshape(_part(scores, 1), (PRODUCT_ROWS // copies, TILE))
    return gl.convert_layout(scores, layout_of_scores(copies))
