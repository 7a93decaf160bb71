"""vLLM's own convolution of one row of a wider projection, against the same row by itself.

The whole of it, a prompt of one token that is answered, is in tests/integration/host/vllm/test_served.py.
"""

import pytest

from tests.overlay_engine import run_in_engine

SCRIPT = """
import json
import torch
import vllm._custom_ops as ops
from vllm.model_executor.layers.mamba.ops.cpu import gdn_attention

if not hasattr(torch.ops._C, "causal_conv1d_weight_pack"):
    print(json.dumps("absent"))
    raise SystemExit

torch.manual_seed(0)
channels, width = 128, 4
weight = ops.causal_conv1d_weight_pack(torch.randn(channels, width).bfloat16())
gdn_attention.is_conv_state_dim_first = lambda: False
wide = torch.randn(1, 300).bfloat16()
start = torch.randn(3, width - 1, channels).bfloat16()

def convolved(row):
    states = start.clone().transpose(1, 2)
    answer = gdn_attention._causal_conv1d_fwd_cpu(
        x=row.transpose(0, 1), weight=weight, bias=None, conv_states=states,
        query_start_loc=torch.tensor([0, 1], dtype=torch.int32),
        cache_indices=torch.tensor([1], dtype=torch.int32),
        has_initial_state=torch.tensor([True]), silu_activation=True, is_weight_packed=True,
    )
    return answer, states

alone, states = convolved(torch.empty(1, channels).bfloat16().copy_(wide[:, :channels]))
try:
    answer, left = convolved(wide[:, :channels].contiguous())
    found = bool((answer == alone).all() and (left == states).all())
except RuntimeError as error:
    found = "expect x to be transposed" in str(error) and "refused"
print(json.dumps(found))
"""


def test_one_row_of_a_projection_is_convolved() -> None:
    found = run_in_engine(SCRIPT).answer
    if found == "absent":
        pytest.skip("vLLM has this kernel for processors with AVX-512 alone; without AMX it is never called")
    assert found == "refused", "vLLM has mended it: retire the patch"
    patched = run_in_engine(SCRIPT, ["cpu-one-token-prompt"])
    assert patched.answer is True
    assert patched.outcome("cpu-one-token-prompt") == "applied"
