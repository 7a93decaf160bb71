"""Our kernels behind vLLM's TurboQuant backend: memory, metadata, storing and attention."""

import math
from dataclasses import dataclass, field
from itertools import pairwise

import torch

from .decision import PRESETS, turboquant_layers
from .kernels.attention import Plan, Shape, attend, compile_by_batch, cut, fixed_share_of, prefill_rows
from .kernels.expand import expand
from .kernels.layout import CacheLayout
from .kernels.merge import merge
from .kernels.store import store

# Continuation prefill: a window of expanded keys and values, and the sums of a tile of queries.
WINDOW_BYTES = 64 << 20
SUMS_BYTES = 64 << 20
# Parts of a prompt that go through the decode kernel at once, in batch-invariant mode.
PARTS = 16


@dataclass(frozen=True)
class Segment:
    """Neighbouring requests of a batch that are computed alike; tokens first to last.

    starts: the segment's own cumulated query lengths, on the GPU. decode: through the kernel, at most `rows`
    tokens a request, or just as many where it is uniform, lengths from the GPU. Otherwise `queries` and
    `cached` are each request's tokens in this batch and before it, exact for rows that are prefilled. cuts:
    the shares that a layer chose for all that are alike, and which layer did.
    """

    decode: bool
    requests: slice
    tokens: slice
    starts: torch.Tensor
    rows: int = 1
    uniform: bool = False
    queries: tuple = ()
    cached: tuple = ()
    cuts: dict = field(default_factory=dict)


def adopt(builder, layer_names, vllm_config):
    """Let the builder take what the kernel takes as decode, and its layers run on our kernels."""
    builder.reorder_batch_threshold = builder._sndr.threshold
    layers = turboquant_layers(vllm_config)
    for name in layer_names:
        layers[name].impl._sndr = Wired(layers[name].impl, builder._sndr, vllm_config)
    if layer_names:
        # The layers of one builder are alike.
        layers[layer_names[0]].impl._sndr.compile_ahead(vllm_config, builder.device)


def reserve(builder):
    """Take the workspace for the largest batch and for continuation prefill."""
    from vllm.v1.worker.workspace import current_workspace_manager, is_workspace_manager_initialized

    if not is_workspace_manager_initialized():
        return
    config, decision = builder.vllm_config, builder._sndr
    sizes = []
    requests = config.scheduler_config.max_num_seqs
    for layer in turboquant_layers(config).values():
        impl = layer.impl
        wired = Wired(impl, decision, config)
        layout = CacheLayout(PRESETS[impl.kv_cache_dtype], impl.head_size, 16)
        batches = [(rows, requests) for rows in {1, decision.threshold}]
        if decision.invariant:
            batches.append((wired.prefill_rows, PARTS))
        else:
            sizes.append(_bytes(wired.prefill_buffers(config.model_config.dtype)))
        for rows, most in batches:
            # Shares grow with the batch.
            sizes.append(_bytes(wired.shape(layout, rows).buffers(most, wired.most_tokens)))
        # The layers of one model are alike.
        break
    current_workspace_manager().get_simultaneous(((max(sizes),), torch.uint8))


def _bytes(buffers):
    return sum(-(-math.prod(size) * kind.itemsize // 256) * 256 for size, kind in buffers)


def _workspace(buffers, device):
    """Memory that every layer shares; where vLLM's is missing or locked too small, memory of its own."""
    from vllm.v1.worker.workspace import current_workspace_manager, is_workspace_manager_initialized

    if is_workspace_manager_initialized():
        try:
            return current_workspace_manager().get_simultaneous(*buffers)
        except AssertionError:
            # A lane of its own (drafting in 0.32) is locked at what its first runs took.
            pass
    return [torch.empty(size, dtype=kind, device=device) for size, kind in buffers]


def metadata(builder, common):
    """vLLM's metadata for a batch, with its segments: no GPU work but one subtraction for each prefill."""
    from vllm.v1.attention.backends.turboquant_attn import TurboQuantMetadata
    from vllm.v1.attention.backends.utils import split_decodes_and_prefills

    threshold = builder._sndr.threshold
    decodes, _, decode_tokens, _ = split_decodes_and_prefills(common, decode_threshold=threshold)
    made = TurboQuantMetadata(
        seq_lens=common.seq_lens,
        slot_mapping=common.slot_mapping,
        block_table=common.block_table_tensor,
        query_start_loc=common.query_start_loc,
        num_actual_tokens=common.num_actual_tokens,
        max_query_len=common.max_query_len,
        max_seq_len=common.max_seq_len,
        is_prefill=common.max_query_len > threshold,
        num_decodes=decodes,
        num_decode_tokens=decode_tokens,
        query_start_loc_cpu=common.query_start_loc_cpu,
        seq_lens_cpu=common.seq_lens_cpu_upper_bound,
    )
    made.sndr_segments = _segments(common, threshold)
    return made


def _segments(common, threshold):
    total = common.num_actual_tokens
    if common.max_query_len <= threshold:
        rows = 1 if common.max_query_len <= 1 else threshold
        # Requests that pad a captured batch have no length.
        uniform = total == common.num_reqs * rows
        starts = common.query_start_loc
        return [Segment(True, slice(0, common.num_reqs), slice(0, total), starts, rows, uniform)]
    starts = common.query_start_loc_cpu.tolist()
    queries = [end - start for start, end in pairwise(starts)]
    lengths = common.seq_lens_cpu_upper_bound
    lengths = (common.seq_lens if lengths is None else lengths).tolist()
    segments, first = [], 0
    while first < len(queries):
        decode = queries[first] <= threshold
        last = first
        while last < len(queries) and (queries[last] <= threshold) == decode:
            last += 1
        tokens = slice(starts[first], min(starts[last], total))
        mine = tuple(queries[first:last])
        own = common.query_start_loc[first : last + 1]
        own = own if starts[first] == 0 else own - starts[first]
        if tokens.stop > tokens.start and decode:
            rows = 1 if max(mine) <= 1 else threshold
            uniform = set(mine) == {rows}
            segments.append(Segment(True, slice(first, last), tokens, own, rows, uniform))
        elif tokens.stop > tokens.start:
            cached = tuple(length - query for length, query in zip(lengths[first:last], mine, strict=True))
            segments.append(Segment(False, slice(first, last), tokens, own, queries=mine, cached=cached))
        first = last
    return segments


class Wired:
    """One layer's attention on our kernels."""

    def __init__(self, impl, decision, vllm_config):
        self.impl, self.decision = impl, decision
        self.preset = PRESETS[impl.kv_cache_dtype]
        self.most_tokens = vllm_config.model_config.max_model_len
        self.most_queries = vllm_config.scheduler_config.max_num_batched_tokens
        self._cores = (
            torch.cuda.get_device_properties().multi_processor_count if torch.cuda.is_available() else 4
        )
        self.prefill_rows = prefill_rows(impl.num_heads, impl.num_kv_heads)
        self._fixed_share = fixed_share_of(self.most_tokens) if decision.invariant else 0
        self._shapes = {}
        self._layout = (None, None)
        self._ends = None
        self._steps = None

    def shape(self, layout, rows):
        """The compiled shape for so many query tokens a request."""
        key = layout.block_size, rows
        if key not in self._shapes:
            impl = self.impl
            self._shapes[key] = Shape(
                layout,
                rows,
                impl.num_heads,
                impl.num_kv_heads,
                self._cores,
                self.decision.native_fp8,
                self._fixed_share,
                self.decision.hopper,
            )
        return self._shapes[key]

    def compile_ahead(self, vllm_config, device):
        """Compile what depends on the number of requests, before the first of them comes.

        The self-test compiles everything else; steps that also read prompts are not captured in graphs, and
        a compilation would hold up every answer for most of a second.
        """
        layout = CacheLayout(self.preset, self.impl.head_size, 16)
        most = vllm_config.scheduler_config.max_num_seqs
        batches = dict.fromkeys((1, self.decision.threshold), most)
        if self.decision.invariant:
            batches[self.prefill_rows] = PARTS
        for rows, most in batches.items():
            shape = self.shape(layout, rows)
            compile_by_batch(shape, most, self.most_tokens, vllm_config.model_config.dtype, device)

    def pages(self, kv_cache):
        """The layer's memory as [blocks, kv_heads, page bytes], and its layout; blocks may have gaps."""
        key = kv_cache.data_ptr(), kv_cache.shape, kv_cache.stride()
        known, layout = self._layout
        if known != key:
            heads, block_size, slot = kv_cache.shape[1:]
            layout = CacheLayout(self.preset, self.impl.head_size, block_size)
            inner = kv_cache.stride()[1:]
            dense = ((block_size * slot, slot, 1), (slot, heads * slot, 1))
            sizes_differ = slot != layout.token_bytes or heads != self.impl.num_kv_heads
            if sizes_differ or inner not in dense or kv_cache.stride(0) % 16 or kv_cache.data_ptr() % 16:
                raise RuntimeError(
                    f"turboquant-grouped-attention does not know this cache: shape {tuple(kv_cache.shape)}, "
                    f"strides {kv_cache.stride()}. Start without the patch."
                )
            self._layout = key, layout
        # Made anew: a view that is kept would keep the memory after vLLM has dropped its cache.
        shape = layout.cache_shape(kv_cache.shape[0], kv_cache.shape[1])
        return kv_cache.as_strided(shape, (kv_cache.stride(0), layout.page_bytes, 1)), layout

    def store(self, key, value, kv_cache, slot_mapping):
        """Quantise a batch's tokens into their slots."""
        tokens = slot_mapping.shape[0]
        if tokens <= 0:
            return
        cache, layout = self.pages(kv_cache)
        shape = tokens, self.impl.num_kv_heads, self.impl.head_size
        store(
            key[:tokens].view(shape),
            value[:tokens].view(shape),
            cache,
            slot_mapping,
            layout,
            self.decision.native_fp8,
        )

    def forward(self, query, key, value, kv_cache, made, output):
        """Write a batch's attention to `output`."""
        tokens, impl = made.num_actual_tokens, self.impl
        cache, layout = self.pages(kv_cache)
        query = query[:tokens].view(tokens, impl.num_heads, impl.head_size)
        out = output[:tokens].view(tokens, impl.num_heads, impl.head_size)
        for segment in made.sndr_segments:
            mine = segment.tokens
            if segment.decode:
                self._decode(segment, query[mine], cache, layout, made, out[mine])
            elif self.decision.invariant:
                self._prefill_as_decode(segment, query[mine], cache, layout, made, out[mine])
            else:
                shape = tokens, impl.num_kv_heads, impl.head_size
                keys, values = key[:tokens].view(shape), value[:tokens].view(shape)
                self._prefill(segment, query[mine], keys[mine], values[mine], cache, layout, made, out[mine])

    def _decode(self, segment, query, cache, layout, made, out):
        first, last = segment.requests.start, segment.requests.stop
        shape = self.shape(layout, segment.rows)
        memory = _workspace(shape.buffers(last - first, self.most_tokens), query.device)
        planned = Plan(shape, last - first, self.most_tokens, *memory)
        lengths = made.seq_lens[first:last]
        attend(
            planned,
            query,
            cache,
            made.block_table[first:last],
            lengths,
            segment.starts,
            self.impl.scale,
            out,
            segment.uniform,
            self._cut(segment, planned, lengths),
        )

    def _cut(self, segment, planned, lengths):
        """The batch's shares, chosen by the first layer of a step for all that are alike.

        That layer chooses anew each time it comes: drafting may come again with the same metadata and lengths
        that have grown. A graph that is captured holds the choice itself.
        """
        captured = lengths.is_cuda and torch.cuda.is_current_stream_capturing()
        key = planned.shape.places, planned.partial.shape[0], captured
        chooser, known = segment.cuts.get(key, (self, None))
        if chooser is self:
            known = cut(planned, lengths, segment.starts)
            segment.cuts[key] = self, known
        return known

    def _prefill_as_decode(self, segment, query, cache, layout, made, out):
        """Prompts by the kernel that decodes, a few rows at a time.

        How a prompt is cut, what of it was cached and which of its tokens were drafts then changes nothing:
        every row of every request is computed alike. It reads the cache once for every few rows.
        """
        shape = self.shape(layout, self.prefill_rows)
        if self._steps is None:
            self._steps = torch.arange(PARTS + 1, device=query.device, dtype=torch.int32) * self.prefill_rows
        end = 0
        for place, tokens in enumerate(segment.queries):
            first, end = end, end + tokens
            request = segment.requests.start + place
            length = made.seq_lens[request : request + 1]
            for start in range(first, end, PARTS * self.prefill_rows):
                mine = slice(start, min(start + PARTS * self.prefill_rows, end))
                parts = -(-(mine.stop - start) // self.prefill_rows)
                starts = self._steps[: parts + 1].clamp(max=mine.stop - start)
                memory = _workspace(shape.buffers(parts, self.most_tokens), query.device)
                attend(
                    Plan(shape, parts, self.most_tokens, *memory),
                    query[mine],
                    cache,
                    made.block_table[request : request + 1].expand(parts, -1),
                    length - (end - start) + starts[1:],
                    starts,
                    self.impl.scale,
                    out[mine],
                )

    def _flash(self, query, keys, values, starts, key_starts, most, most_keys, causal, out=None, lse=False):
        from vllm.v1.attention.backends.turboquant_attn import flash_attn_varlen_func

        return flash_attn_varlen_func(
            q=query,
            k=keys,
            v=values,
            cu_seqlens_q=starts,
            cu_seqlens_k=key_starts,
            max_seqlen_q=most,
            max_seqlen_k=most_keys,
            softmax_scale=self.impl.scale,
            causal=causal,
            out=out,
            return_softmax_lse=lse,
            fa_version=self.impl.fa_version,
        )

    def _prefill(self, segment, query, keys, values, cache, layout, made, out):
        """The new tokens among themselves, all requests at once; then, for whom has some, the cached ones."""
        most = max(segment.queries)
        continued = any(cached > 0 for cached in segment.cached)
        starts = segment.starts
        found = self._flash(query, keys, values, starts, starts, most, most, True, out, continued)
        if not continued:
            return
        sums = found[1]
        end = 0
        for place, (tokens, cached) in enumerate(zip(segment.queries, segment.cached, strict=True)):
            first, end = end, end + tokens
            if cached > 0 and tokens > 0:
                row = made.block_table[segment.requests.start + place]
                mine = slice(first, end)
                self._continue(query[mine], cache, layout, row, cached, out[mine], sums[:, mine])

    def prefill_buffers(self, dtype):
        """Expanded keys and values of a window, and attention so far of a tile of queries, in fp32."""
        impl = self.impl
        key_bytes = 2 * impl.num_kv_heads * impl.head_size * dtype.itemsize
        window = min(WINDOW_BYTES // key_bytes, -(-self.most_tokens // 128) * 128)
        tile = min(SUMS_BYTES // (impl.num_heads * impl.head_size * 4) // 128 * 128, self.most_queries)
        return [
            ((2, window, impl.num_kv_heads, impl.head_size), dtype),
            ((tile, impl.num_heads, impl.head_size), torch.float32),
            ((impl.num_heads, tile), torch.float32),
        ]

    def _continue(self, query, cache, layout, table_row, cached, out, sums):
        """Merge a request's attention to its cached tokens into `out`, window by window."""
        buffers = self.prefill_buffers(query.dtype)
        window, total, total_sums = _workspace(buffers, query.device)
        size, tile = window.shape[1], total.shape[0]
        if self._ends is None:
            self._ends = torch.zeros(2, 2, dtype=torch.int32, device=query.device)
        expanded = None
        for top in range(0, query.shape[0], tile):
            mine = slice(top, min(top + tile, query.shape[0]))
            rows = mine.stop - mine.start
            self._ends[0, 1:] = rows
            one, one_sums = out[mine], sums[:, mine]
            for first in range(0, cached, size):
                tokens = min(size, cached - first)
                keys, values = window[0, :tokens], window[1, :tokens]
                if expanded != first:
                    expand(cache, table_row, first, keys, values, layout)
                    expanded = first
                self._ends[1, 1:] = tokens
                other, other_sums = self._flash(
                    query[mine],
                    keys,
                    values,
                    self._ends[0],
                    self._ends[1],
                    rows,
                    tokens,
                    False,
                    lse=True,
                )
                last = first + size >= cached
                target = out[mine] if last else total[:rows]
                merge(one, one_sums, other, other_sums, target, total_sums)
                one, one_sums = target, total_sums
