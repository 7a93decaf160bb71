"""The version of FlashAttention in vLLM's own configuration; what Hopper gains was not measured here."""

from pathlib import Path

from tests.overlay_engine import run_in_engine

MODEL = Path(__file__).parents[4] / "resources" / "models" / "sndr-demo"
SCRIPT = f"""
import json
from vllm.engine.arg_utils import EngineArgs

arguments = EngineArgs(
    model={str(MODEL)!r}, kv_cache_dtype="turboquant_k8v4", load_format="dummy", max_model_len=1024,
    enforce_eager=True,
)
config = arguments.create_engine_config()
print(json.dumps(config.attention_config.flash_attn_version))
"""


def test_the_version_is_left_to_the_gpu() -> None:
    assert run_in_engine(SCRIPT).answer == 2, "the symptom"
    patched = run_in_engine(SCRIPT, ["hopper-flash-attention-3"])
    assert patched.answer is None
    assert patched.outcome("hopper-flash-attention-3") == "applied"


def test_batch_invariant_mode_keeps_version_2() -> None:
    """With version 3 answers with drafts differ from those without, in bf16 too (docs/kernels.md)."""
    exact = {"VLLM_BATCH_INVARIANT": "1"}
    assert run_in_engine(SCRIPT, ["hopper-flash-attention-3"], environment=exact).answer == 2
