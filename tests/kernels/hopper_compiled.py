"""The kernel for Hopper as far as a compiler without a GPU takes it: to PTX.

Run by `tests/unit/overlay/test_turboquant_kernels.py` with a Python that has torch and Triton and the patch's
folder on its path. Triton's interpreter knows no Gluon: what the kernel computes is compared with float64 by
the self-test at an engine's start and by the bench.
"""

import re
from typing import Any

import pytest
import torch
from kernels.attention import Shape, hopper_tuning_for
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
    "table": "*i32",
    "lengths": "*i32",
    "starts": "*i32",
    "partial": "*fp16",
    "partial_lse": "*fp32",
    "scale_log2": "fp32",
}
ALIGNED = {*POINTERS, "query_token_stride", "query_head_stride"} - {
    "table",
    "lengths",
    "starts",
    "scale_log2",
}


def compiled(
    head_size: int, rows: int, group: int, block_size: int = 16, gap: int = 0, fixed_share: int = 0
) -> tuple[str, dict[str, Any]]:
    """The PTX of one variant and what Triton says of it."""
    layout = CacheLayout("k8v4", head_size, block_size)
    constants = {
        "group": group,
        "rows": rows,
        "kv_heads": 2,
        "head_size": head_size,
        "block_size": block_size,
        "block_stride": 2 * layout.page_bytes + gap,
        "fixed_share": fixed_share,
    }
    names = hopper_kernel.arg_names
    signature = {name: "constexpr" if name in constants else POINTERS.get(name, "i32") for name in names}
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


@pytest.mark.parametrize("head_size", [128, 256])
@pytest.mark.parametrize(("rows", "group"), [(8, 8), (16, 3), (32, 6)])
def test_values_and_scores_are_multiplied_by_hopper_s_tensor_cores(
    head_size: int, rows: int, group: int
) -> None:
    ptx, metadata = compiled(head_size, rows, group)
    assert "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3" in ptx
    assert f"wgmma.mma_async.sync.aligned.m64n{rows}k16.f32.f16.f16" in ptx
    tuning = hopper_tuning_for(CacheLayout("k8v4", head_size, 16), rows)
    assert tuning.programs_a_core * (metadata["shared"] + PROGRAM_BYTES) <= CORE_BYTES


def test_a_turn_has_one_barrier() -> None:
    ptx, _ = compiled(256, 32, 8)
    loop = ptx[ptx.index("$L__BB0_", ptx.index("wgmma.mma_async")) : ptx.rindex("wgmma.mma_async")]
    # Two turns, and one more for the two sharing their memory.
    assert len(re.findall("bar.sync", loop)) <= 3


@pytest.mark.parametrize("head_size", [128, 256])
@pytest.mark.parametrize("block_size", [32, 64, 128])
def test_every_block_size(head_size: int, block_size: int) -> None:
    assert "wgmma" in compiled(head_size, 8, 4, block_size, gap=208, fixed_share=2048)[0]


def test_what_it_takes() -> None:
    def taken(preset: str, head_size: int, query_rows: int, hopper: bool = True) -> bool:
        layout = CacheLayout(preset, head_size, 16)
        return Shape(layout, query_rows, 16, 2, 132, hopper=hopper).on_hopper

    assert taken("k8v4", 128, 1)
    assert taken("k8v4", 256, 4)
    assert not taken("k8v4", 256, 5)
    assert not taken("k8v4", 64, 1)
    assert not taken("4bit_nc", 128, 1)
    assert not taken("k8v4", 128, 1, hopper=False)


def test_its_shares_are_kept_as_fp16() -> None:
    layout = CacheLayout("k8v4", 128, 16)
    assert Shape(layout, 1, 16, 2, 132, hopper=True).buffers(3, 5)[0] == ((3, 2, 5, 8, 128), torch.float16)
    assert Shape(layout, 1, 16, 2, 132).buffers(3, 5)[0][1] == torch.float32
