"""Decode and verify: attention of a request's last 1 to 8 tokens over its quantised cache.

One program works for one KV head of one request and one share of its tokens, for all query heads and rows of
that head at once, so that every byte of the cache is read once. Scores are computed the other way round, keys
times queries: tokens fill the tensor cores' 64 rows and the few query rows become columns, of which any
multiple of 8 will do. Keys go from the cache to the tensor cores without passing a register.
"""

import triton
import triton.language as tl

from .convert import key_levels_of, rounded_to_4_bits, shifted_fp8, signed_level, to_fp8, values_of

# Weights are stored as fp16 times 2 ** 5: the small ones stay clear of fp16's subnormal numbers.
HEADROOM = tl.constexpr(5.0)


@triton.jit
def _two_terms(query, inverse_step, lower):
    """fp8 columns of a query: rounded, and where `lower` is set what rounding left over.

    The step is a power of two, so that a bf16 query's 8 bits survive it; an e4m3 number takes 4 of them and
    leaves 4 for the other: together they are the query, exactly.
    """
    scaled = query * inverse_step
    # Rounded as bits, not by way of fp8 and back: ptxas 12.8 merges the two packing instructions of that and
    # unpacks a register that nothing wrote (docs/kernels.md).
    rounded = rounded_to_4_bits(scaled)
    return to_fp8(tl.where(lower, scaled - rounded, rounded))


@triton.jit
def _summed(both, tile: tl.constexpr, rows: tl.constexpr):
    """Add the two terms' products: [tile, 2 * rows] to [tile, rows]; both lie in one thread's registers."""
    return tl.sum(tl.reshape(both, (tile, 2, rows)), 1)


@triton.jit(
    do_not_specialize=["table_stride", "fixed_shares"],
    do_not_specialize_on_alignment=["table", "lengths", "starts", "shares"],
)
def decode_kernel(
    queries,
    fp8_cache,
    byte_cache,
    word_cache,
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
    query_rows: tl.constexpr,
    group: tl.constexpr,
    rows: tl.constexpr,
    kv_heads: tl.constexpr,
    head_size: tl.constexpr,
    block_size: tl.constexpr,
    block_stride: tl.constexpr,
    fp8_keys: tl.constexpr,
    native_fp8: tl.constexpr,
    tile: tl.constexpr,
    whole_values: tl.constexpr,
    stages: tl.constexpr,
    fixed_share: tl.constexpr,
):
    """Attention of one share: partial [slot, head, rows, head_size] fp32 and its log2-sum-exp2.

    `shares` are those that `cut_kernel` wrote; with `fixed_share` each request has `fixed_shares` instead.

    Each request has query_rows query tokens. Where that is 0 they are those from its entry of `starts` to the
    next one's, at most rows // group; that takes registers. Row r is token r // group of head r % group and
    sees the first length - tokens + 1 + r // group tokens.

    A row's numbers never depend on the rows beside it. With `fixed_share`, the tokens of a share, they do not
    depend on the batch or the request's length either: the same row gives the same bits in any batch.

    native_fp8: the tensor cores multiply fp8 (SM 8.9 on). Without, keys become fp16 in registers: the byte's
    sign, exponent and mantissa shifted into an fp16's, which is the number times 2 ** -8, exactly.
    """
    half: tl.constexpr = head_size // 2
    key_bytes: tl.constexpr = head_size if fp8_keys else half
    value_offset: tl.constexpr = block_size * key_bytes
    scale_offset: tl.constexpr = value_offset + block_size * half
    norm_offset: tl.constexpr = scale_offset + block_size * 4
    page_bytes: tl.constexpr = norm_offset + (0 if fp8_keys else block_size * 2)
    head = tl.program_id(0)
    slot = tl.program_id(1)
    if fixed_share > 0:
        request = slot // fixed_shares
        first = slot % fixed_shares * fixed_share
        end = first + fixed_share
    else:
        request = tl.load(shares + slot * 4)
        first = tl.load(shares + slot * 4 + 1) * tile
        end = tl.load(shares + slot * 4 + 2) * tile
    length = tl.load(lengths + request)
    end = tl.minimum(end, length)
    if query_rows > 0:
        query_start = request * query_rows
        tokens = query_rows
    else:
        query_start = tl.load(starts + request)
        tokens = tl.load(starts + request + 1) - query_start
    row = tl.arange(0, rows)
    out = (slot * kv_heads + head) * rows + row
    if (first >= end) | (tokens <= 0):
        tl.store(partial_lse + out, tl.full([rows], -float("inf"), tl.float32))
        return

    # The queries; for fp8 two terms side by side: columns [0, rows) and [rows, 2 * rows).
    columns: tl.constexpr = 2 * rows if native_fp8 else rows
    both = tl.arange(0, columns)
    column = both % rows
    lower = (both >= rows)[None, :]
    real = column < group * tokens
    at = (query_start + column // group) * query_token_stride
    at += (head * group + column % group) * query_head_stride
    channel = tl.arange(0, head_size)
    channel_half = tl.arange(0, half)
    largest = tl.zeros([columns], tl.float32)
    if fp8_keys:
        query = tl.load(queries + at[None, :] + channel[:, None], mask=real[None, :], other=0.0).to(
            tl.float32
        )
        largest = tl.max(tl.abs(query), 0)
    else:
        query = tl.load(queries + at[None, :] + channel_half[:, None], mask=real[None, :], other=0.0)
        query = query.to(tl.float32)
        second = tl.load(queries + at[None, :] + half + channel_half[:, None], mask=real[None, :], other=0.0)
        second = second.to(tl.float32)
        largest = tl.maximum(tl.max(tl.abs(query), 0), tl.max(tl.abs(second), 0))
    # The exponent alone: the largest number of a row ends between 192 and 384, below e4m3's 448.
    inverse_step = 384.0 / tl.maximum(largest, 1e-30)
    inverse_step = (inverse_step.to(tl.int32, bitcast=True) & 0x7F800000).to(tl.float32, bitcast=True)
    if native_fp8:
        terms = _two_terms(query, inverse_step[None, :], lower)
        if not fp8_keys:
            second_terms = _two_terms(second, inverse_step[None, :], lower)
        # Both terms of a row have the same step.
        to_log2 = scale_log2 / (tl.sum(tl.reshape(inverse_step, (2, rows)), 0) * 0.5)
    else:
        terms = (query * inverse_step[None, :]).to(tl.float16)
        if fp8_keys:
            to_log2 = scale_log2 * 256.0 / inverse_step
        else:
            second_terms = (second * inverse_step[None, :]).to(tl.float16)
            to_log2 = scale_log2 / inverse_step

    limit = tl.minimum(length - tokens + 1 + row // group, end)
    unmasked = tl.minimum(length - tokens + 1, end)
    highest = tl.full([rows], -float("inf"), tl.float32)
    weight_sums = tl.zeros([tile, rows], tl.float32)
    wide: tl.constexpr = head_size if whole_values else half
    low_out = tl.zeros([wide, rows], tl.float32)
    high_out = tl.zeros([half, rows], tl.float32)
    token = tl.arange(0, tile)
    # A tile's blocks are scalars that the loop carries: their load has a whole turn to arrive in.
    blocks: tl.constexpr = tile // block_size if tile > block_size else 1
    table_row = table + request * table_stride
    last = (end - 1) // block_size
    begin = first // block_size
    block0 = tl.load(table_row + begin)
    block1 = block0
    block2 = block0
    block3 = block0
    if blocks > 1:
        block1 = tl.load(table_row + tl.minimum(begin + 1, last))
    if blocks > 2:
        block2 = tl.load(table_row + tl.minimum(begin + 2, last))
        block3 = tl.load(table_row + tl.minimum(begin + 3, last))
    for start in tl.range(first, end, tile, num_stages=stages):
        block = token * 0 + block0
        if blocks == 2:
            block = tl.where(token < block_size, block0, block1)
        if blocks == 4:
            place = token // block_size
            block = tl.where(
                place == 0, block0, tl.where(place == 1, block1, tl.where(place == 2, block2, block3))
            )
        within = (token + start) & (block_size - 1) if block_size > tile else token & (block_size - 1)
        if head_size > 128 and block_stride % page_bytes == 0:
            # Blocks without gaps: fewer registers, which at 256 are short. At 128 the other way is faster.
            page = (block * (block_stride // page_bytes) + head).to(tl.int64)
            base = page * page_bytes
            words = page * (page_bytes // 4)
        else:
            base = block.to(tl.int64) * block_stride + head * page_bytes
            words = block.to(tl.int64) * (block_stride // 4) + head * (page_bytes // 4)
        scale = tl.load(word_cache + (words + (scale_offset // 4 + within)))
        # Slots beyond the end were never written and may hold NaN; with scale 0 their values are 0.
        scale = tl.where(start + token < end, scale, 0)
        packed_at = (base + value_offset + within * half)[:, None] + channel_half[None, :]
        if fp8_keys:
            keys = tl.load(fp8_cache + (base + within * head_size)[:, None] + channel[None, :])
            packed = tl.load(byte_cache + packed_at)
            if native_fp8:
                scores = _summed(tl.dot(keys, terms), tile, rows)
            else:
                scores = tl.dot(shifted_fp8(keys), terms)
        else:
            codes = tl.load(byte_cache + (base + within * half)[:, None] + channel_half[None, :])
            packed = tl.load(byte_cache + packed_at)
            # Norms are read in pairs: asynchronous copies are of 4 bytes at least.
            pair = tl.load(word_cache + (words + (norm_offset // 4 + within // 2)))
            norm = ((pair >> ((within & 1) * 16)) & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True)
            if native_fp8:
                low_keys, high_keys = key_levels_of(codes)
                products = tl.dot(high_keys, second_terms, acc=tl.dot(low_keys, terms))
                scores = _summed(products, tile, rows) * norm.to(tl.float32)[:, None]
            else:
                products = tl.dot(signed_level(codes & 15).to(tl.float16), terms)
                products = tl.dot(signed_level(codes >> 4).to(tl.float16), second_terms, acc=products)
                scores = products * norm.to(tl.float32)[:, None]
        if start + tile > unmasked:
            scores = tl.where((start + token)[:, None] < limit[None, :], scores, -float("inf"))
        risen = tl.maximum(highest, tl.max(scores, 0) * to_log2)
        shift = tl.where(risen == -float("inf"), 0.0, risen - HEADROOM)
        decay = tl.exp2(highest - HEADROOM - shift)
        weights = tl.exp2(scores * to_log2[None, :] - shift[None, :])
        highest = risen
        weight_sums = weight_sums * decay[None, :] + weights
        low, high = values_of(packed, tl.broadcast_to(scale[:, None], (tile, half)))
        weights16 = weights.to(tl.float16)
        if whole_values:
            # One product instead of two: less waiting, but twice the shared memory.
            whole = tl.reshape(tl.permute(tl.join(low, high), (0, 2, 1)), (tile, head_size))
            low_out = tl.dot(tl.trans(whole), weights16, acc=low_out * decay[None, :])
        else:
            low_out = tl.dot(tl.trans(low), weights16, acc=low_out * decay[None, :])
            high_out = tl.dot(tl.trans(high), weights16, acc=high_out * decay[None, :])
        # Last in the turn: the old numbers are dead by now, so that nothing waits for the new ones.
        begin = (start + tile) // block_size
        block0 = tl.load(table_row + tl.minimum(begin, last))
        if blocks > 1:
            block1 = tl.load(table_row + tl.minimum(begin + 1, last))
        if blocks > 2:
            block2 = tl.load(table_row + tl.minimum(begin + 2, last))
            block3 = tl.load(table_row + tl.minimum(begin + 3, last))

    total = tl.sum(weight_sums, 0)
    inverse = 1.0 / tl.where(total > 0.0, total, 1.0)
    real_row = (row < group * tokens)[None, :]
    to = partial + out.to(tl.int64)[None, :] * head_size
    if whole_values:
        tl.store(to + channel[:, None], low_out * inverse[None, :], mask=real_row)
    else:
        tl.store(to + channel_half[:, None], low_out * inverse[None, :], mask=real_row)
        tl.store(to + half + channel_half[:, None], high_out * inverse[None, :], mask=real_row)
    tl.store(
        partial_lse + out,
        tl.where(total > 0.0, highest - HEADROOM + tl.log2(tl.where(total > 0.0, total, 1.0)), -float("inf")),
    )
