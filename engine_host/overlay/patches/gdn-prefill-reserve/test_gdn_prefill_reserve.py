"""The arithmetic, and vLLM's own worker class with the reserve; the memory profile is a stand-in."""

from tests.overlay_engine import run_in_engine

SCRIPT = """
import json
from types import SimpleNamespace
import torch
from vllm.v1.worker.gpu_worker import Worker

def config(ranks=1, **text):
    return SimpleNamespace(
        model_config=SimpleNamespace(hf_config=SimpleNamespace(**text), dtype=torch.bfloat16),
        parallel_config=SimpleNamespace(tensor_parallel_size=ranks),
        scheduler_config=SimpleNamespace(max_num_batched_tokens=8192),
        cache_config=SimpleNamespace(kv_cache_memory_bytes=None),
    )

shape = dict(linear_num_value_heads=48, linear_key_head_dim=128, linear_value_head_dim=128)
patch = getattr(Worker.determine_available_memory, "__sndr_patch__", None)
answer = {"patch": patch}
if patch:
    from sndr_overlay_patches.gdn_prefill_reserve.patch import reserve, with_reserve
    measured = with_reserve(lambda self: 10 * 2**30)
    answer["27B"] = 10 * 2**30 - measured(SimpleNamespace(vllm_config=config(**shape)))
    answer["two ranks"] = reserve(config(2, **shape))
    answer["dense"] = reserve(config(hidden_size=4096))
    fixed = config(**shape)
    fixed.cache_config.kv_cache_memory_bytes = 1
    answer["given"] = measured(SimpleNamespace(vllm_config=fixed))
print(json.dumps(answer))
"""


def test_a_full_chunk_is_kept_free() -> None:
    assert run_in_engine(SCRIPT).answer == {"patch": None}, "the symptom: nothing is kept"
    answer = run_in_engine(SCRIPT, ["gdn-prefill-reserve"]).answer
    assert answer["patch"] == "gdn-prefill-reserve"
    assert answer["27B"] == 72 * 1024 * 8192, "72 KiB a token, as the report measured"
    assert answer["two ranks"] == answer["27B"] // 2
    assert answer["dense"] == 0
    assert answer["given"] == 10 * 2**30
