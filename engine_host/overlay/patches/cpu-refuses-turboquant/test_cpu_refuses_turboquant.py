"""vLLM's own choice of a backend on the CPU, with its own selector configuration."""

from tests.overlay_engine import run_in_engine

SCRIPT = """
import json
import torch
from vllm.platforms import current_platform
from vllm.v1.attention.selector import AttentionSelectorConfig

def choose(kind):
    config = AttentionSelectorConfig(
        head_size=64, dtype=torch.bfloat16, kv_cache_dtype=kind, block_size=16,
    )
    try:
        return current_platform.get_attn_backend_cls(None, config).rpartition(".")[2]
    except ValueError as error:
        return str(error)

print(json.dumps([choose("auto"), choose("turboquant_k8v4")]))
"""


def test_turboquant_is_refused_on_the_cpu() -> None:
    stock = run_in_engine(SCRIPT)
    assert stock.answer[0] == stock.answer[1] == "CPUAttentionBackend", "the symptom: it is accepted"
    patched = run_in_engine(SCRIPT, ["cpu-refuses-turboquant"])
    assert patched.answer[0] == "CPUAttentionBackend"
    assert "needs a GPU" in patched.answer[1]
    assert patched.outcome("cpu-refuses-turboquant") == "applied"
