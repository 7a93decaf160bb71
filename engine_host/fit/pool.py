"""vLLM's KV cache as groups of layers that draw blocks from one pool, as 0.26 and 0.32 count them.

Layers of one kind are split into groups of equally many (kv_cache_utils.get_kv_cache_groups); a block of the
pool is a page in each layer of a group, so that a stream takes blocks for every group by itself.
"""

import math
from dataclasses import dataclass

from engine_host.fit.kv import TURBOQUANT, state_bytes, token_bytes
from engine_host.fit.shapes.model import RECURRENT, Layer, ModelShape

# The smallest block of vLLM's attention: the CPU's kernels want 128 tokens, FlashAttention and Triton 16.
SMALLEST_BLOCK = {"cpu": 128, "cuda": 16}
# What our kernels for TurboQuant read and ask for (turboquant-grouped-attention: get_preferred_block_size).
GROUPED = frozenset({"turboquant_k8v4", "turboquant_4bit_nc"})
GROUPED_BLOCK = 64
# At each end of a dense model, TurboQuant leaves so many layers alone (get_boundary_skip_layers).
BOUNDARY = 2
_MORE_LAYERS = 1.5


@dataclass(frozen=True, slots=True)
class Group:
    """So many groups of layers of one kind; `reach`: the newest tokens that they keep (None: all).

    `more` are blocks on top: those that a window begins within, or all of a state's.
    """

    kind: Layer
    count: int
    block_tokens: int
    reach: int | None = None
    more: int = 0

    def blocks(self, context: int) -> int:
        """Blocks of one stream that is this long, in all groups of the kind."""
        if self.kind in RECURRENT:
            return self.count * self.more
        kept = context if self.reach is None else min(self.reach, context)
        return self.count * (math.ceil(kept / self.block_tokens) + self.more)


@dataclass(frozen=True, slots=True)
class Pool:
    """The blocks of one GPU; `pages` are the layers of a block and the bytes of a page in each.

    `block_tokens` is of the layers that keep every token.
    """

    block_tokens: int
    pages: tuple[tuple[int, int], ...]
    groups: tuple[Group, ...]

    @property
    def layers(self) -> int:
        """The number of layers that have a page in one block."""
        return sum(layers for layers, _ in self.pages)

    @property
    def page_bytes(self) -> int:
        """Bytes of the first kind of page."""
        return self.pages[0][1]

    @property
    def block_bytes(self) -> int:
        """Bytes of one block."""
        return sum(layers * page for layers, page in self.pages)

    def of(self, kind: Layer) -> Group | None:
        """The groups of one kind of layer."""
        return next((group for group in self.groups if group.kind is kind), None)

    def stream_blocks(self, context: int) -> int:
        """Blocks of one stream that is this long."""
        return sum(group.blocks(context) for group in self.groups)

    def stream_bytes(self, context: int) -> int:
        """Bytes of the blocks of one stream that is this long."""
        return self.stream_blocks(context) * self.block_bytes

    def blocks(self, size: int) -> int:
        """Return the number of blocks in so many bytes."""
        return size // self.block_bytes

    def tokens(self, size: int, context: int) -> int:
        """Return the size of the cache as vLLM logs it: streams of this length, times the length."""
        return int(self.blocks(size) / self.stream_blocks(context) * context)

    def streams(self, size: int, context: int) -> int:
        """Return the number of streams of this length that fit."""
        return self.blocks(size) // self.stream_blocks(context)

    def longest(self, size: int, streams: int, limit: int) -> int:
        """The longest context, up to `limit`, that this many streams can have; 0 when not even one block."""
        fits, fails = 0, limit + 1
        while fails - fits > 1:
            middle = (fits + fails) // 2
            if self.stream_blocks(middle) * streams <= self.blocks(size):
                fits = middle
            else:
                fails = middle
        return fits


@dataclass(frozen=True, slots=True)
class _Cut:
    """The facts about a start before its layers are grouped."""

    shape: ModelShape
    kv_cache_dtype: str
    smallest: int
    tp: int
    reach: int
    draft_tokens: int
    states: int
    full: int
    near: int


def vllm_pool(
    shape: ModelShape,
    kv_cache_dtype: str,
    *,
    build: str = "cuda",
    tp: int = 1,
    draft_tokens: int = 0,
    mtp: bool = False,
    prefix_caching: bool = False,
    batched_tokens: int = 2048,
    spared_layers: bool = True,
    hybrid_manager: bool | None = None,
    grouped_attention: bool = False,
    batches: int = 2,
) -> Pool:
    """The pool of a start of vLLM 0.26 or 0.32, which count alike.

    `mtp`: the model's drafting layers run and keep a cache of their own. `spared_layers`: TurboQuant leaves
    the layers at both ends of a dense model as they are. `hybrid_manager`: False is
    --disable-hybrid-kv-cache-manager, None is vLLM's choice, which leaves it off for local chunks with drafts
    (VllmConfig.__post_init__).
    `batches` are in flight: with async scheduling, which is on, one is computed while the next is prepared
    (VllmConfig.max_in_flight_tokens), and blocks behind a window are freed after both.
    """
    counts = {kind: number for kind in Layer if (number := shape.cached(kind))}
    if mtp and shape.mtp_layers:
        counts[Layer.FULL] = counts.get(Layer.FULL, 0) + shape.mtp_layers
    smallest = SMALLEST_BLOCK[build]
    if grouped_attention and kv_cache_dtype in GROUPED:
        smallest = max(smallest, GROUPED_BLOCK)
    cut = _Cut(
        shape=shape,
        kv_cache_dtype=kv_cache_dtype,
        smallest=smallest,
        tp=tp,
        reach=batches * batched_tokens,
        draft_tokens=draft_tokens,
        # Without prefix caching a stream has one state; with it, one more at the last block's end.
        states=(2 if prefix_caching else 1) + draft_tokens,
        full=token_bytes(shape.full, kv_cache_dtype, tp),
        near=token_bytes(shape, kv_cache_dtype, tp),
    )
    if hybrid_manager is None:
        hybrid_manager = not (Layer.CHUNKED in counts and draft_tokens)
    if len(counts) == 1:
        return _alike(cut, *next(iter(counts.items())), spared_layers=spared_layers)
    if not hybrid_manager and Layer.FULL in counts and not RECURRENT & counts.keys():
        return _all_as_full(cut, counts)
    return _grouped(cut, counts)


def _alike(cut: _Cut, kind: Layer, number: int, *, spared_layers: bool) -> Pool:
    """One group of all layers; where TurboQuant spares some, they have larger pages in the same blocks."""
    shape, block = cut.shape, cut.smallest
    native = 0
    if kind is Layer.FULL and spared_layers and cut.kv_cache_dtype in TURBOQUANT:
        native = min(2 * BOUNDARY, shape.cached(Layer.FULL))
    if not native:
        page = cut.smallest * (cut.full if kind is Layer.FULL else cut.near)
        if kind in RECURRENT:
            page = state_bytes(shape, cut.tp, cut.draft_tokens)
        return Pool(block, ((number, page),), (_group(cut, kind, 1, block),))
    # The blocks grow until a page of as many elements of one byte covers the smallest native page
    # (Platform._align_heterogeneous_kv_block_size, which asks the backend of the first layer).
    wide, narrow = (token_bytes(shape, name, cut.tp) for name in ("auto", "fp8"))
    block = cut.smallest * math.ceil(wide / narrow)
    pages = ((number - native, block * cut.full), (native, block * wide))
    return Pool(block, pages, (_group(cut, kind, 1, block),))


def _all_as_full(cut: _Cut, counts: dict[Layer, int]) -> Pool:
    """Without its hybrid manager every layer keeps as much as the full ones (unify_hybrid_kv_cache_specs)."""
    pages = {cut.full: counts[Layer.FULL]}
    pages[cut.near] = pages.get(cut.near, 0) + sum(counts.values()) - counts[Layer.FULL]
    block = cut.smallest
    found = tuple((number, block * size) for size, number in pages.items())
    return Pool(block, found, (_group(cut, Layer.FULL, 1, block),))


def _grouped(cut: _Cut, counts: dict[Layer, int]) -> Pool:
    """Groups of as many layers each, with pages of one size (_get_kv_cache_groups_uniform_page_size).

    A block with states in the model grows until its page holds a state, and states are padded to it
    (Platform._align_hybrid_block_size). Where layers with a window have other heads than the full ones,
    blocks of the smaller page grow to the larger (unify_kv_cache_spec_page_size).
    """
    layers = max(counts.values())
    if layers >= _MORE_LAYERS * min(counts.values()):
        layers = min(counts.values())
    full, near = cut.smallest, cut.smallest
    if RECURRENT & counts.keys():
        state = state_bytes(cut.shape, cut.tp, cut.draft_tokens)
        token = cut.full if Layer.FULL in counts else cut.near
        full = near = cut.smallest * max(1, math.ceil(state / token / cut.smallest))
    elif cut.full != cut.near:
        full, near = (_grown(cut.smallest, size, max(cut.full, cut.near)) for size in (cut.full, cut.near))
    sizes = {Layer.FULL: full * cut.full, Layer.SLIDING: near * cut.near, Layer.CHUNKED: near * cut.near}
    page = max(sizes[kind] for kind in counts if kind in sizes)
    return Pool(
        full,
        ((layers, page),),
        tuple(
            _group(cut, kind, math.ceil(number / layers), full if kind is Layer.FULL else near)
            for kind, number in counts.items()
        ),
    )


def _group(cut: _Cut, kind: Layer, count: int, block: int) -> Group:
    window = cut.shape.window or 1
    if kind is Layer.SLIDING:
        # One block more, because a window may begin within one.
        return Group(kind, count, block, window - 1 + cut.reach, 1)
    if kind is Layer.CHUNKED:
        return Group(kind, count, block, window + cut.reach)
    return Group(kind, count, block, more=cut.states if kind in RECURRENT else 0)


def _grown(block: int, size: int, largest: int) -> int:
    """A block whose page does not divide the largest one is padded to it, and holds no more tokens."""
    return block if largest % size else block * (largest // size)
