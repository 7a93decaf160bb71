"""TurboQuant kernels on a GPU machine, in one run: ours, vLLM's two and FlashAttention 3 over a bf16 cache.

usage: turboquant.py [--vllm FOLDER] [--flash FILE] [--before-sm89] [--out FILE] [--quick] [--only PRESET]

It needs torch and Triton alone, not this program: `sndr bench kernels` runs it with an engine's Python.
FOLDER holds vLLM's Python files as FOLDER/vllm (0.32 or 0.33), FILE its _vllm_fa3_C library; without
them vLLM's kernels are left out and bf16 is PyTorch's own attention. Data is random and fresh for every
shape, each answer is checked against float64 on the cache it was read from. Times are medians of replayed
CUDA graphs with the L2 cache cleared in between, with first and ninth decile; vLLM's two are timed without
graphs, since they allocate. Shares are of the copy bandwidth (bytes read plus written) measured at the start.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from triton.testing import do_bench

PATCH = Path(__file__).resolve().parents[2] / "overlay" / "patches" / "turboquant-grouped-attention"
sys.path[:0] = [str(PATCH), str(Path(__file__).parent)]

from kernels import reference
from kernels.attention import Shape, attend, plan
from kernels.layout import CacheLayout
from kernels.store import store

BLOCK = 16
# preset, head size, query heads, KV heads, tokens, requests, query rows; the goal, a share of the bandwidth.
SHAPES: list[tuple[str, int, int, int, int, int, int, float | None]] = [
    ("k8v4", 128, 32, 8, 32768, 16, 1, 0.70),
    ("k8v4", 256, 24, 4, 32768, 16, 1, 0.60),
    ("k8v4", 256, 16, 2, 32768, 16, 1, 0.60),
    ("k8v4", 128, 32, 8, 32768, 16, 4, 0.65),
    ("k8v4", 256, 24, 4, 32768, 16, 4, 0.55),
    ("k8v4", 256, 16, 2, 32768, 16, 4, 0.55),
    ("k8v4", 128, 32, 8, 131072, 1, 4, 0.45),
    ("k8v4", 256, 24, 4, 131072, 1, 4, 0.45),
    ("k8v4", 256, 16, 2, 131072, 1, 4, 0.45),
    ("k8v4", 128, 32, 8, 32768, 1, 1, None),
    ("k8v4", 256, 24, 4, 32768, 1, 4, None),
    ("k8v4", 64, 16, 8, 32768, 16, 1, 0.60),
    ("k8v4", 64, 16, 8, 32768, 16, 4, 0.60),
    ("k8v4", 64, 32, 8, 32768, 16, 4, 0.60),
    ("4bit_nc", 128, 32, 8, 32768, 16, 1, 0.70),
    ("4bit_nc", 128, 32, 8, 32768, 16, 4, 0.70),
    ("4bit_nc", 256, 24, 4, 32768, 16, 1, 0.70),
    ("4bit_nc", 256, 24, 4, 32768, 16, 4, 0.70),
    ("4bit_nc", 128, 32, 8, 32768, 1, 1, None),
    ("4bit_nc", 256, 24, 4, 32768, 1, 4, None),
]
# What a proof takes, in some seconds and 6 GB: eight requests of MTP 3.
PROOFS: dict[str, tuple[str, int, int, int, int, int, int, float | None]] = {
    preset: (preset, 128, 32, 8, 32768, 8, 4, None) for preset in ("k8v4", "4bit_nc")
}
ALLOWED_ERROR = 3e-3


def timed(call: Callable[[], Any], graph: bool = True) -> tuple[float, float, float]:
    """Median, first and ninth decile of a call's time in milliseconds."""
    call()
    if graph:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            call()
        torch.cuda.current_stream().wait_stream(side)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            call()
        call = captured.replay
    median, low, high = do_bench(call, warmup=10, rep=60, quantiles=[0.5, 0.1, 0.9])
    return median, low, high


def copy_bandwidth(device: torch.device) -> float:
    """Bytes read plus written a second by a copy of 2 GiB of random bytes, in GB/s."""
    source = torch.randint(0, 255, (1 << 31,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    median = do_bench(lambda: target.copy_(source), return_mode="median")
    return float(2 * source.numel() / median / 1e6)


def distance(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.double() - expected).norm() / expected.norm())


def stock_tokens(cache: torch.Tensor, blocks: torch.Tensor, length: int, head_size: int) -> Any:
    """Keys and values of a stock k8v4 cache as float64: fp8 key, nibbles 2j, 2j + 1, fp16 step, zero."""
    slots = cache[blocks.long()].flatten(0, 1)[:length]
    keys = slots[..., :head_size].contiguous().view(torch.float8_e4m3fn).double()
    packed = slots[..., head_size : head_size * 3 // 2]
    scales = slots[..., head_size * 3 // 2 : head_size * 3 // 2 + 4].contiguous().view(torch.float16).double()
    nibbles = torch.stack([packed & 15, packed >> 4], -1).flatten(-2).double()
    return keys, nibbles * scales[..., :1] + scales[..., 1:]


class Case:
    """One shape: its data in every layout, and what was measured on it."""

    forced = False

    def __init__(self, shape: tuple[Any, ...], vllm: Any, bandwidth: float, device: torch.device) -> None:
        preset, self.head_size, self.heads, self.kv_heads, self.length, self.batch, self.rows, self.goal = (
            shape
        )
        self.layout = CacheLayout(preset, self.head_size, BLOCK)
        self.vllm = vllm if preset == "k8v4" else None
        self.bandwidth, self.device, self.results = bandwidth, device, {}
        self.bytes = self.batch * self.length * self.kv_heads * self.layout.token_bytes
        blocks = self.length // BLOCK
        self.table = (
            torch.randperm(blocks * self.batch, device=device).to(torch.int32).view(self.batch, blocks)
        )
        self.cache = torch.empty(
            self.layout.cache_shape(blocks * self.batch, self.kv_heads), dtype=torch.uint8, device=device
        )
        dense = (self.batch, self.kv_heads, self.length, self.head_size)
        self.keys = torch.empty(dense, dtype=torch.bfloat16, device=device)
        self.values = torch.empty_like(self.keys)
        if self.vllm:
            matrix = reference.hadamard(self.head_size, device).float()
            self.vllm.prepare(self.head_size, matrix)
            slot = (blocks * self.batch, BLOCK, self.kv_heads, self.vllm.slot_bytes())
            self.stock = torch.zeros(slot, dtype=torch.uint8, device=device)
            self.soa = torch.zeros(slot, dtype=torch.uint8, device=device)
        place = torch.arange(self.length, device=device)
        for request in range(self.batch):
            keys = torch.randn(
                self.length, self.kv_heads, self.head_size, dtype=torch.bfloat16, device=device
            )
            values = torch.randn_like(keys)
            slots = self.table[request].long()[place // BLOCK] * BLOCK + place % BLOCK
            store(keys, values, self.cache, slots, self.layout)
            if self.vllm:
                self.vllm.fill(keys, values, self.stock, self.soa, slots.to(torch.int32))
            self.keys[request], self.values[request] = keys.transpose(0, 1), values.transpose(0, 1)
        self.last = (keys, values, slots)
        self.query = torch.randn(
            self.batch * self.rows, self.heads, self.head_size, dtype=torch.bfloat16, device=device
        )
        self.lengths = torch.full((self.batch,), self.length, dtype=torch.int32, device=device)
        self.checked = sorted({0, self.batch - 1})

    def wanted(self, tokens: Callable[[int], Any]) -> dict[int, torch.Tensor]:
        scale = self.head_size**-0.5
        return {
            request: reference.attend(self.of(self.query, request), *tokens(request), self.length, scale)
            for request in self.checked
        }

    def of(self, rows: torch.Tensor, request: int) -> torch.Tensor:
        return rows[request * self.rows : (request + 1) * self.rows]

    def note(
        self, name: str, times: tuple[float, float, float], found: Any, expected: Any, size: int
    ) -> None:
        worst = None
        if found is not None:
            worst = max(distance(self.of(found, request), expected[request]) for request in self.checked)
        self.results[name] = {"ms": times, "share": size / times[0] / 1e6 / self.bandwidth, "error": worst}

    def ours(self) -> None:
        expected = self.wanted(
            lambda request: reference.read_tokens(self.cache, self.table[request], self.length, self.layout)
        )
        cores = torch.cuda.get_device_properties(self.device).multi_processor_count
        hopper = torch.cuda.get_device_capability(self.device)[0] == 9
        for name, native_fp8, tuned in (
            ("ours", True, hopper),
            ("sm89", True, False),
            ("sm8x", False, False),
        ):
            if name == "ours" or (self.forced and (self.layout.fp8_keys or native_fp8)):
                self._ours(name, native_fp8, tuned, cores, expected)
        keys, values, slots = self.last
        times = timed(lambda: store(keys, values, self.cache, slots, self.layout))
        moved = self.length * self.kv_heads * (self.head_size * 4 + self.layout.token_bytes)
        self.note("store", times, None, None, moved)

    def _ours(self, name: str, native_fp8: bool, hopper: bool, cores: int, expected: Any) -> None:
        """Decode and combine; `sm89` and `sm8x` are what runs on older GPUs with and without fp8 products."""
        shape = Shape(self.layout, self.rows, self.heads, self.kv_heads, cores, native_fp8, hopper=hopper)
        planned = plan(shape, self.batch, self.length, self.device)
        starts = torch.arange(0, self.batch * self.rows + 1, self.rows, dtype=torch.int32, device=self.device)
        out = torch.full_like(self.query, float("nan"))
        scale = self.head_size**-0.5

        def call() -> None:
            attend(planned, self.query, self.cache, self.table, self.lengths, starts, scale, out, True)

        self.note(name, timed(call), out, expected, self.bytes)

    def theirs(self) -> None:
        expected = self.wanted(
            lambda request: stock_tokens(self.stock, self.table[request], self.length, self.head_size)
        )
        behind = torch.arange(self.rows, dtype=torch.int32, device=self.device) - self.rows + 1
        lengths = (self.lengths[:, None] + behind[None]).reshape(-1)
        table = self.table.repeat_interleave(self.rows, 0)
        found = self.vllm.attend_stock(self.query, self.stock, table, lengths)
        times = timed(lambda: self.vllm.attend_stock(self.query, self.stock, table, lengths), graph=False)
        self.note("stock", times, found, expected, self.bytes)
        starts = torch.arange(0, self.batch * self.rows + 1, self.rows, dtype=torch.int32, device=self.device)
        best: Any = None
        for splits in (16, 32, 64):
            arguments = (self.query, self.soa, self.table, self.lengths, starts, self.length, splits)
            found = self.vllm.attend_soa(*arguments)
            times = timed(lambda arguments=arguments: self.vllm.attend_soa(*arguments), graph=False)
            if best is None or times < best[0]:
                best = times, found
        self.note("soa", best[0], best[1], expected, self.bytes)

    def flash(self) -> None:
        """FlashAttention 3 on the same tokens in bf16, paged alike; bytes are those of bf16."""
        pages = self.length // BLOCK * self.batch
        shape = pages, BLOCK, self.kv_heads, self.head_size
        parts = []
        for dense in (self.keys, self.values):
            paged = torch.empty(shape, dtype=torch.bfloat16, device=self.device)
            for request in range(self.batch):
                tokens = dense[request].transpose(0, 1)
                paged[self.table[request].long()] = tokens.reshape(-1, *shape[1:])
            parts.append(paged)
        starts = torch.arange(0, self.batch * self.rows + 1, self.rows, dtype=torch.int32, device=self.device)

        def call() -> torch.Tensor:
            found: torch.Tensor = torch.ops._vllm_fa3_C.fwd(
                *(self.query, *parts, None, None, None, None, starts, None, None, None, self.lengths),
                *(self.rows, self.length, self.table, None, None, None, None, None, None, None, None),
                *(self.head_size**-0.5, True, -1, -1, 0.0, True, None, 0, None, 0, None, 1, 0, None),
            )[0]
            return found

        expected = self.wanted(
            lambda request: (
                self.keys[request].transpose(0, 1).double(),
                self.values[request].transpose(0, 1).double(),
            )
        )
        found = call()
        self.note("bf16", timed(call), found, expected, 2 * self.keys.numel() * 2)
        self.results["bf16"]["backend"] = "FlashAttention 3, paged"

    def bf16(self) -> None:
        """PyTorch's attention on dense bf16 keys and values, its fastest backend; bytes are those of bf16."""
        rows = self.query.view(self.batch, self.rows, self.heads, self.head_size).transpose(1, 2)
        size = 2 * self.keys.numel() * 2
        backends = torch.nn.attention.SDPBackend
        for backend in (backends.FLASH_ATTENTION, backends.CUDNN_ATTENTION):

            def call(backend: Any = backend) -> torch.Tensor:
                with torch.nn.attention.sdpa_kernel(backend):
                    return torch.nn.functional.scaled_dot_product_attention(
                        rows, self.keys, self.values, enable_gqa=True
                    )

            try:
                times = timed(call)
            except RuntimeError as refused:
                print(f"  bf16 {backend}: {str(refused).splitlines()[0][:90]}")
                continue
            if "bf16" not in self.results or times < self.results["bf16"]["ms"]:
                # Not causal: neither backend masks a few last rows. Only the time is of interest.
                self.note("bf16", times, None, None, size)
                self.results["bf16"]["backend"] = backend.name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vllm", type=Path, help="folder that holds vllm/, vLLM's Python files")
    parser.add_argument("--flash", type=Path, help="vLLM's FlashAttention 3, _vllm_fa3_C*.so")
    parser.add_argument("--before-sm89", action="store_true", help="also the code path of older GPUs")
    parser.add_argument("--out", type=Path, help="write every figure to this JSON file")
    parser.add_argument("--quick", action="store_true", help="ours alone")
    parser.add_argument("--only", choices=sorted(PROOFS), help="one shape of this type, ours and bf16")
    chosen = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("There is no CUDA GPU that this Python's torch can use.")
    torch.manual_seed(torch.seed() % 2**31)
    device = torch.device("cuda")
    vllm = None
    if chosen.vllm:
        from vllm_kernels import VllmKernels

        vllm = VllmKernels(chosen.vllm)
    if chosen.flash:
        torch.ops.load_library(str(chosen.flash))
    Case.forced = chosen.before_sm89
    bandwidth = copy_bandwidth(device)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, copy {bandwidth:.0f} GB/s", flush=True)
    everything = []
    for shape in [PROOFS[chosen.only]] if chosen.only else SHAPES:
        case = Case(shape, vllm, bandwidth, device)
        case.ours()
        if not chosen.quick:
            for measure in (case.theirs if case.vllm else None, case.flash if chosen.flash else case.bf16):
                if measure is not None:
                    try:
                        measure()
                    except Exception as failed:  # noqa: BLE001 - somebody else's kernel; ours are measured by now
                        print(f"  {measure.__name__}: {type(failed).__name__} {str(failed)[:200]}")
        preset, size, heads, kv_heads, length, batch, rows, goal = shape
        print(
            f"{preset} {size} {heads}/{kv_heads}, {length // 1024}k x {batch}, {rows} queries, "
            f"{case.bytes / 1e6:.0f} MB"
        )
        for name, result in case.results.items():
            median, low, high = result["ms"]
            error = "" if result["error"] is None else f"  error {result['error']:.1e}"
            verdict = ""
            if name == "ours" and goal is not None:
                verdict = f"  goal {100 * goal:.0f} % {'reached' if result['share'] >= goal else 'MISSED'}"
            print(
                f"  {name:6} {median:8.4f} ms ({low:.4f} to {high:.4f})  "
                f"{100 * result['share']:5.1f} %{error}{verdict}"
            )
            if name in ("ours", "sm89", "sm8x") and not result["error"] <= ALLOWED_ERROR:
                print(f"  WRONG: {result['error']:.1e} is more than {ALLOWED_ERROR:.0e}")
        sys.stdout.flush()
        everything.append({"shape": shape, "bytes": case.bytes, "copy": bandwidth, "results": case.results})
        if chosen.out:
            chosen.out.write_text(json.dumps(everything, indent=1))
        del case
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
