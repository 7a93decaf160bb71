"""A whole engine on the CPU: the bundled hybrid model with MTP and prefix caching, as vLLM starts it."""

from tests.hybrid_with_drafts import SCRIPT
from tests.overlay_engine import run_in_engine


def test_a_hybrid_with_mtp_and_prefix_caching_answers() -> None:
    stock = run_in_engine(SCRIPT, check=False)
    assert stock.answer is None or stock.answer[1] != 8, "the symptom: the engine dies at the first request"
    patched = run_in_engine(SCRIPT, ["cpu-hybrid-speculation-states"])
    assert patched.answer == [True, 8]
    assert patched.outcome("cpu-hybrid-speculation-states") == "applied"
