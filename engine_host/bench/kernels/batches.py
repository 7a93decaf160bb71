"""TurboQuant decode on a GPU for batches as engines have them: contexts that are alike and that are not.

usage: batches.py [--seconds N] [--out FILE]

Times and shares of the copy bandwidth as in turboquant.py, whose way of timing it takes; it needs torch and
Triton alone, as that does. "Cut" is the part of it that chooses the shares.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

PATCH = Path(__file__).resolve().parents[2] / "overlay" / "patches" / "turboquant-grouped-attention"
sys.path[:0] = [str(PATCH), str(Path(__file__).parent)]

from kernels import reference
from kernels.attention import Shape, attend, cut, plan
from kernels.layout import CacheLayout
from kernels.store import store
from turboquant import BLOCK, copy_bandwidth, distance, timed

# The longest context of the engine.
LONGEST = 131072
# head size, query heads, KV heads.
HEADS = {
    "8b": (128, 32, 8),
    "28/4": (128, 28, 4),
    "40/8": (128, 40, 8),
    "64": (64, 32, 8),
    "27b": (256, 24, 4),
    "35b": (256, 16, 2),
    "8/1": (256, 8, 1),
}
# Tokens and requests of batches whose requests are alike, by heads; each with 1 and with 4 query rows.
ALIKE = {
    "8b": ((32768, 16), (1024, 128), (4096, 64), (32768, 6), (32768, 28), (16384, 36), (16384, 56)),
    "27b": ((32768, 16), (1024, 128), (4096, 64), (32768, 10), (16384, 40)),
    "35b": ((32768, 16),),
    "64": ((32768, 16),),
    "28/4": ((40960, 12),),
    "40/8": ((24576, 24),),
    "8/1": ((65536, 8),),
}
ALONE = (1024, 8192, 32768, 131072)
# Requests between 1k tokens and so many.
SPREAD = ((4, 65536), (16, 65536), (48, 32768))


def drawn(requests: int, least: int, most: int) -> list[int]:
    """Lengths whose logarithms are spread evenly, the same in every run."""
    draw = random.Random(requests)
    lengths = [int(least * (most / least) ** draw.random()) for _ in range(requests - 1)]
    return [*lengths, most]


def batches() -> Iterator[tuple[str, int, list[int], str]]:
    """Heads, query rows, lengths, and what to call them."""
    for heads, known in ALIKE.items():
        for length, batch in known:
            for rows in (1, 4):
                yield heads, rows, [length] * batch, f"{length // 1024}k x {batch}"
    for heads in ("8b", "27b", "35b"):
        for batch, most in SPREAD:
            for rows in (1, 4):
                yield heads, rows, drawn(batch, 1024, most), f"1k to {most // 1024}k x {batch}"
        yield heads, 4, [2048] * 31 + [LONGEST], "2k x 31, 128k x 1"
    for length in ALONE:
        yield "8b", 4, [length], f"{length // 1024}k x 1"


def main() -> None:
    """Time every batch, as many as there is time for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--out", type=Path, help="write every figure to this JSON file")
    chosen = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("There is no CUDA GPU that this Python's torch can use.")
    began, device = time.monotonic(), torch.device("cuda")
    hopper = torch.cuda.get_device_capability(device)[0] == 9
    cores = torch.cuda.get_device_properties(device).multi_processor_count
    bandwidth = copy_bandwidth(device)
    gpu = torch.cuda.get_device_name()
    print(f"{gpu}, {cores} cores, torch {torch.__version__}, copy {bandwidth:.0f} GB/s", flush=True)
    found = []
    for preset in ("k8v4", "4bit_nc"):
        for name, rows, lengths, called in batches():
            if time.monotonic() - began > chosen.seconds or (preset != "k8v4" and name not in ("8b", "27b")):
                continue
            size, heads, kv_heads = HEADS[name]
            layout = CacheLayout(preset, size, BLOCK)
            shape = Shape(layout, rows, heads, kv_heads, cores, hopper=hopper)
            first, call, error = prepared(shape, lengths, device)
            took, before = timed(call), timed(first)
            moved = sum(lengths) * kv_heads * layout.token_bytes
            reached = 100 * moved / took[0] / 1e6 / bandwidth
            print(
                f"{preset} {name} {called}, {rows}: {took[0]:.4f} ms, {reached:.1f} %, error {error():.1e}",
                flush=True,
            )
            row = {"preset": preset, "heads": name, "rows": rows, "lengths": lengths, "called": called}
            found.append({**row, "copy": bandwidth, "bytes": moved, "ms": took, "cut_ms": before})
            if chosen.out:
                chosen.out.write_text(json.dumps(found))


def prepared(
    shape: Shape, lengths: list[int], device: torch.device
) -> tuple[Callable[[], object], Callable[[], None], Callable[[], float]]:
    """Fill a batch's cache; return how it is cut, its attention, and its error in its extreme contexts."""
    layout, rows, batch = shape.layout, shape.query_rows, len(lengths)
    blocks = [-(-length // BLOCK) for length in lengths]
    order = torch.randperm(sum(blocks), device=device).to(torch.int32)
    table = torch.zeros(batch, max(blocks), dtype=torch.int32, device=device)
    cache = torch.empty(layout.cache_shape(sum(blocks), shape.kv_heads), dtype=torch.uint8, device=device)
    first = 0
    for request, (length, own) in enumerate(zip(lengths, blocks, strict=True)):
        table[request, :own] = order[first : first + own]
        first += own
        place = torch.arange(length, device=device)
        slots = table[request].long()[place // BLOCK] * BLOCK + place % BLOCK
        keys = torch.randn(length, shape.kv_heads, layout.head_size, dtype=torch.bfloat16, device=device)
        store(keys, torch.randn_like(keys), cache, slots, layout)
    query = torch.randn(batch * rows, shape.heads, layout.head_size, dtype=torch.bfloat16, device=device)
    out = torch.empty_like(query)
    starts = torch.arange(0, batch * rows + 1, rows, dtype=torch.int32, device=device)
    held = torch.tensor(lengths, dtype=torch.int32, device=device)
    planned = plan(shape, batch, LONGEST, device)

    def first() -> object:
        return cut(planned, held, starts)

    def call() -> None:
        attend(planned, query, cache, table, held, starts, layout.head_size**-0.5, out, True)

    def error() -> float:
        worst = []
        for request in (lengths.index(min(lengths)), lengths.index(max(lengths))):
            mine = slice(request * rows, (request + 1) * rows)
            tokens = reference.read_tokens(cache, table[request], lengths[request], layout)
            expected = reference.attend(query[mine], *tokens, lengths[request], layout.head_size**-0.5)
            worst.append(distance(out[mine], expected))
        return max(worst)

    return first, call, error


if __name__ == "__main__":
    main()
