"""Every variant of every kernel is compiled at the start: no answer waits for a compiler.

Triton's launcher is replaced by one that notes which variant it would compile for SM 9.0; nothing runs.
"""

import pytest

from tests.kernel_interpreter import interpreter_environment
from tests.overlay_engine import run_in_engine

SCRIPT = """
import json, os, sys
from types import SimpleNamespace
import torch
import vllm.v1.attention.backends.turboquant_attn as backend
from vllm.model_executor.layers.quantization.turboquant.config import TurboQuantConfig

sys.path.append(os.environ["KERNELS"])
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.runtime.jit import JITFunction, create_function_from_signature
from sndr_overlay_patches.turboquant_grouped_attention import decision, wiring

PRESET, HEADS, KV_HEADS, SIZE, HOPPER = sys.argv[1], *map(int, sys.argv[2:6])
DTYPE = getattr(torch, sys.argv[6])
BLOCK, DRAFTS, REQUESTS = 32, 3, 16
target, binders, variants = make_backend(GPUTarget("cuda", 90, 32)), {}, set()


def note(self, *args, grid, warmup, **options):
    if self not in binders:
        binders[self] = create_function_from_signature(self.signature, self.params, target)
    bound, kinds, chosen = binders[self](*args, debug=False, **options)
    variants.add((self.__name__, str(list(zip(bound, kinds))), str(chosen)))


def flash(q, cu_seqlens_q, out=None, return_softmax_lse=False, **rest):
    found, sums = torch.zeros_like(q) if out is None else out, torch.zeros(q.shape[1], q.shape[0])
    return (found, sums) if return_softmax_lse else found


def self_test(facts):
    # Nothing runs, so what it finds is nothing.
    decision._wrong(facts, True, bool(HOPPER), "cpu")
    return "", True, bool(HOPPER)


JITFunction.run = note
backend._HAS_FLASH_ATTN, backend.flash_attn_varlen_func = True, flash
decision._failing = self_test
# The number of shares depends on the GPU's cores.
torch.cuda.is_available = lambda: True
torch.cuda.get_device_properties = lambda *device: SimpleNamespace(multi_processor_count=132)
# Small windows, so that there are several.
wiring.WINDOW_BYTES, wiring.SUMS_BYTES = 128 * 4 * KV_HEADS * SIZE, 128 * HEADS * SIZE * 4

impl = backend.TurboQuantAttentionImpl.__new__(backend.TurboQuantAttentionImpl)
impl.num_heads, impl.num_kv_heads, impl.head_size, impl.scale = HEADS, KV_HEADS, SIZE, SIZE**-0.5
impl.kv_cache_dtype, impl.fa_version, impl.sliding_window, impl.sinks = PRESET, 3, None, None
impl._soa_store, impl.tq_config = False, TurboQuantConfig.from_cache_dtype(PRESET, SIZE)
config = SimpleNamespace(
    compilation_config=SimpleNamespace(static_forward_context={"0": SimpleNamespace(impl=impl)}),
    speculative_config=SimpleNamespace(num_speculative_tokens=DRAFTS, parallel_drafting=False),
    parallel_config=SimpleNamespace(decode_context_parallel_size=1, enable_dbo=False),
    kv_transfer_config=None, cache_config=SimpleNamespace(block_size=BLOCK), use_v2_model_runner=False,
    model_config=SimpleNamespace(dtype=DTYPE, max_model_len=32768,
                                 get_num_attention_heads=lambda parallel: HEADS),
    scheduler_config=SimpleNamespace(max_num_seqs=REQUESTS, max_num_batched_tokens=512,
                                     enable_chunked_prefill=True),
    attention_config=SimpleNamespace(tq_max_kv_splits_for_cuda_graph=32),
)
spec = SimpleNamespace(block_size=BLOCK, num_kv_heads=KV_HEADS, head_size=SIZE)
builder = backend.TurboQuantMetadataBuilder(spec, ["0"], config, torch.device("cpu"))
cache = torch.zeros(REQUESTS * 40, KV_HEADS, BLOCK, impl.tq_config.slot_size_aligned, dtype=torch.uint8)


def step(queries, lengths):
    tokens, starts = sum(queries), torch.tensor([0, *queries]).cumsum(0).to(torch.int32)
    slots, table = torch.zeros(tokens, dtype=torch.int64), torch.zeros(len(queries), 40, dtype=torch.int32)
    row = torch.zeros(tokens, (HEADS + 2 * KV_HEADS) * SIZE, dtype=DTYPE)
    query, key, value = row.split([HEADS * SIZE, KV_HEADS * SIZE, KV_HEADS * SIZE], -1)
    made = builder.build(0, SimpleNamespace(
        num_reqs=len(queries), num_actual_tokens=tokens, max_query_len=max(queries),
        max_seq_len=max(lengths), query_start_loc=starts, query_start_loc_cpu=starts, slot_mapping=slots,
        seq_lens=torch.tensor(lengths, dtype=torch.int32), block_table_tensor=table,
        seq_lens_cpu_upper_bound=torch.tensor(lengths), is_prefilling=None,
    ))
    impl.do_kv_cache_update(None, key, value, cache, slots)
    output = torch.zeros(tokens, HEADS * SIZE, dtype=DTYPE)
    impl.forward(None, query, key, value, cache, made, output)


started = set(variants)
step([40], [40])
step([40], [90])
step([33], [1000])
for number in range(1, REQUESTS + 1):
    for queries in ([DRAFTS + 1] * number, [1] * number, [2] * number):
        step(queries, [70] * number)
        if number < REQUESTS:
            step([*queries, 41], [70] * number + [300])
# Neighbours of any number of tokens, and rows that pad a captured batch.
step([41, 33, 1], [300, 400, 70])
step([4, 41, 1, 33, 4], [300, 300, 70, 400, 80])
step([4, 1, 0, 0], [70, 70, 0, 0])
step([1, 1, 0, 0], [70, 70, 0, 0])
late = sorted(variants - started)
print(json.dumps({"kernels": sorted({name for name, *_ in started}), "late": late}))
"""


@pytest.mark.parametrize(
    ("preset", "heads", "kv_heads", "size", "hopper", "dtype", "invariant"),
    [
        ("turboquant_k8v4", 32, 8, 128, 1, "bfloat16", "0"),
        ("turboquant_k8v4", 16, 2, 256, 1, "bfloat16", "1"),
        ("turboquant_k8v4", 24, 4, 256, 0, "float16", "0"),
        ("turboquant_4bit_nc", 16, 8, 64, 0, "float16", "1"),
        ("turboquant_4bit_nc", 32, 8, 128, 1, "bfloat16", "0"),
        ("turboquant_k8v4", 16, 8, 64, 1, "float16", "1"),
    ],
)
def test_nothing_is_left_to_compile(
    preset: str, heads: int, kv_heads: int, size: int, hopper: int, dtype: str, invariant: str
) -> None:
    kernels = interpreter_environment()["PYTHONPATH"].rpartition(":")[2]
    made = run_in_engine(
        SCRIPT,
        ["turboquant-spec-graphs", "turboquant-grouped-attention"],
        environment={"KERNELS": kernels, "VLLM_BATCH_INVARIANT": invariant},
        arguments=[preset, str(heads), str(kv_heads), str(size), str(hopper), dtype],
    )
    first = "hopper_kernel" if hopper else "decode_kernel"
    assert {first, "combine_kernel", "_store_kernel"} <= set(made.answer["kernels"])
    assert made.answer["late"] == []
