"""Test the path of vLLM's own prefill for a mixed batch; the two attention kernels are stand-ins."""

from tests.overlay_engine import run_in_engine

SCRIPT = """
import json
from types import SimpleNamespace
import torch
import vllm.v1.attention.backends.turboquant_attn as backend

backend._HAS_FLASH_ATTN = True  # a GPU has it; the stand-in below takes its place
calls = []

class Impl(backend.TurboQuantAttentionImpl):
    def __init__(self):
        self.scale, self.num_kv_heads, self.head_size = 1.0, 1, 8
        self._soa_store = False
        self.sinks = self.sliding_window = None
        self.max_num_kv_splits = 32
        self.tq_config = SimpleNamespace(
            key_mse_bits=0, key_packed_size=8, effective_value_quant_bits=4, value_packed_size=8,
            key_fp8=True, norm_correction=False,
        )

    def _flash_attn_varlen(self, q, k, v, **lengths):
        calls.append(["raw keys", q.shape[0]])
        return torch.zeros_like(q)

    def _continuation_prefill(self, *arguments, **named):
        calls.append(["cache", None])
        return torch.zeros(2, 2, 8)

def from_cache(query, *arguments, **named):
    calls.append(["cache", query.shape[0]])
    return torch.zeros_like(query)

backend.triton_turboquant_decode_attention = from_cache
# A: new, 5 tokens. B: 2 new tokens after 2 that are cached. Both maxima are 5.
starts, lengths = torch.tensor([0, 5, 7]), torch.tensor([5, 4])
metadata = SimpleNamespace(
    query_start_loc=starts, query_start_loc_cpu=starts, seq_lens=lengths, seq_lens_cpu=lengths,
    max_query_len=5, max_seq_len=5, num_actual_tokens=7, block_table=torch.zeros(2, 4, dtype=torch.int32),
    is_prefill=True, num_decodes=0, num_decode_tokens=0,
)
query = torch.zeros(7, 2, 8)
key = torch.zeros(7, 1, 8)
try:
    Impl()._prefill_attention(query, key, key, None, metadata, None, None)
except Exception as error:
    calls.append([type(error).__name__, str(error)[:300]])
print(json.dumps(calls))
"""


def test_the_cached_prefix_is_read() -> None:
    stock = run_in_engine(SCRIPT)
    assert stock.answer == [["raw keys", 7]], "the symptom: B attends to its new tokens alone"
    patched = run_in_engine(SCRIPT, ["turboquant-mixed-prefill-prefix"])
    assert patched.answer[0] == ["raw keys", 5], "A alone is computed from its raw keys"
    assert patched.answer[1][0] == "cache", "B reads what is cached"
