"""Decode and verify on Hopper (SM 9.0): what `decode.py` does, for at most 32 query rows.

In Gluon, Triton's language with explicit layouts, for two things that Triton decides by itself otherwise:

Scores are queries times keys here. The 64 rows of that product are 32 query rows twice: rounded to fp8, and
what the rounding left. Both terms of a score lie in one thread and a query row in four, so that no warp waits
for another before it has its weights. Where fewer than 32 rows are real, more threads share each:
`hopper_scores.py`.

Values go from the cache's bytes to fp16 in just those registers from which the tensor cores read them: a
thread loads the nibbles of its own channels. Weights alone are written to shared memory, and a turn has one
barrier; behind it this turn's values and the next turn's scores are multiplied at the same time.

Keys of 4 bits are loaded into registers a turn ahead and become fp8 in shared memory before that barrier.
Their channels lie there as the nibbles do, and so do the queries'.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from .hopper_operands import (
    channels_in_order,
    expand,
    layout_of_pairs,
    layout_of_results,
    norms_of,
    values_of,
)
from .hopper_scores import (
    PRODUCT_ROWS,
    TILE,
    layout_of_scores,
    of_rows,
    scores_of,
)

# As in `decode.py`: small weights stay clear of fp16's subnormal numbers.
HEADROOM = gl.constexpr(5.0)
PRODUCTS = gl.constexpr(gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 32]))


@gluon.jit
def _rounded_to_4_bits(number):
    """As in `convert.py`: by way of fp8 and back ptxas makes wrong code."""
    bits = number.to(gl.int32, bitcast=True)
    bits = (bits + 0x7FFFF + ((bits >> 20) & 1)) & -0x100000
    return bits.to(gl.float32, bitcast=True)


@gluon.jit
def _blocks_at(table_row, start, last, block_size: gl.constexpr):
    """The blocks of the tile that starts at a token: as scalars, whose load has a turn to arrive in."""
    begin = start // block_size
    block0 = gl.load(table_row + gl.minimum(begin, last))
    block1 = block0
    block2 = block0
    block3 = block0
    if block_size < 64:
        block1 = gl.load(table_row + gl.minimum(begin + 1, last))
    if block_size < 32:
        block2 = gl.load(table_row + gl.minimum(begin + 2, last))
        block3 = gl.load(table_row + gl.minimum(begin + 3, last))
    return block0, block1, block2, block3


@gluon.jit
def _distance(token, blocks, piece: gl.constexpr, stride: gl.constexpr):
    """Return the offsets of a tile's tokens' blocks from the start of the cache."""
    place = token // piece
    block = token * 0 + blocks[0]
    if TILE // piece == 2:
        block = gl.where(place == 0, blocks[0], blocks[1])
    if TILE // piece == 4:
        block = gl.where(place == 2, blocks[2], blocks[3])
        block = gl.where(place == 0, blocks[0], gl.where(place == 1, blocks[1], block))
    return block.to(gl.int64) * stride


@gluon.jit
def _copy_tile(
    memory,
    caches,
    blocks,
    start,
    head,
    head_size: gl.constexpr,
    block_size: gl.constexpr,
    block_stride: gl.constexpr,
    fp8_keys: gl.constexpr,
):
    """Start the copy of a tile's keys of 8 bits, values and scales.

    What stays the same in every turn is added first: one instruction then makes an address of a block.
    """
    half: gl.constexpr = head_size // 2
    key_bytes: gl.constexpr = head_size if fp8_keys else half
    value_offset: gl.constexpr = block_size * key_bytes
    scale_offset: gl.constexpr = value_offset + block_size * half
    page_bytes: gl.constexpr = scale_offset + block_size * (4 if fp8_keys else 6)
    piece: gl.constexpr = block_size if block_size < TILE else TILE
    within = start & (block_size - 1) if block_size > TILE else 0

    if fp8_keys:
        layout: gl.constexpr = gl.BlockedLayout([1, 16], [512 // head_size, head_size // 16], [4, 1], [1, 0])
        token = gl.arange(0, TILE, layout=gl.SliceLayout(1, layout))
        channel = gl.arange(0, head_size, layout=gl.SliceLayout(0, layout))
        at = caches[0] + head * page_bytes + (((token & (piece - 1)) * head_size)[:, None] + channel[None, :])
        at += (_distance(token, blocks, piece, block_stride) + within * head_size)[:, None]
        async_copy.async_copy_global_to_shared(memory[0], at)

    # Bytes of an element of the values.
    wide: gl.constexpr = 1 if head_size == 64 else 2
    narrow: gl.constexpr = gl.BlockedLayout([1, 16 // wide], [512 // half, half // 16], [4, 1], [1, 0])
    token = gl.arange(0, TILE, layout=gl.SliceLayout(1, narrow))
    pair = gl.arange(0, half // wide, layout=gl.SliceLayout(0, narrow))
    at = caches[1] + (head * (page_bytes // wide) + value_offset // wide)
    at += ((token & (piece - 1)) * (half // wide))[:, None] + pair[None, :]
    at += (_distance(token, blocks, piece, block_stride // wide) + within * (half // wide))[:, None]
    async_copy.async_copy_global_to_shared(memory[1], at)

    token = gl.arange(0, TILE, layout=gl.BlockedLayout([1], [32], [4], [0]))
    at = caches[2] + (head * (page_bytes // 4) + scale_offset // 4) + (token & (piece - 1))
    async_copy.async_copy_global_to_shared(
        memory[2], at + (_distance(token, blocks, piece, block_stride // 4) + within)
    )
    async_copy.commit_group()


@gluon.jit
def _codes_at(
    caches,
    blocks,
    start,
    head,
    head_size: gl.constexpr,
    block_size: gl.constexpr,
    block_stride: gl.constexpr,
):
    """A tile's 4-bit keys and their norms, in registers: their load has a turn to arrive in."""
    half: gl.constexpr = head_size // 2
    page_bytes: gl.constexpr = block_size * (head_size + 6)
    norm_offset: gl.constexpr = block_size * (head_size + 4)
    piece: gl.constexpr = block_size if block_size < TILE else TILE
    within = start & (block_size - 1) if block_size > TILE else 0
    words: gl.constexpr = half // 4
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [512 // half, half // 16], [4, 1], [1, 0])
    token = gl.arange(0, TILE, layout=gl.SliceLayout(1, layout))
    word = gl.arange(0, words, layout=gl.SliceLayout(0, layout))
    at = caches[2] + head * (page_bytes // 4) + (((token & (piece - 1)) * words)[:, None] + word[None, :])
    at += (_distance(token, blocks, piece, block_stride // 4) + within * words)[:, None]
    codes = gl.load(at)
    token = gl.arange(0, TILE, layout=gl.BlockedLayout([1], [32], [4], [0]))
    at = caches[3] + (head * (page_bytes // 2) + norm_offset // 2) + (token & (piece - 1))
    norms = gl.load(at + (_distance(token, blocks, piece, block_stride // 2) + within))
    return codes, norms


@gluon.jit
def _scores(query, keys):
    """Start the product of both terms of all rows with a tile's keys."""
    nothing = gl.zeros([2 * PRODUCT_ROWS, TILE], gl.float32, PRODUCTS)
    return warpgroup_mma(query, keys.permute((1, 0)), nothing, use_acc=False, is_async=True)


@gluon.jit
def _turn(
    products,
    result,
    highest,
    total,
    blocks,
    codes,
    norms,
    start,
    end,
    unmasked,
    limit,
    to_log2,
    caches,
    table_row,
    last,
    head,
    query,
    memory,
    next_keys,
    next_norms,
    weights_memory,
    decay_memory,
    rows: gl.constexpr,
    copies: gl.constexpr,
    head_size: gl.constexpr,
    block_size: gl.constexpr,
    block_stride: gl.constexpr,
    fp8_keys: gl.constexpr,
):
    """Add one tile's values to the result, and multiply the next one's scores.

    products: both terms of this tile's scores. blocks: those of the tile after the next, whose copy takes the
    place of this one.
    """
    pair_layout: gl.constexpr = layout_of_pairs(head_size)
    token_layout: gl.constexpr = gl.SliceLayout(1, pair_layout)
    pairs0 = memory[1].slice(0, 32, 0).load(pair_layout)
    pairs1 = memory[1].slice(32, 32, 0).load(pair_layout)
    scale0 = memory[2].slice(0, 32, 0).load(token_layout)
    scale1 = memory[2].slice(32, 32, 0).load(token_layout)
    by_token: gl.constexpr = gl.SliceLayout(0, layout_of_scores(copies))
    scores = scores_of(products, copies)
    if not fp8_keys:
        scores = scores * norms_of(memory[3], copies, by_token)[None, :]
    if start + TILE > unmasked:
        token = start + gl.arange(0, TILE, layout=by_token)
        scores = gl.where(token[None, :] < limit[:, None], scores, -float("inf"))
        # Slots beyond the end were never written and may hold NaN; with scale 0 their values are 0.
        slot = start + gl.arange(0, 32, layout=token_layout)
        scale0 = gl.where(slot < end, scale0, 0)
        scale1 = gl.where(slot + 32 < end, scale1, 0)
    risen = gl.maximum(highest, gl.max(scores, 1) * to_log2)
    shift = gl.where(risen == -float("inf"), 0.0, risen - HEADROOM)
    decay = gl.exp2(highest - HEADROOM - shift)
    weights = gl.exp2(scores * to_log2[:, None] - shift[:, None])
    total = total * decay + gl.sum(weights, 1)
    weights_memory.store(weights.to(gl.float16))
    decay_memory.store(decay)
    if not fp8_keys:
        expand(next_keys, next_norms, codes, norms, head_size)
    # The tensor cores see what was written before it; Triton's own loops do without for copies.
    fence_async_shared()
    async_copy.wait_group(0)
    # The wait ends in the turn's barrier: from here on the weights and the next tile are there for all warps,
    # and nobody reads this tile any more.
    products = _scores(query, next_keys)
    _copy_tile(memory, caches, blocks, start + 2 * TILE, head, head_size, block_size, block_stride, fp8_keys)
    if not fp8_keys:
        codes, norms = _codes_at(caches, blocks, start + 2 * TILE, head, head_size, block_size, block_stride)
    blocks = _blocks_at(table_row, start + 3 * TILE, last, block_size)
    kept = decay_memory.slice(0, rows, 0).load(gl.SliceLayout(0, layout_of_results(rows)))
    right = weights_memory.slice(0, rows, 0).permute((1, 0))
    values0 = values_of(pairs0, scale0, rows, head_size)
    result = result * kept[None, :]
    result = warpgroup_mma(values0, right.slice(0, 32, 0), result, is_async=True)
    values1 = values_of(pairs1, scale1, rows, head_size)
    result = warpgroup_mma(values1, right.slice(32, 32, 0), result, is_async=True)
    products, result, values0, values1 = warpgroup_mma_wait(0, deps=(products, result, values0, values1))
    return products, result, risen, total, blocks, codes, norms


@gluon.jit(
    do_not_specialize=["table_stride", "fixed_shares"],
    do_not_specialize_on_alignment=["table", "lengths", "starts", "shares"],
)
def hopper_kernel(
    queries,
    fp8_cache,
    pair_cache,
    word_cache,
    norm_cache,
    table,
    lengths,
    starts,
    shares,
    partial,
    partial_lse,
    scale_log2,
    query_token_stride,
    query_head_stride,
    table_stride,
    fixed_shares,
    group: gl.constexpr,
    rows: gl.constexpr,
    kv_heads: gl.constexpr,
    head_size: gl.constexpr,
    block_size: gl.constexpr,
    block_stride: gl.constexpr,
    fixed_share: gl.constexpr,
    fp8_keys: gl.constexpr,
):
    """Attention of one share; arguments and what is written as in `decode_kernel`.

    A row's numbers depend on no row beside it here either. pair_cache: the cache as int16, with heads of 64
    as int8; norm_cache: as fp16. Queries for keys of 4 bits are rotated.
    """
    head = gl.program_id(0)
    slot = gl.program_id(1)
    if fixed_share > 0:
        request = slot // fixed_shares
        first = slot % fixed_shares * fixed_share
        end = first + fixed_share
    else:
        request = gl.load(shares + slot * 4)
        first = gl.load(shares + slot * 4 + 1) * TILE
        end = gl.load(shares + slot * 4 + 2) * TILE
    length = gl.load(lengths + request)
    end = gl.minimum(end, length)
    query_start = gl.load(starts + request)
    tokens = gl.load(starts + request + 1) - query_start
    # In batch-invariant mode a row's sums may not depend on how many rows are beside it.
    copies: gl.constexpr = 1 if fixed_share > 0 else PRODUCT_ROWS // rows
    own_rows: gl.constexpr = PRODUCT_ROWS // copies
    row_layout: gl.constexpr = gl.SliceLayout(1, layout_of_scores(copies))
    row = gl.arange(0, own_rows, layout=row_layout)
    out = (slot * kv_heads + head) * rows
    if (first >= end) | (tokens <= 0):
        nothing = gl.full([own_rows], -float("inf"), gl.float32, layout=row_layout)
        gl.store(partial_lse + out + row, nothing, mask=row < rows)
        return

    # Every stage has memory of its own: barriers keep apart what shares a piece of it.
    fp8: gl.constexpr = gl.NVMMASharedLayout(128 if head_size > 64 else 64, 8)
    fp16: gl.constexpr = gl.NVMMASharedLayout(128, 16)
    # Swizzled so that the eight tokens a warp reads at once lie in different banks.
    swizzled: gl.constexpr = (
        gl.SwizzledSharedLayout(16, 4, 2, [1, 0])
        if head_size == 64
        else gl.SwizzledSharedLayout(8, 256 // head_size, head_size // 32, [1, 0])
    )
    element: gl.constexpr = gl.int8 if head_size == 64 else gl.int16
    places: gl.constexpr = 32 if head_size == 64 else head_size // 4
    line: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    keys = (
        gl.allocate_shared_memory(gl.float8e4nv, [TILE, head_size], fp8),
        gl.allocate_shared_memory(gl.float8e4nv, [TILE, head_size], fp8),
    )
    values = (
        gl.allocate_shared_memory(element, [TILE, places], swizzled),
        gl.allocate_shared_memory(element, [TILE, places], swizzled),
    )
    scales = (
        gl.allocate_shared_memory(gl.int32, [TILE], line),
        gl.allocate_shared_memory(gl.int32, [TILE], line),
    )
    norms_memory = (
        gl.allocate_shared_memory(gl.float32, [TILE], line),
        gl.allocate_shared_memory(gl.float32, [TILE], line),
    )
    weights = (
        gl.allocate_shared_memory(gl.float16, [own_rows, TILE], fp16),
        gl.allocate_shared_memory(gl.float16, [own_rows, TILE], fp16),
    )
    decays = (
        gl.allocate_shared_memory(gl.float32, [own_rows], line),
        gl.allocate_shared_memory(gl.float32, [own_rows], line),
    )

    caches = (fp8_cache, pair_cache, word_cache, norm_cache)
    table_row = table + request * table_stride
    last = (end - 1) // block_size
    blocks = _blocks_at(table_row, first, last, block_size)
    codes = 0
    norms = 0
    if not fp8_keys:
        codes, norms = _codes_at(caches, blocks, first, head, head_size, block_size, block_stride)
    for stage in gl.static_range(2):
        start = first + stage * TILE
        memory = (keys[stage], values[stage], scales[stage])
        _copy_tile(memory, caches, blocks, start, head, head_size, block_size, block_stride, fp8_keys)
        if stage == 1 and not fp8_keys:
            expand(keys[0], norms_memory[0], codes, norms, head_size)
            codes, norms = _codes_at(caches, blocks, start, head, head_size, block_size, block_stride)
        blocks = _blocks_at(table_row, start + TILE, last, block_size)

    # The queries' two terms, as in `decode.py`; of each sixteen rows the first eight are the first term.
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    query_row = gl.arange(0, PRODUCT_ROWS, layout=gl.SliceLayout(1, layout)) // copies
    channel = gl.arange(0, head_size, layout=gl.SliceLayout(0, layout))
    at = (query_start + query_row // group) * query_token_stride
    at += (head * group + query_row % group) * query_head_stride
    real = (query_row < group * tokens)[:, None]
    if not fp8_keys:
        # The order of `expand`.
        channel = channel // 2 + channel % 2 * (head_size // 2)
    given = gl.load(queries + at[:, None] + channel[None, :], mask=real, other=0.0).to(gl.float32)
    # The exponent alone: the largest number of a row ends between 192 and 384, below e4m3's 448.
    inverse_step = 384.0 / gl.maximum(gl.max(gl.abs(given), 1), 1e-30)
    inverse_step = (inverse_step.to(gl.int32, bitcast=True) & 0x7F800000).to(gl.float32, bitcast=True)
    scaled = given * inverse_step[:, None]
    rounded = _rounded_to_4_bits(scaled)
    both = gl.join(rounded.to(gl.float8e4nv), (scaled - rounded).to(gl.float8e4nv))
    both = gl.permute(gl.reshape(both, (4, 8, head_size, 2)), (0, 3, 1, 2))
    both = gl.reshape(both, (2 * PRODUCT_ROWS, head_size))
    query = gl.allocate_shared_memory(gl.float8e4nv, [2 * PRODUCT_ROWS, head_size], fp8, both)
    to_log2 = scale_log2 / of_rows(inverse_step, copies, row_layout)

    limit = gl.minimum(length - tokens + 1 + row // group, end)
    unmasked = gl.minimum(length - tokens + 1, end)
    highest = gl.full([own_rows], -float("inf"), gl.float32, layout=row_layout)
    total = gl.zeros([own_rows], gl.float32, layout=row_layout)
    result = gl.zeros([head_size, rows], gl.float32, layout=layout_of_results(rows))
    fence_async_shared()
    async_copy.wait_group(1)
    products = warpgroup_mma_wait(0, deps=(_scores(query, keys[0]),))
    for pair in range(first, end, 2 * TILE):
        for stage in gl.static_range(2):
            if stage == 0 or pair + TILE < end:
                products, result, highest, total, blocks, codes, norms = _turn(
                    products,
                    result,
                    highest,
                    total,
                    blocks,
                    codes,
                    norms,
                    pair + stage * TILE,
                    end,
                    unmasked,
                    limit,
                    to_log2,
                    caches,
                    table_row,
                    last,
                    head,
                    query,
                    (keys[stage], values[stage], scales[stage], norms_memory[stage]),
                    keys[1 - stage],
                    norms_memory[1 - stage],
                    weights[stage],
                    decays[stage],
                    rows,
                    copies,
                    head_size,
                    block_size,
                    block_stride,
                    fp8_keys,
                )
    async_copy.wait_group(0)

    decays[0].store(1.0 / gl.where(total > 0.0, total, 1.0))
    inverse = decays[0].slice(0, rows, 0).load(gl.SliceLayout(0, layout_of_results(rows)))
    answer = channels_in_order(result * inverse[None, :], rows, head_size)
    answer_layout: gl.constexpr = answer.type.layout
    answer_row = gl.arange(0, rows, layout=gl.SliceLayout(1, answer_layout))
    channel = gl.arange(0, head_size, layout=gl.SliceLayout(0, answer_layout))
    to = partial + (out + answer_row).to(gl.int64)[:, None] * head_size + channel[None, :]
    gl.store(to, answer.to(partial.dtype.element_ty), mask=(answer_row < group * tokens)[:, None])
    sums = highest - HEADROOM + gl.log2(gl.where(total > 0.0, total, 1.0))
    gl.store(partial_lse + out + row, gl.where(total > 0.0, sums, -float("inf")), mask=row < rows)
