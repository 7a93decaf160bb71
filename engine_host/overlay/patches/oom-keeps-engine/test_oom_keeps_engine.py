"""A whole engine on the CPU; the missing memory is injected by a patch of the test's own."""

from pathlib import Path

import pytest

from tests.overlay_engine import PATCHES, run_in_engine

MODEL = Path(__file__).parents[4] / "resources" / "models" / "sndr-demo"
INJECT_TOML = """
id = "inject-oom"
title = "Runs out of memory at long prompts"
family = "test"
problem = "A test wants it."
risk = "high"
[applies_to]
vllm = ">=0.26"
[[rebind]]
module = "vllm.v1.worker.gpu_model_runner"
target = "GPUModelRunner.execute_model"
replacement = "patch:run_out"
signature = "(self, scheduler_output, intermediate_tensors = ...)"
"""
INJECT = """
from functools import wraps

def run_out(original):
    @wraps(original)
    def execute_model(self, scheduler_output, intermediate_tensors=None):
        import torch
        tokens = scheduler_output.total_num_scheduled_tokens
        # One of two ranks alone has less room.
        if tokens > (200 if self.parallel_config.rank == 0 else 100):
            raise torch.OutOfMemoryError("CUDA out of memory. (injected)")
        return original(self, scheduler_output, intermediate_tensors)
    return execute_model
"""
SCRIPT = f"""
import json
import time
from vllm import LLM, SamplingParams

if __name__ == "__main__":
    ranks, more = {{}}, ()
    llm = LLM(model={str(MODEL)!r}, max_model_len=1024, max_num_seqs=2, enforce_eager=True, **ranks)
    short = SamplingParams(max_tokens=8, temperature=0, ignore_eos=True)
    told = []
    for prompt in ("word " * 400, "def add(a, b):", *more):
        began = time.monotonic()
        try:
            answer = llm.generate([prompt], short, use_tqdm=False)[0].outputs[0]
            told.append([answer.finish_reason, len(answer.token_ids)])
        except Exception as error:
            told.append([type(error).__name__, 0, time.monotonic() - began])
    print(json.dumps(told))
"""


def test_the_next_request_is_answered(tmp_path: Path) -> None:
    injected = tmp_path / "inject-oom"
    injected.mkdir()
    (injected / "patch.toml").write_text(INJECT_TOML)
    (injected / "patch.py").write_text(INJECT)
    places = (PATCHES, tmp_path)
    stock = run_in_engine(SCRIPT, ["inject-oom"], folders=places, check=False)
    assert stock.answer is None or stock.answer[1][1] != 8, "the symptom: the engine is gone"
    patched = run_in_engine(SCRIPT, ["oom-keeps-engine", "inject-oom"], folders=places)
    assert patched.answer[0][0] != "length", "the long prompt failed"
    assert patched.answer[1] == ["length", 8], "the short one is answered"


@pytest.mark.timeout(600)
def test_two_ranks_that_ran_out_at_the_same_place_go_on_and_one_alone_ends_the_engine(tmp_path: Path) -> None:
    injected = tmp_path / "inject-oom"
    injected.mkdir()
    (injected / "patch.toml").write_text(INJECT_TOML)
    (injected / "patch.py").write_text(INJECT)
    answer = run_in_engine(
        SCRIPT.replace("ranks, more = {}, ()", "ranks, more = {'tensor_parallel_size': 2}, ('word ' * 150,)"),
        ["oom-keeps-engine", "inject-oom"],
        folders=(PATCHES, tmp_path),
        # A core for each rank, whatever this machine has.
        environment={"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"},
        timeout=560,
    ).answer
    assert answer[0][0] != "length", "the long prompt failed"
    assert answer[1] == ["length", 8], "the short one is answered"
    # vLLM by itself waits 300 seconds for the other rank, which waits for a sum.
    ended, tokens, seconds = answer[2]
    assert tokens == 0, ended
    assert seconds < 120, f"it ended with {ended} after {seconds:.0f} s"
