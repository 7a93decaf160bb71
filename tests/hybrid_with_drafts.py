"""A script for patches of hybrids: the bundled model with MTP is asked once, with vLLM's own defaults.

It prints whether prefixes are cached, and the number of tokens or the name of the error.
"""

from pathlib import Path

MODEL = Path(__file__).parents[1] / "resources" / "models" / "sndr-demo"
SCRIPT = f"""
import json, os
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
from vllm import LLM, SamplingParams

if __name__ == "__main__":
    llm = LLM(
        model={str(MODEL)!r}, max_model_len=1024, max_num_seqs=2, enforce_eager=True,
        distributed_executor_backend="uni",
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
