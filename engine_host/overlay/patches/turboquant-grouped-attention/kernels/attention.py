"""Attention over a quantised cache, as one call: both passes, with the memory for them taken beforehand."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from .combine import combine_kernel
from .decode import decode_kernel
from .hadamard import rotate
from .layout import CacheLayout
from .shares import cut_kernel

try:
    from .hopper import hopper_kernel
except ImportError:  # A Triton without Gluon.
    hopper_kernel = None

MOST_QUERY_ROWS = 8
# wgmma multiplies 64 rows at a time, and these are tokens.
TILE = 64
# The most query rows that the kernel for Hopper takes; with keys of 4 bits, by head size, as far as it was
# measured.
HOPPER_ROWS = 32
HOPPER_ROWS_OF_4_BITS = {64: 8, 128: 16, 256: 32}
# By head size and whether keys have 8 bits, then by rows: programs a core, most registers of a thread.
HOPPER_TUNINGS: dict[tuple[int, bool], dict[int, tuple[int, int | None]]] = {
    (64, True): {8: (5, 96), 16: (5, 96), 32: (4, 128)},
    (64, False): {8: (5, 96)},
    (128, True): {8: (4, 128), 16: (4, 128), 32: (3, None)},
    (128, False): {8: (3, 168), 16: (4, 128)},
    (256, True): {8: (3, 168), 16: (3, 168), 32: (2, None)},
    (256, False): {8: (3, 168), 16: (2, None), 32: (2, None)},
}
# Of shares that are the same in every batch: their memory grows with their number.
MOST_FIXED_SHARES = 32
# Rounds of programs that a batch is cut into at most, beside a share for each request.
MOST_ROUNDS = 3
# What a program costs beside its tiles, in tiles, and the fewest of them in a share (docs/kernels.md).
EDGE = 6
LEAST_TILES = 2


@dataclass(frozen=True)
class Tuning:
    """Compile options of the decode kernel: see docs/kernels.md for the result of each."""

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


def hopper_tuning_for(layout: CacheLayout, rows: int, invariant: bool = False) -> Tuning:
    """The measured best of the kernel for Hopper; invariant: its variant for batch-invariant mode."""
    if invariant:
        programs = 2 if layout.head_size == 256 else 4 if layout.head_size == 64 and rows < 32 else 3
        registers = 128 if programs == 4 else None
        if layout.head_size == 128 and not layout.fp8_keys and layout.block_size == 128:
            # It takes 169: one more than 168, and a program fewer fits.
            registers = 168
    else:
        programs, registers = HOPPER_TUNINGS[layout.head_size, layout.fp8_keys][rows]
    return Tuning(whole_values=True, programs_a_core=programs, registers=registers)


def hopper_rows(preset: str, head_size: int) -> int:
    """The most query rows for which the kernel for Hopper was measured to be the faster one."""
    return HOPPER_ROWS if preset == "k8v4" else HOPPER_ROWS_OF_4_BITS[head_size]


def power_of_2(number: int) -> int:
    """The smallest power of two that is not less; Triton's own takes ten times as long in every layer."""
    return 1 << (number - 1).bit_length()


def rows_of(heads: int, kv_heads: int, query_rows: int) -> int:
    """Rows of one KV head of one request, padded to what the tensor cores take."""
    return max(8, power_of_2(heads // kv_heads * query_rows))


def prefill_rows(heads: int, kv_heads: int) -> int:
    """Query tokens a program takes where prompts run through this kernel too: as many as make 32 rows."""
    return max(1, min(MOST_QUERY_ROWS, 32 // (heads // kv_heads)))


def always_on_hopper(preset: str, head_size: int, heads: int, kv_heads: int, query_rows: int) -> bool:
    """True if the kernel for Hopper takes decode, verification and prompts in batch-invariant mode alike."""
    most = max(query_rows, prefill_rows(heads, kv_heads))
    return rows_of(heads, kv_heads, most) <= hopper_rows(preset, head_size)


def fixed_share_of(most_tokens: int) -> int:
    """The tokens of a share that is the same in every batch of an engine."""
    return max(1, math.ceil(most_tokens / MOST_FIXED_SHARES / TILE)) * TILE


@dataclass(frozen=True)
class Shape:
    """The shape to compile for; ValueError for more than 8 query rows or heads that do not divide.

    cores: multiprocessors of the GPU. native_fp8: its tensor cores multiply fp8 (SM 8.9 on). fixed_share: the
    tokens of a share where a row's answer may not depend on its batch (see `fixed_share_of`); 0 where it may.
    hopper: the kernel for Hopper's tensor cores (SM 9.0) may be used; with `fixed_share` only where every
    shape that a row may meet is within `hopper_rows`, since two kernels do not have the same bits.
    """

    layout: CacheLayout
    query_rows: int
    heads: int
    kv_heads: int
    cores: int
    native_fp8: bool = True
    fixed_share: int = 0
    hopper: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.query_rows <= MOST_QUERY_ROWS:
            raise ValueError(f"{self.query_rows} query rows; the kernel takes 1 to {MOST_QUERY_ROWS}")
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} query heads over {self.kv_heads} KV heads")

    @cached_property
    def rows(self) -> int:
        """Rows of one KV head of one request, padded to what the tensor cores take."""
        rows = rows_of(self.heads, self.kv_heads, self.query_rows)
        # Eight columns are multiplied by other instructions, whose sums differ in the last bit.
        return max(16, rows) if self.fixed_share else rows

    @cached_property
    def on_hopper(self) -> bool:
        """True if `hopper.py` computes it."""
        suits = self.rows <= hopper_rows(self.layout.preset, self.layout.head_size)
        return self.hopper and suits and hopper_kernel is not None

    @cached_property
    def tuning(self) -> Tuning:
        """The compile options for this shape."""
        return (
            hopper_tuning_for(self.layout, self.rows, self.fixed_share > 0)
            if self.on_hopper
            else tuning_for(self.layout, self.rows)
        )

    @cached_property
    def places(self) -> int:
        """Programs of one KV head that the GPU runs at once."""
        return max(1, self.cores * self.tuning.programs_a_core // self.kv_heads)

    def slots(self, batch: int, most_tokens: int) -> int:
        """The most shares that a batch of contexts of so many tokens is cut into."""
        if self.fixed_share:
            return batch * self.fixed_shares(most_tokens)
        return batch + MOST_ROUNDS * self.places

    def fixed_shares(self, most_tokens: int) -> int:
        """Shares of each context where they have a fixed number of tokens."""
        return math.ceil(most_tokens / self.fixed_share) if self.fixed_share else 0

    def together(self, batch: int, most_tokens: int) -> int:
        """Shares that are combined at a time: as many as a context has if all are alike, a power of two."""
        # Where an answer may not depend on its batch, their sum may not either.
        usual = self.fixed_shares(most_tokens) or max(8, min(64, math.ceil(self.places / batch)))
        return power_of_2(usual)

    def buffers(self, batch: int, most_tokens: int) -> list[tuple[tuple[int, ...], torch.dtype]]:
        """The memory that a batch needs: what shares find, their log2-sum-exp2, and rotated queries.

        What they find: fp32, on Hopper fp16, [slots, kv_heads, rows, head_size]; sums: fp32 without the last
        dimension; queries in the rotation of 4-bit keys: fp32 [batch * query_rows, heads, head_size], else
        nothing.
        """
        slots = self.slots(batch, most_tokens)
        parts = (slots, self.kv_heads, self.rows)
        rotated = 0 if self.layout.fp8_keys else batch * self.query_rows
        return [
            ((*parts, self.layout.head_size), torch.float16 if self.on_hopper else torch.float32),
            (parts, torch.float32),
            ((rotated, self.heads, self.layout.head_size), torch.float32),
        ]


@dataclass(frozen=True)
class Cut:
    """The shares of a batch: see `cut_kernel`; empty where each has a fixed number of tokens."""

    shares: torch.Tensor
    first_slots: torch.Tensor


@dataclass(frozen=True)
class Plan:
    """A shape, a batch, and the memory for it: see `Shape.buffers`."""

    shape: Shape
    batch: int
    most_tokens: int
    partial: torch.Tensor
    partial_lse: torch.Tensor
    rotated: torch.Tensor


def plan(shape: Shape, batch: int, most_tokens: int, device: torch.device) -> Plan:
    """Take a batch's memory on a device."""
    sizes = shape.buffers(batch, most_tokens)
    taken = [torch.empty(size, dtype=kind, device=device) for size, kind in sizes]
    return Plan(shape, batch, most_tokens, *taken)


def cut(
    planned: Plan,
    lengths: torch.Tensor,
    starts: torch.Tensor,
    edge: int = EDGE,
    least_tiles: int = LEAST_TILES,
) -> Cut:
    """Choose the shares of a batch; they also hold where its contexts have grown since."""
    shape, device = planned.shape, lengths.device
    if shape.fixed_share:
        nothing = torch.empty(0, dtype=torch.int32, device=device)
        return Cut(nothing, nothing)
    slots, padded = planned.partial.shape[0], power_of_2(planned.batch)
    found = Cut(
        torch.empty(slots, 4, dtype=torch.int32, device=device),
        torch.empty(planned.batch + 1, dtype=torch.int32, device=device),
    )
    cut_kernel[(1,)](
        lengths,
        starts,
        found.shares,
        found.first_slots,
        planned.batch,
        shape.places,
        slots,
        tile=TILE,
        edge=edge,
        least=least_tiles,
        padded_batch=padded,
        num_warps=8 if padded > 64 else 4,
    )
    return found


def attend(
    planned: Plan,
    query: torch.Tensor,
    cache: torch.Tensor,
    table: torch.Tensor,
    lengths: torch.Tensor,
    starts: torch.Tensor,
    scale: float,
    out: torch.Tensor,
    uniform: bool = False,
    known: Cut | None = None,
) -> None:
    """Write the attention of each request's last tokens to `out`; reads nothing back.

    query, out: [tokens, heads, head_size], channels contiguous. cache: uint8 of `layout.cache_shape`; blocks
    may lie further apart than their bytes. table: int32 [batch, blocks]. lengths: int32 [batch], a request's
    tokens including the query's own. starts: int32 [batch + 1], where each request's query tokens begin; each
    has at most `query_rows`, and may have none. uniform: each has `query_rows`, one after the other, or no
    length at all. known: the batch's shares, where it was cut already.
    """
    if not planned.shape.layout.fp8_keys:
        # A padded batch has more rows than queries.
        query = query[: planned.rotated.shape[0]]
        rotated = planned.rotated[: query.shape[0]]
        rotate(query, rotated)
        query = rotated
    known = known or cut(planned, lengths, starts)
    _attend_to_shares(planned, known, query, cache, table, lengths, starts, scale, uniform)
    _combine(planned, known, starts, out)


def compile_by_batch(
    shape: Shape, most_batch: int, most_tokens: int, dtype: torch.dtype, device: torch.device
) -> None:
    """Compile cutting and combining for batches of every size up to `most_batch` requests.

    Graphs are captured for some batches; the others come first while somebody waits for an answer.
    """
    batches: dict[tuple[int, int], int] = {}
    for batch in range(most_batch, 0, -1):
        batches[shape.together(batch, most_tokens), power_of_2(batch)] = batch
    out = torch.empty(1, shape.heads, shape.layout.head_size, dtype=dtype, device=device)
    for batch in batches.values():
        # No request has a token: nothing is read of the cache, nothing is written.
        starts = torch.zeros(batch + 1, dtype=torch.int32, device=device)
        planned = plan(shape, batch, most_tokens, device)
        _combine(planned, cut(planned, starts[1:], starts), starts, out)


def _combine(planned: Plan, known: Cut, starts: torch.Tensor, out: torch.Tensor) -> None:
    """The second pass: one answer from the shares of each context."""
    shape = planned.shape
    head_size, group = shape.layout.head_size, shape.heads // shape.kv_heads
    together = shape.together(planned.batch, planned.most_tokens)
    # Many shares mean few requests: then narrower programs fill the GPU.
    many = together > 32
    channels = 32 if many else 64
    grid = (planned.batch * shape.kv_heads, group * shape.query_rows, head_size // channels)
    combine_kernel[grid](
        planned.partial,
        planned.partial_lse,
        out,
        starts,
        known.first_slots,
        shape.fixed_shares(planned.most_tokens),
        out.stride(0),
        out.stride(1),
        together=together,
        fixed=shape.fixed_share > 0,
        group=group,
        rows=shape.rows,
        kv_heads=shape.kv_heads,
        head_size=head_size,
        channels=channels,
        num_warps=4 if many else 1,
    )


def _attend_to_shares(
    planned: Plan,
    known: Cut,
    query: torch.Tensor,
    cache: torch.Tensor,
    table: torch.Tensor,
    lengths: torch.Tensor,
    starts: torch.Tensor,
    scale: float,
    uniform: bool,
) -> None:
    """The first pass: what each share of each context finds."""
    shape, tuning, layout = planned.shape, planned.shape.tuning, planned.shape.layout
    grid = (shape.kv_heads, planned.partial.shape[0])
    pairs = torch.int8 if layout.head_size == 64 else torch.int16
    given = (
        query,
        cache.view(torch.float8_e4m3fn) if shape.native_fp8 else cache,
        cache.view(pairs) if shape.on_hopper else cache,
        cache.view(torch.int32),
        *([cache.view(torch.float16)] if shape.on_hopper else []),
        table,
        lengths,
        starts,
        known.shares,
        planned.partial,
        planned.partial_lse,
        scale * math.log2(math.e),
        query.stride(0),
        query.stride(1),
        table.stride(0),
        shape.fixed_shares(planned.most_tokens),
    )
    sizes: dict[str, Any] = {
        "group": shape.heads // shape.kv_heads,
        "rows": shape.rows,
        "kv_heads": shape.kv_heads,
        "head_size": layout.head_size,
        "block_size": layout.block_size,
        "block_stride": cache.stride(0),
        "fixed_share": shape.fixed_share,
        "num_warps": tuning.warps,
    }
    if tuning.registers is not None:
        sizes["maxnreg"] = tuning.registers
    if shape.on_hopper:
        hopper_kernel[grid](*given, fp8_keys=layout.fp8_keys, **sizes)
        return
    decode_kernel[grid](
        *given,
        # Measured: at 256 a known number spares registers, at 128 it is slower (docs/kernels.md).
        query_rows=shape.query_rows if uniform and layout.head_size > 128 else 0,
        fp8_keys=layout.fp8_keys,
        native_fp8=shape.native_fp8,
        tile=TILE,
        whole_values=tuning.whole_values,
        stages=tuning.stages,
        **sizes,
    )
