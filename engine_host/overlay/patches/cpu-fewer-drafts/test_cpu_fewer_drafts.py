"""The convolution of steps with fewer drafts than usual, against that of the whole text at once."""

from tests.overlay_engine import run_in_engine

PATCH = "cpu-fewer-drafts"
# Each step: tokens of which the first is the one sampled last, and how many of them are accepted.
SCRIPT = """
import json
from types import SimpleNamespace
import torch
import torch.nn.functional as F
from vllm.model_executor.layers.mamba.ops.cpu import gdn_attention

torch.cpu._is_amx_tile_supported = lambda: False
gdn_attention.is_arm_bf16 = lambda: False
channels, width, most = 8, 4, 2
torch.manual_seed(0)
weight = torch.randn(channels, width)
text = torch.randn(width - 1, channels)
buffer = torch.zeros(1, channels, width - 1 + most)
buffer[0, :, : width - 1] = text.T

class Reached(Exception):
    pass

def stop(convolved):
    raise Reached(convolved)

layer = SimpleNamespace(
    conv1d=SimpleNamespace(weight=weight.unsqueeze(1), bias=None),
    activation="silu",
    rearrange_mixed_qkv=stop,
)
right, accepted = [], 1
for drafted, taken in ((2, 1), (0, 1), (0, 1), (1, 2), (2, 3), (1, 1), (0, 1), (2, 2)):
    tokens = torch.randn(drafted + 1, channels)
    step = SimpleNamespace(
        num_spec_decodes=1,
        spec_state_indices_tensor=torch.zeros(1, most + 1, dtype=torch.int32),
        spec_query_start_loc=torch.tensor([0, drafted + 1], dtype=torch.int32),
        num_accepted_tokens=torch.tensor([accepted], dtype=torch.int32),
    )
    try:
        gdn_attention._spec_forward(
            layer, step, tokens, None, None, buffer, None, width, width - 1 + most
        )
    except Reached as reached:
        (found,) = reached.args
    except RuntimeError:
        right.append(False)
        break
    whole = torch.cat([text[-(width - 1) :], tokens]).T.unsqueeze(0)
    wanted = F.silu(F.conv1d(whole, weight.unsqueeze(1), groups=channels))[0].T
    right.append(bool(torch.allclose(found, wanted, atol=1e-5)))
    text, accepted = torch.cat([text, tokens[:taken]]), taken
print(json.dumps(right))
"""


def test_a_step_with_fewer_drafts_leaves_what_the_next_one_reads() -> None:
    plain = run_in_engine(SCRIPT).answer
    assert plain[:2] == [True, True]
    assert not all(plain), "vLLM has mended it: retire the patch"
    patched = run_in_engine(SCRIPT, [PATCH])
    assert patched.outcome(PATCH) == "applied"
    assert all(patched.answer), patched.answer
