"""Count the blanks that vLLM's own JSON grammar accepts, with the bundled model's tokenizer."""

from pathlib import Path

from tests.overlay_engine import run_in_engine

MODEL = Path(__file__).parents[4] / "resources" / "models" / "sndr-demo"
SCRIPT = f"""
import json
import xgrammar as xgr
from transformers import AutoTokenizer
from vllm.v1.structured_output.backend_types import StructuredOutputOptions
from vllm.v1.structured_output.backend_xgrammar import XgrammarBackend

tokenizer = AutoTokenizer.from_pretrained({str(MODEL)!r})
backend = object.__new__(XgrammarBackend)
backend.disable_any_whitespace = False
backend.num_speculative_tokens = 0
backend.vocab_size = len(tokenizer)
backend.compiler = xgr.GrammarCompiler(xgr.TokenizerInfo.from_huggingface(tokenizer))
schema = json.dumps({{"type": "object", "properties": {{"a": {{"type": "integer"}}}}, "required": ["a"]}})

def blanks(option, text):
    grammar = backend.compile_grammar(option, text)
    accepted = 0
    if not grammar.matcher.accept_string("{{"):
        return -1
    while accepted < 2000 and grammar.matcher.accept_string(" "):
        accepted += 1
    return accepted

print(json.dumps([
    blanks(StructuredOutputOptions.JSON, schema), blanks(StructuredOutputOptions.JSON_OBJECT, ""),
]))
"""


def test_blanks_are_limited() -> None:
    stock = run_in_engine(SCRIPT)
    assert stock.answer == [2000, 2000], "the symptom: as many as max_tokens allow"
    patched = run_in_engine(SCRIPT, ["json-whitespace-limit"])
    assert patched.answer == [8, 8]
    assert patched.outcome("json-whitespace-limit") == "applied"
