"""A piece of a prompt whose request has a seed: vLLM's own step raises, the patched one draws anew."""

from tests.overlay_engine import run_in_engine

PATCH = "cpu-seeded-chunks"
# The step up to where it has taken back what the piece drew; the rest of it needs a model.
SCRIPT = """
import json
from types import SimpleNamespace
import numpy
import torch
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

class Reached(Exception):
    pass

class Ids(list):
    def copy(self):
        raise Reached

def generator(seed):
    made = torch.Generator(device="cpu")
    made.manual_seed(seed)
    return made

def draw(made):
    return torch.rand(4, generator=made).tolist()

fresh, old = generator(7), generator(8)
drawn, before = draw(fresh), draw(old)
runner = SimpleNamespace(
    use_async_scheduling=False,
    discard_request_mask=SimpleNamespace(np=numpy.array([True, True, False])),
    input_batch=SimpleNamespace(num_reqs=3, generators={0: fresh, 1: old}, req_ids=Ids(["a", "b", "c"])),
    requests={
        "a": SimpleNamespace(output_token_ids=[]),
        "b": SimpleNamespace(output_token_ids=[5]),
    },
)
try:
    GPUModelRunner._bookkeeping_sync(runner, None, None, None, None, 0)
except Reached:
    after = draw(old)
    found = {"again": draw(fresh) == drawn, "goes_on": after != before}
except RuntimeError as error:
    found = str(error)
print(json.dumps(found))
"""


def test_a_piece_of_a_prompt_with_a_seed_is_read() -> None:
    plain = run_in_engine(SCRIPT).answer
    assert "does not use offset" in str(plain), "vLLM has mended it: retire the patch"
    patched = run_in_engine(SCRIPT, [PATCH])
    assert patched.outcome(PATCH) == "applied"
    assert patched.answer == {"again": True, "goes_on": True}
