"""Attention over a quantised cache, as one call: both passes, with all memory taken beforehand."""

import math
from dataclasses import dataclass
from typing import Any

import torch
import triton

from engine_host.overlay.turboquant.combine import combine_kernel
from engine_host.overlay.turboquant.decode import decode_kernel
from engine_host.overlay.turboquant.hadamard import rotate
from engine_host.overlay.turboquant.layout import CacheLayout

MOST_QUERY_ROWS = 8
# wgmma multiplies 64 rows at a time, and these are tokens.
TILE = 64


@dataclass(frozen=True)
class Tuning:
    """How the decode kernel is compiled: see docs/kernels.md for what each choice gave."""

    whole_values: bool
    programs_a_core: int
    registers: int | None = None
    stages: int = 3
    warps: int = 4


def tuning_for(layout: CacheLayout, rows: int) -> Tuning:
    """The measured best on an H200 for a layout and a padded number of query rows."""
    if layout.head_size == 64:
        # A half of 32 channels would be too few for wgmma.
        return Tuning(whole_values=True, programs_a_core=4)
    if layout.head_size == 128:
        programs = 4 if rows == 8 or (rows == 16 and layout.fp8_keys) else 3 if rows == 16 else 2
        return Tuning(whole_values=rows == 16, programs_a_core=programs)
    return Tuning(
        whole_values=rows == 16 or (rows > 16 and not layout.fp8_keys), programs_a_core=1 if rows > 32 else 2
    )


@dataclass(frozen=True)
class Plan:
    """What a batch shape needs: shares per context, and the memory for what they find.

    partial: fp32 [batch, kv_heads, splits, rows, head_size]; partial_lse: fp32 without the last dimension;
    rotated: the queries in the keys' rotation, for 4-bit keys.
    """

    layout: CacheLayout
    batch: int
    query_rows: int
    heads: int
    kv_heads: int
    rows: int
    splits: int
    tuning: Tuning
    partial: torch.Tensor
    partial_lse: torch.Tensor
    rotated: torch.Tensor | None


def splits_for(pairs: int, most_tokens: int, cores: int, programs_a_core: int) -> int:
    """Into how many shares a context is cut.

    As many as make one full wave over the GPU's cores, and no share smaller than a tile. pairs: requests
    times KV heads.
    """
    return max(1, min(cores * programs_a_core // pairs, math.ceil(most_tokens / TILE)))


def plan(
    layout: CacheLayout,
    batch: int,
    query_rows: int,
    heads: int,
    kv_heads: int,
    most_tokens: int,
    device: torch.device,
    splits: int | None = None,
    tuning: Tuning | None = None,
) -> Plan:
    """Take a batch shape's memory; ValueError for more than 8 query rows or heads that do not divide."""
    if not 1 <= query_rows <= MOST_QUERY_ROWS:
        raise ValueError(f"{query_rows} query rows; the kernel takes 1 to {MOST_QUERY_ROWS}")
    if heads % kv_heads:
        raise ValueError(f"{heads} query heads over {kv_heads} KV heads")
    rows = max(8, triton.next_power_of_2(heads // kv_heads * query_rows))
    tuning = tuning or tuning_for(layout, rows)
    if splits is None:
        cores = torch.cuda.get_device_properties(device).multi_processor_count
        splits = splits_for(batch * kv_heads, most_tokens, cores, tuning.programs_a_core)
    parts = (batch, kv_heads, splits, rows)
    rotated = None
    if not layout.fp8_keys:
        rotated = torch.empty(batch * query_rows, heads, layout.head_size, dtype=torch.float32, device=device)
    return Plan(
        layout=layout,
        batch=batch,
        query_rows=query_rows,
        heads=heads,
        kv_heads=kv_heads,
        rows=rows,
        splits=splits,
        tuning=tuning,
        partial=torch.empty(*parts, layout.head_size, dtype=torch.float32, device=device),
        partial_lse=torch.empty(parts, dtype=torch.float32, device=device),
        rotated=rotated,
    )


def attend(
    shape: Plan,
    query: torch.Tensor,
    cache: torch.Tensor,
    table: torch.Tensor,
    lengths: torch.Tensor,
    scale: float,
    out: torch.Tensor,
) -> None:
    """Write the attention of each request's last rows to `out`; allocates nothing, reads nothing back.

    query, out: [batch * query_rows, heads, head_size], channels contiguous. cache: uint8 of
    `layout.cache_shape`. table: int32 [batch, blocks]. lengths: int32 [batch], a request's tokens including
    the query's own.
    """
    layout, tuning = shape.layout, shape.tuning
    if shape.rotated is not None:
        rotate(query, shape.rotated)
        query = shape.rotated
    group = shape.heads // shape.kv_heads
    options: dict[str, Any] = {"num_warps": tuning.warps}
    if tuning.registers is not None:
        options["maxnreg"] = tuning.registers
    decode_kernel[(shape.kv_heads, shape.batch, shape.splits)](
        query,
        cache.view(torch.float8_e4m3fn),
        cache,
        cache.view(torch.int32),
        table,
        lengths,
        shape.partial,
        shape.partial_lse,
        scale * math.log2(math.e),
        query.stride(0),
        query.stride(1),
        table.stride(0),
        query_rows=shape.query_rows,
        group=group,
        rows=shape.rows,
        kv_heads=shape.kv_heads,
        head_size=layout.head_size,
        block_size=layout.block_size,
        fp8_keys=layout.fp8_keys,
        tile=TILE,
        whole_values=tuning.whole_values,
        stages=tuning.stages,
        **options,
    )
    # Many shares mean few requests: then narrower programs fill the GPU.
    channels = 32 if shape.splits > 32 else 64
    combine_kernel[(shape.batch * shape.kv_heads, group * shape.query_rows, layout.head_size // channels)](
        shape.partial,
        shape.partial_lse,
        out,
        out.stride(0),
        out.stride(1),
        splits=shape.splits,
        padded_splits=triton.next_power_of_2(shape.splits),
        query_rows=shape.query_rows,
        group=group,
        rows=shape.rows,
        kv_heads=shape.kv_heads,
        head_size=layout.head_size,
        channels=channels,
        num_warps=4 if shape.splits > 32 else 1,
    )
