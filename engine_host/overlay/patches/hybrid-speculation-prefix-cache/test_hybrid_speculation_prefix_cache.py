"""The bundled hybrid with MTP and vLLM's own defaults on the CPU; and where its cache is kept."""

from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.hybrid_with_drafts import SCRIPT
from tests.overlay_engine import run_in_engine


def test_a_hybrid_with_mtp_answers() -> None:
    stock = run_in_engine(SCRIPT, check=False)
    assert stock.answer is None or stock.answer[1] != 8, "the symptom: the engine dies at the first request"
    patched = run_in_engine(SCRIPT, ["hybrid-speculation-prefix-cache"])
    assert patched.answer == [False, 8]
    assert patched.outcome("hybrid-speculation-prefix-cache") == "applied"


def configuration(dtype: str = "auto", *, v2: bool = True, settings: bool = True) -> SimpleNamespace:
    """A FAKE configuration with the names that vLLM's has."""
    cache: dict[str, Any] = {"cache_dtype": dtype}
    speculation: dict[str, Any] = {}
    if settings:
        cache["prefix_cache_retention_interval"] = 0
        speculation["disable_eagle_block_drop"] = False
    return SimpleNamespace(
        cache_config=SimpleNamespace(**cache),
        speculative_config=SimpleNamespace(**speculation),
        use_v2_model_runner=v2,
    )


@pytest.mark.parametrize(
    ("found", "cuda", "measured"),
    [
        (configuration(), True, True),
        (configuration("fp8"), True, True),
        (configuration("turboquant_k8v4"), True, True),
        (configuration("turboquant_4bit_nc"), True, True),
        (configuration("turboquant_k3v4_nc"), True, False),
        (configuration(v2=False), True, False),
        (configuration(settings=False), True, False),
        (configuration(), False, False),
    ],
    ids=["0.32", "fp8", "k8v4", "4bit_nc", "k3v4_nc", "V1 runner", "0.26", "CPU"],
)
def test_the_cache_is_kept_where_answers_were_compared(
    found: SimpleNamespace, cuda: bool, measured: bool
) -> None:
    is_measured = run_path(str(Path(__file__).with_name("patch.py")))["is_measured"]
    assert is_measured(found, cuda) is measured
