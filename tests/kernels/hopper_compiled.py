"""The kernel for Hopper as far as a compiler without a GPU takes it: to PTX.

Run by `tests/unit/overlay/test_turboquant_kernels.py` with a Python that has torch and Triton and the patch's
folder on its path. Triton's interpreter knows no Gluon: what the kernel computes is compared with float64 by
the self-test at an engine's start and by the bench.
"""

import functools
import re
from typing import Any

import pytest
import torch
from kernels.attention import Shape, always_on_hopper, hopper_tuning_for
from kernels.hopper import hopper_kernel
from kernels.layout import CacheLayout
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.experimental.gluon._runtime import GluonASTSource

# Bytes of shared memory of a core of an H100 or H200, and what the system takes of it for each program.
CORE_BYTES, PROGRAM_BYTES = 228 << 10, 1 << 10
POINTERS = {
    "queries": "*bf16",
    "fp8_cache": "*fp8e4nv",
    "pair_cache": "*i16",
    "word_cache": "*i32",
    "norm_cache": "*fp16",
    "table": "*i32",
    "lengths": "*i32",
    "starts": "*i32",
    "shares": "*i32",
    "partial": "*fp16",
    "partial_lse": "*fp32",
    "scale_log2": "fp32",
}
ALIGNED = {*POINTERS, "query_token_stride", "query_head_stride"} - {
    "table",
    "lengths",
    "starts",
    "shares",
    "scale_log2",
}


@functools.cache
def compiled(
    head_size: int,
    rows: int,
    group: int,
    block_size: int = 16,
    gap: int = 0,
    fixed_share: int = 0,
    preset: str = "k8v4",
) -> tuple[str, dict[str, Any]]:
    """The PTX of one variant and what Triton says of it."""
    layout = CacheLayout(preset, head_size, block_size)
    pointers = {
        **POINTERS,
        "queries": "*bf16" if layout.fp8_keys else "*fp32",
        "pair_cache": "*i8" if head_size == 64 else "*i16",
    }
    constants = {
        "group": group,
        "rows": rows,
        "kv_heads": 2,
        "head_size": head_size,
        "block_size": block_size,
        "block_stride": 2 * layout.page_bytes + gap,
        "fixed_share": fixed_share,
        "fp8_keys": layout.fp8_keys,
    }
    names = hopper_kernel.arg_names
    signature = {name: "constexpr" if name in constants else pointers.get(name, "i32") for name in names}
    aligned = {(names.index(name),): [["tt.divisibility", 16]] for name in ALIGNED}
    source = GluonASTSource(hopper_kernel, signature, constants, aligned)
    target = GPUTarget("cuda", 90, 32)
    backend = make_backend(target)
    # With a version of PTX given, Triton asks no assembler for its own.
    options = backend.parse_options({"num_warps": 4, "ptx_version": 86})
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    context = _context(backend)
    made = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    metadata: dict[str, Any] = {"target": target, **options.__dict__}
    for name in ("ttgir", "llir", "ptx"):
        made = stages[name](made, metadata)
    return made, metadata


def _context(backend: Any) -> Any:
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return context


@pytest.mark.parametrize(
    ("preset", "head_size", "rows", "group"),
    [
        ("k8v4", 64, 8, 8),
        ("k8v4", 64, 16, 3),
        ("k8v4", 64, 32, 6),
        ("k8v4", 128, 8, 8),
        ("k8v4", 128, 16, 3),
        ("k8v4", 256, 32, 6),
        ("4bit_nc", 64, 8, 8),
        ("4bit_nc", 128, 16, 3),
        ("4bit_nc", 256, 32, 6),
    ],
)
def test_values_and_scores_are_multiplied_by_hopper_s_tensor_cores(
    preset: str, head_size: int, rows: int, group: int
) -> None:
    ptx, metadata = compiled(head_size, rows, group, preset=preset)
    assert "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3" in ptx
    assert f"wgmma.mma_async.sync.aligned.m64n{rows}k16.f32.f16.f16" in ptx
    tuning = hopper_tuning_for(CacheLayout(preset, head_size, 16), rows)
    assert tuning.programs_a_core * (metadata["shared"] + PROGRAM_BYTES) <= CORE_BYTES


def loop_of(ptx: str) -> str:
    """The loop's two turns."""
    return ptx[ptx.index("$L__BB0_", ptx.index("wgmma.mma_async")) : ptx.rindex("wgmma.mma_async")]


@pytest.mark.parametrize(
    ("preset", "head_size", "rows"),
    [("k8v4", 64, 32), ("k8v4", 256, 8), ("4bit_nc", 256, 32), ("4bit_nc", 128, 16)],
)
def test_a_turn_has_one_barrier(preset: str, head_size: int, rows: int) -> None:
    loop = loop_of(compiled(head_size, rows, rows, preset=preset)[0])
    # Two turns, and one more for the two sharing their memory.
    assert len(re.findall("bar.sync", loop)) <= 3


@pytest.mark.parametrize(
    ("preset", "head_size", "block_size"),
    [
        ("k8v4", 64, 32),
        ("k8v4", 128, 128),
        ("k8v4", 256, 64),
        ("4bit_nc", 64, 128),
        ("4bit_nc", 128, 64),
        ("4bit_nc", 256, 32),
    ],
)
def test_every_block_size(preset: str, head_size: int, block_size: int) -> None:
    assert "wgmma" in compiled(head_size, 8, 4, block_size, gap=208, fixed_share=2048, preset=preset)[0]


@pytest.mark.parametrize(("head_size", "rows", "group"), [(64, 8, 8), (128, 16, 3), (256, 32, 6)])
def test_keys_of_4_bits_are_read_and_written_by_16_bytes(head_size: int, rows: int, group: int) -> None:
    ptx, _ = compiled(head_size, rows, group, preset="4bit_nc")
    a_turn = 64 * head_size // 2 // 16 // 128
    loop = loop_of(ptx)
    assert len(re.findall(r"ld\.global\.v4\.b32", loop)) >= a_turn
    assert len(re.findall(r"st\.shared\.v4\.b32", loop)) >= 2 * a_turn
    # A look-up of four levels takes one instruction; nothing is unpacked or packed byte by byte.
    assert "cvt.rn.satfinite.e4m3x2" not in loop


@pytest.mark.parametrize("preset", ["k8v4", "4bit_nc"])
@pytest.mark.parametrize(
    ("rows", "fixed_share", "scores", "lanes"),
    [(8, 0, 4, "1248"), (16, 0, 8, "124"), (32, 0, 16, "12"), (16, 2048, 16, "12")],
)
def test_few_rows_are_shared_by_more_threads(
    preset: str, rows: int, fixed_share: int, scores: int, lanes: str
) -> None:
    loop = loop_of(compiled(256, rows, 6, fixed_share=fixed_share, preset=preset)[0])
    # A power of two for each score of a thread, and one for what was found before.
    assert len(re.findall(r"ex2\.approx", loop)) == 2 * (scores + 1)
    # Maxima and sums go through the lanes of one row alone, and those lie side by side.
    assert set(re.findall(r"shfl\.sync\.bfly\.b32[^;]*?, (\d+), 31", loop)) == set(lanes)


def test_batch_invariant_mode_keeps_its_code() -> None:
    layout = CacheLayout("k8v4", 128, 16)
    # Its answers were compared to the bit with these (docs/proof.md).
    assert hopper_tuning_for(layout, 16, invariant=True).registers is None
    assert hopper_tuning_for(layout, 16).registers == 128


def test_what_it_takes() -> None:
    def taken(preset: str, head_size: int, query_rows: int, hopper: bool = True) -> bool:
        layout = CacheLayout(preset, head_size, 16)
        return Shape(layout, query_rows, 16, 2, 132, hopper=hopper).on_hopper

    assert taken("k8v4", 128, 1)
    assert taken("k8v4", 256, 4)
    assert not taken("k8v4", 256, 5)
    assert taken("k8v4", 64, 4)
    # With keys of 4 bits, as many rows as it was measured with.
    assert taken("4bit_nc", 64, 1)
    assert not taken("4bit_nc", 64, 2)
    assert taken("4bit_nc", 128, 2)
    assert not taken("4bit_nc", 128, 4)
    assert taken("4bit_nc", 256, 4)
    assert not taken("k8v4", 128, 1, hopper=False)


def test_batch_invariant_mode_has_one_kernel_for_decode_and_prompts() -> None:
    assert always_on_hopper("k8v4", 64, 16, 8, 4)
    assert always_on_hopper("k8v4", 128, 32, 8, 8)
    assert not always_on_hopper("k8v4", 256, 16, 2, 5)
    assert always_on_hopper("4bit_nc", 256, 24, 4, 4)
    # One query has 4 rows, but a prompt goes through the kernel 8 tokens at a time.
    assert not always_on_hopper("4bit_nc", 128, 32, 8, 1)


def test_what_shares_find_is_kept_as_fp16() -> None:
    layout = CacheLayout("k8v4", 128, 16)
    shape = Shape(layout, 1, 16, 2, 132, hopper=True)
    assert shape.places == 132 * 4 // 2
    assert shape.buffers(3, 5)[0] == ((3 + 3 * shape.places, 2, 8, 128), torch.float16)
    assert Shape(layout, 1, 16, 2, 132).buffers(3, 5)[0][1] == torch.float32
