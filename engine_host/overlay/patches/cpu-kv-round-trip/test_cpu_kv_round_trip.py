"""The round trip is the arithmetic of the kernels, and reaches what vLLM stores."""

from tests.kernel_interpreter import ROOT, run_interpreted
from tests.overlay_engine import run_in_engine

SCRIPT = """
import json, types
import torch
from vllm.v1.attention.backends import cpu_attn

seen = []
cpu_attn.ops.cpu_attn_reshape_and_cache = lambda key, value, *rest, **more: seen.append((key, value))
impl = cpu_attn.CPUAttentionBackendImpl.__new__(cpu_attn.CPUAttentionBackendImpl)
impl.attn_type, impl.kv_cache_dtype = "decoder", "auto"
layer = types.SimpleNamespace(isa="vec", _k_scale_float=1.0, _v_scale_float=1.0)
torch.manual_seed(0)
key, value = torch.randn(2, 5, 2, 64).bfloat16()
impl.do_kv_cache_update(layer, key, value, torch.zeros(1, 2, 16, 128), torch.arange(5))
(kept_key, kept_value), = seen
print(json.dumps({
    "same": bool((kept_key == key).all() and (kept_value == value).all()),
    "steps": max(len(row.unique()) for row in kept_value.flatten(0, 1)),
}))
"""


def test_it_is_the_arithmetic_of_the_kernels() -> None:
    done = run_interpreted(str(ROOT / "tests" / "kernels" / "round_trip_interpreted.py"))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_what_vllm_stores_is_rounded_when_a_type_is_named() -> None:
    assert run_in_engine(SCRIPT, ["cpu-kv-round-trip"]).answer["same"] is True
    rounded = run_in_engine(SCRIPT, ["cpu-kv-round-trip"], environment={"SNDR_KV_ROUND_TRIP": "k8v4"})
    assert rounded.outcome("cpu-kv-round-trip") == "applied"
    assert rounded.answer["same"] is False
    assert rounded.answer["steps"] <= 16
