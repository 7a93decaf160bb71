"""One small run of every kernel against float64, on the GPU that is to serve."""

import torch

from .kernels import reference
from .kernels.attention import Shape, attend, plan
from .kernels.expand import expand
from .kernels.layout import CacheLayout
from .kernels.merge import merge
from .kernels.store import store


def worst_error(preset, head_size, heads, kv_heads, block_size, threshold, native_fp8, device="cuda"):
    """The largest relative error of decode, verify and expanded windows; not a number counts as wrong."""
    device = torch.device(device)
    layout = CacheLayout(preset, head_size, block_size)
    draw = torch.Generator(device=device).manual_seed(0)
    lengths = [1 + threshold, 197, 70, 0]
    blocks = 1 + max(lengths) // block_size
    # Unwritten memory is NaN as fp8 and as fp16.
    cache = torch.full(
        layout.cache_shape(len(lengths) * blocks, kv_heads), 255, dtype=torch.uint8, device=device
    )
    table = torch.randperm(len(lengths) * blocks, generator=draw, device=device).to(torch.int32)
    table = table.view(len(lengths), blocks)

    def random(*size):
        return torch.randn(size, generator=draw, device=device, dtype=torch.float32).to(torch.bfloat16)

    for request, length in enumerate(lengths):
        place = torch.arange(length, device=device)
        slots = table[request].long()[place // block_size] * block_size + place % block_size
        keys = random(length, kv_heads, head_size)
        store(keys, random(length, kv_heads, head_size), cache, slots, layout, native_fp8)
    cores = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
    errors = []
    for rows, uniform in sorted({(1, True), (threshold, True), (threshold, False)}):
        queries = [rows] * 4 if uniform else [rows, rows, 1, 0]
        starts = torch.tensor([0, *queries], device=device).cumsum(0).to(torch.int32)
        query = random(sum(queries), heads, head_size)
        out = torch.full_like(query, float("nan"))
        planned = plan(Shape(layout, rows, heads, kv_heads, cores, native_fp8), len(lengths), 8192, device)
        held = torch.tensor(lengths, dtype=torch.int32, device=device)
        attend(planned, query, cache, table, held, starts, head_size**-0.5, out, uniform)
        for request, (first, tokens) in enumerate(zip(starts.tolist(), queries, strict=False)):
            if tokens and lengths[request]:
                mine = slice(first, first + tokens)
                seen = reference.read_tokens(cache, table[request], lengths[request], layout)
                wanted = reference.attend(query[mine], *seen, lengths[request], head_size**-0.5)
                errors.append(_distance(out[mine], wanted))
    window = torch.empty(2, 100, kv_heads, head_size, dtype=torch.bfloat16, device=device)
    expand(cache, table[1], 60, window[0], window[1], layout)
    for found, wanted in zip(window, reference.read_tokens(cache, table[1], 160, layout), strict=True):
        errors.append(_distance(found, wanted[60:]))
    one, sums = random(5, heads, head_size), torch.zeros(heads, 5, device=device)
    merged = torch.empty_like(one)
    merge(one, sums, one, sums, merged, torch.empty_like(sums))
    errors.append(_distance(merged, one.double()))
    return max(errors) if all(error == error for error in errors) else float("nan")


def _distance(found, wanted):
    return float((found.double() - wanted).norm() / wanted.norm())
