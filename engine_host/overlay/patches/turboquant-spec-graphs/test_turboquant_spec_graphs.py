"""The backend says what it can capture; the configuration is a stand-in, the class is vLLM's own."""

from tests.overlay_engine import run_in_engine

SCRIPT = """
import json
from types import SimpleNamespace
from vllm.v1.attention.backends.turboquant_attn import TurboQuantMetadataBuilder as Builder

with_speculation = SimpleNamespace(speculative_config=object())
without = SimpleNamespace(speculative_config=None)
print(json.dumps([Builder.get_cudagraph_support(c, None).name for c in (with_speculation, without)]))
"""


def test_verify_is_not_captured_as_a_whole() -> None:
    stock = run_in_engine(SCRIPT)
    assert stock.answer == ["UNIFORM_BATCH", "UNIFORM_BATCH"], "the symptom: the loop is captured"
    patched = run_in_engine(SCRIPT, ["turboquant-spec-graphs"])
    assert patched.answer == ["UNIFORM_SINGLE_TOKEN_DECODE", "UNIFORM_BATCH"]
    assert patched.outcome("turboquant-spec-graphs") == "applied"
