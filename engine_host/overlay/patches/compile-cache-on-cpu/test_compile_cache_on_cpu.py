"""vLLM's own loading of an artefact; the artefact is a stand-in for one of the CPU: a plain function.

The whole of it, two starts of a server with one cache, is in tests/integration/host.
"""

from tests.overlay_engine import run_in_engine

SCRIPT = """
import json, tempfile
from contextlib import nullcontext
from types import SimpleNamespace
import torch
import vllm.compilation.decorators as decorators

loaded = SimpleNamespace(
    source_info=lambda: None, disable_guard_check=lambda: None,
    _artifacts=SimpleNamespace(compiled_fn=lambda: None),
)
torch.compiler.load_compiled_function = lambda file, **_: loaded
decorators._verify_source_unchanged = lambda *_: None
decorators.monitor_torch_compile = lambda *_, **__: nullcontext()
decorators.set_current_vllm_config = lambda *_: nullcontext()
decorators.maybe_use_cudagraph_partition_wrapper = lambda *_: nullcontext()
model = SimpleNamespace(
    vllm_config=None, _is_encoder=False, forward=lambda: None,
    compilation_config=SimpleNamespace(dynamic_shapes_config=SimpleNamespace(evaluate_guards=False)),
)
with tempfile.NamedTemporaryFile() as artefact:
    name = next(n for n in dir(decorators) if n.startswith("_try_load_aot"))
    found = getattr(decorators, name)(model, artefact.name)
print(json.dumps(found is loaded))
"""


def test_the_artefact_is_loaded() -> None:
    stock = run_in_engine(SCRIPT)
    assert stock.answer is False, "the symptom: it is compiled again"
    assert "finalize_loading" in stock.stdout + stock.stderr
    patched = run_in_engine(SCRIPT, ["compile-cache-on-cpu"])
    assert patched.answer is True
