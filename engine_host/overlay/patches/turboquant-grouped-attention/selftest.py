"""One small run of every kernel against float64, on the GPU that is to serve."""

import torch

from .kernels import reference
from .kernels.attention import Shape, attend, fixed_share_of, plan, prefill_rows
from .kernels.expand import expand
from .kernels.layout import CacheLayout
from .kernels.merge import merge
from .kernels.store import store

# The largest relative error against float64 that passes.
MOST_ERROR = 1e-2


def worst_error(
    preset,
    head_size,
    heads,
    kv_heads,
    block_size,
    threshold,
    native_fp8,
    device="cuda",
    hopper=False,
    dtype="torch.bfloat16",
    share=0,
):
    """The largest relative error of decode, verify and expanded windows; not a number counts as wrong.

    dtype: of the engine's activations, in torch's own words. share: of the engine, in batch-invariant mode.
    """
    device = torch.device(device)
    layout = CacheLayout(preset, head_size, block_size)
    most = prefill_rows(heads, kv_heads) if share else 1
    lengths = [1 + max(threshold, most), 197, 70, 0]
    random, cache, table, cores = _filled(layout, kv_heads, lengths, native_fp8, device, dtype)
    errors = []
    for rows, uniform in sorted(
        {(rows, uniform) for rows in (1, threshold, most) for uniform in (True, False)}
    ):
        queries = [rows] * 4 if uniform else [rows, rows, 1, 0]
        starts = torch.tensor([0, *queries], device=device).cumsum(0).to(torch.int32)
        query = random(sum(queries), heads, head_size)
        out = torch.full_like(query, float("nan"))
        shape = Shape(layout, rows, heads, kv_heads, cores, native_fp8, share, hopper)
        planned = plan(shape, len(lengths), 8192, device)
        held = torch.tensor(lengths, dtype=torch.int32, device=device)
        attend(planned, query, cache, table, held, starts, head_size**-0.5, out, uniform)
        for request, (first, tokens) in enumerate(zip(starts.tolist(), queries, strict=False)):
            if tokens and lengths[request]:
                mine = slice(first, first + tokens)
                # On the CPU: in batch-invariant mode vLLM's own softmax and products take no float64.
                seen = reference.read_tokens(cache.cpu(), table[request].cpu(), lengths[request], layout)
                wanted = reference.attend(query[mine].cpu(), *seen, lengths[request], head_size**-0.5)
                errors.append(_distance(out[mine].cpu(), wanted))
    window = random(2, 100, kv_heads, head_size)
    expand(cache, table[1], 60, window[0], window[1], layout)
    tokens = reference.read_tokens(cache.cpu(), table[1].cpu(), 160, layout)
    for found, wanted in zip(window.cpu(), tokens, strict=True):
        errors.append(_distance(found, wanted[60:]))
    one, sums = random(5, heads, head_size), torch.zeros(heads, 5, device=device)
    # What was merged before is fp32 while more windows come.
    for kind in (one.dtype, torch.float32):
        for target in (one.dtype, torch.float32):
            merged = torch.empty_like(one, dtype=target)
            merge(one.to(kind), sums, one, sums, merged, torch.empty_like(sums))
            errors.append(_distance(merged, one.double()))
    return max(errors) if all(error == error for error in errors) else float("nan")


def rows_that_differ(
    preset,
    head_size,
    heads,
    kv_heads,
    block_size,
    threshold,
    native_fp8,
    device="cuda",
    most_tokens=8192,
    hopper=False,
    dtype="torch.bfloat16",
):
    """Count the rows that have other bits alone than as one of several, and in another batch; none should."""
    device = torch.device(device)
    layout = CacheLayout(preset, head_size, block_size)
    length, rows = 450, 8
    random, cache, table, cores = _filled(layout, kv_heads, [length, 300], native_fp8, device, dtype)
    query = random(rows, heads, head_size)
    answers = []
    for together in sorted({1, threshold, prefill_rows(heads, kv_heads)}):
        share = fixed_share_of(most_tokens)
        shape = Shape(layout, together, heads, kv_heads, cores, native_fp8, share, hopper)
        out = torch.full_like(query, float("nan"))
        for first in range(0, rows, together):
            mine = slice(first, min(first + together, rows))
            # One row alone; several after another request's.
            other = 0 if together == 1 else 1
            starts = torch.tensor([0, other, other + mine.stop - first][1 - other :], dtype=torch.int32)
            held = torch.tensor([300, length - rows + mine.stop][1 - other :], dtype=torch.int32)
            asked = torch.cat([query[:other], query[mine]])
            found = torch.empty_like(asked)
            planned = plan(shape, 1 + other, most_tokens, device)
            attend(
                planned,
                asked,
                cache,
                table.flip(0)[1 - other :],
                held.to(device),
                starts.to(device),
                head_size**-0.5,
                found,
            )
            out[mine] = found[other:]
        answers.append(out)
    return sum(int((one != answers[0]).flatten(1).any(1).sum()) for one in answers[1:])


def _filled(layout, kv_heads, lengths, native_fp8, device, dtype):
    """A cache with random tokens for each request: a source of rows, the cache, its table, the cores."""
    draw = torch.Generator(device=device).manual_seed(0)
    size = layout.block_size
    blocks = 1 + max(lengths) // size
    # Unwritten memory is NaN as fp8 and as fp16.
    cache = torch.full(
        layout.cache_shape(len(lengths) * blocks, kv_heads), 255, dtype=torch.uint8, device=device
    )
    table = torch.randperm(len(lengths) * blocks, generator=draw, device=device).to(torch.int32)
    table = table.view(len(lengths), blocks)

    def random(*shape):
        drawn = torch.randn(shape, generator=draw, device=device, dtype=torch.float32)
        return drawn.to(getattr(torch, dtype.removeprefix("torch.")))

    for request, length in enumerate(lengths):
        place = torch.arange(length, device=device)
        slots = table[request].long()[place // size] * size + place % size
        keys = random(length, kv_heads, layout.head_size)
        store(keys, random(length, kv_heads, layout.head_size), cache, slots, layout, native_fp8)
    cores = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
    return random, cache, table, cores


def _distance(found, wanted):
    return float((found.double() - wanted).norm() / wanted.norm())
