"""A whole engine on the CPU: the bundled hybrid model with MTP and prefix caching, as vLLM starts it."""

from pathlib import Path

from tests.overlay_engine import run_in_engine

MODEL = Path(__file__).parents[4] / "resources" / "models" / "sndr-demo"
SCRIPT = f"""
import json, os
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
from vllm import LLM, SamplingParams

if __name__ == "__main__":
    llm = LLM(
        model={str(MODEL)!r}, max_model_len=1024, max_num_seqs=2, enforce_eager=True,
        speculative_config={{"method": "mtp", "num_speculative_tokens": 2}},
    )
    caching = llm.llm_engine.vllm_config.cache_config.enable_prefix_caching
    try:
        answer = llm.generate(["def add(a, b):"], SamplingParams(max_tokens=8, temperature=0), use_tqdm=False)
        tokens = len(answer[0].outputs[0].token_ids)
    except Exception as error:
        tokens = type(error).__name__
    print(json.dumps([caching, tokens]))
"""


def test_a_hybrid_with_mtp_and_prefix_caching_answers() -> None:
    stock = run_in_engine(SCRIPT, check=False)
    assert stock.answer is None or stock.answer[1] != 8, "the symptom: the engine dies at the first request"
    patched = run_in_engine(SCRIPT, ["cpu-hybrid-speculation-states"])
    assert patched.answer == [True, 8]
    assert patched.outcome("cpu-hybrid-speculation-states") == "applied"
