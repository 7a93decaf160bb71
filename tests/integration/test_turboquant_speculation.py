"""A whole vLLM on the TurboQuant kernels: with MTP on it answers as with MTP off, token by token.

vLLM 0.32 for the CPU with its scheduler, runner, drafter and rejection sampler; the kernels run in Triton's
interpreter and FlashAttention is a stand-in. All of it in one process: others change no number, and each
would import vLLM anew. In fp32, so that no rounding of bf16 decides between tokens.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.kernel_interpreter import ROOT, interpreter_environment
from tests.overlay_engine import PATCHES, run_in_engine
from tests.vllm_environment import vllm_python

KERNELS = ROOT / "tests" / "kernels"
SCRIPT = """
import json, sys
drafts, folder, prompts = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])

def main():
    from vllm import LLM, SamplingParams
    extra = {"speculative_config": {"method": "mtp", "num_speculative_tokens": drafts}} if drafts else {}
    llm = LLM(
        model=folder, kv_cache_dtype="turboquant_k8v4", dtype="float32", max_model_len=512, max_num_seqs=4,
        max_num_batched_tokens=256, enable_prefix_caching=False, enforce_eager=True,
        disable_log_stats=False, skip_tokenizer_init=True, distributed_executor_backend="uni", **extra,
    )
    asked = [{"prompt_token_ids": prompt} for prompt in prompts]
    chosen = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True, detokenize=False)
    tokens = [list(one.outputs[0].token_ids) for one in llm.generate(asked, chosen, use_tqdm=False)]
    ends = ("num_draft_tokens", "num_accepted_tokens")
    counts = {one.name: one.value for one in llm.get_metrics() if one.name.endswith(ends)}
    print(json.dumps({"tokens": tokens, "counts": counts}))

if __name__ == "__main__":
    main()
"""


def answers(folder: Path, drafts: int, *also: str) -> Any:
    kernels = interpreter_environment()["PYTHONPATH"].rpartition(":")[2]
    # All prompts fit into one step: a chunk reads its own tokens as they are, so others make other numbers.
    prompts = [[(7 * place + size) % 61 + 3 for place in range(size)] for size in (5, 40, 100)]
    done = run_in_engine(
        SCRIPT,
        ["turboquant-grouped-attention", "interpreted-engine", *also],
        folders=(PATCHES, KERNELS),
        environment={"KERNELS": kernels, "TRITON_INTERPRET": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"},
        arguments=[str(drafts), str(folder), json.dumps(prompts)],
        timeout=400,
    )
    assert "TurboQuant runs on grouped kernels" in done.stdout + done.stderr
    for name in also:
        assert "applied" in {line["outcome"] for line in done.lines("settled", name)}, done.ledger
    return done.answer, done.stdout + done.stderr


@pytest.mark.timeout(900)
def test_mtp_on_answers_as_mtp_off(tmp_path: Path) -> None:
    made = [
        str(vllm_python()),
        str(ROOT / "engine_host" / "bench" / "gpu" / "tiny_mtp_model.py"),
        str(tmp_path),
    ]
    subprocess.run(made, check=True, capture_output=True, timeout=120)
    without, _ = answers(tmp_path, 0)
    # Drafts by 8 bits too: two starts, of which each takes a minute and more in the interpreter, show both.
    drafted, log = answers(tmp_path, 3, "draft-head-8-bit")
    accepted = drafted["counts"]["vllm:spec_decode_num_accepted_tokens"]
    assert 0 < accepted < drafted["counts"]["vllm:spec_decode_num_draft_tokens"], "some drafts are rejected"
    assert drafted["tokens"] == without["tokens"]
    assert "a copy of the output matrix in 8 bits: 64 x 256" in log
