"""Test the layers that vLLM's own configuration leaves in 16 bits; their cost and gain need a GPU."""

import json
from pathlib import Path

import pytest

from tests.overlay_engine import run_in_engine

SHAPE = Path(__file__).parents[4] / "tests" / "unit" / "fit" / "shapes" / "qwen3-8b.json"
SCRIPT = """
import json
from vllm.engine.arg_utils import EngineArgs

arguments = EngineArgs(
    model={model!r}, kv_cache_dtype={kv!r}, load_format="dummy", max_model_len=1024, enforce_eager=True,
    skip_tokenizer_init=True, kv_cache_dtype_skip_layers={skipped},
)
config = arguments.create_engine_config()
print(json.dumps(config.cache_config.kv_cache_dtype_skip_layers))
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    """The folder of a dense model without weights."""
    (tmp_path / "config.json").write_text(json.dumps(json.loads(SHAPE.read_text())))
    return str(tmp_path)


def left_alone(model: str, kv: str, patched: bool, skipped: str = "[]") -> list[str]:
    made = run_in_engine(
        SCRIPT.format(model=model, kv=kv, skipped=skipped),
        ["turboquant-boundary-layers"] if patched else (),
    )
    assert isinstance(made.answer, list)
    return sorted(made.answer, key=int)


def test_every_layer_is_quantised_but_those_that_were_asked_for(model: str) -> None:
    assert left_alone(model, "turboquant_k8v4", patched=False) == ["0", "1", "34", "35"], "the symptom"
    assert left_alone(model, "turboquant_k8v4", patched=True) == []
    assert left_alone(model, "turboquant_k8v4", patched=True, skipped='["7"]') == ["7"]


def test_caches_with_fewer_bits_keep_theirs(model: str) -> None:
    assert left_alone(model, "turboquant_4bit_nc", patched=True) == ["0", "1", "34", "35"]
