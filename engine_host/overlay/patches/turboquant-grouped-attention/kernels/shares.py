"""Cut the contexts of a batch into shares, on the GPU: the programs of the first pass get about equal work.

A batch has long and short contexts, whose lengths only the GPU knows while drafts are verified. Cut into
equally many shares each, the longest context would hold up all others, so a share has about as many tokens in
every request (as stream-K does for products, Osama et al. 2023, but never two requests in a share).
"""

import triton
import triton.language as tl

# Number of share sizes that are compared; a half of them divide the longest context, a half the whole work.
SIZES = tl.constexpr(32)
# The end of a request's last share, in tiles: its context may have grown since it was cut.
OPEN_END = tl.constexpr(1 << 24)
_NEVER = tl.constexpr(1 << 30)


@triton.jit(
    do_not_specialize=["batch", "places", "slots"],
    do_not_specialize_on_alignment=["lengths", "starts", "shares", "first_slots"],
)
def cut_kernel(
    lengths,
    starts,
    shares,
    first_slots,
    batch,
    places,
    slots,
    tile: tl.constexpr,
    edge: tl.constexpr,
    least: tl.constexpr,
    padded_batch: tl.constexpr,
):
    """Write the shares of every request with query tokens: `shares` int32 [slots, 4] and where each begins.

    A share is its request, its first tile and the tile after its last (and nothing); one that is not used has
    no tile. first_slots: int32 [batch + 1]. places: programs of a KV head that run at once. edge: what a
    program costs beside its tiles, in tiles. The size chosen has the shortest estimate: full rounds of
    programs, or even work and one more program (Graham 1969), whichever is less.
    """
    request = tl.arange(0, padded_batch)
    present = request < batch
    length = tl.load(lengths + request, mask=present, other=0)
    begin = tl.load(starts + request, mask=present, other=0)
    after = tl.load(starts + request + 1, mask=present, other=0)
    tiles = tl.where(after > begin, (length + tile - 1) // tile, 0)
    total = tl.sum(tiles, 0)
    longest = tl.max(tiles, 0)

    number = tl.arange(0, SIZES)
    half: tl.constexpr = SIZES // 2
    parts = tl.where(number < half, number + 1, 1)
    quarters = tl.where(number < half, 4, number - half + 4) * places
    size = tl.where(number < half, (longest + parts - 1) // parts, (4 * total + quarters - 1) // quarters)
    size = tl.minimum(tl.maximum(size, least), tl.maximum(longest, 1))
    count = tl.sum((tiles[:, None] + size[None, :] - 1) // size[None, :], 0)
    rounds = (count + places - 1) // places * (size + edge)
    even = (total + count * edge) // places + size + edge
    cost = tl.where(count <= slots, tl.minimum(rounds, even), _NEVER)
    # Of sizes that cost the same the largest: fewer shares to combine.
    cheapest = tl.min(cost, 0)
    chosen = tl.max(tl.where(cost == cheapest, size, 0), 0)

    mine = (tiles + chosen - 1) // chosen
    upto = tl.cumsum(mine, 0)
    first = upto - mine
    tl.store(first_slots + request, first, mask=present)
    tl.store(first_slots + batch + request * 0, upto, mask=request == batch - 1)
    own = (tiles + tl.maximum(mine, 1) - 1) // tl.maximum(mine, 1)
    for place in range(tl.max(mine, 0)):
        used = place < mine
        at = shares + (first + place) * 4
        tl.store(at, request, mask=used)
        tl.store(at + 1, place * own, mask=used)
        tl.store(at + 2, tl.where(place + 1 == mine, OPEN_END, (place + 1) * own), mask=used)
    used_slots = tl.sum(mine, 0)
    for some in range(0, slots, 64):
        slot = some + tl.arange(0, 64)
        unused = (slot >= used_slots) & (slot < slots)
        for field in tl.static_range(3):
            tl.store(shares + slot * 4 + field, tl.zeros([64], tl.int32), mask=unused)
