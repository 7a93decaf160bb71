"""vLLM's own qwen3 parser, called as its chat handler calls it, whole and streamed."""

from pathlib import Path

from tests.overlay_engine import run_in_engine

MODEL = Path(__file__).parents[4] / "resources" / "models" / "sndr-demo"
SCRIPT = f"""
import json
from transformers import AutoTokenizer
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.qwen3 import Qwen3Parser

tokenizer = AutoTokenizer.from_pretrained({str(MODEL)!r})
tokenizer.add_tokens(["<think>", "</think>", "<tool_call>", "</tool_call>"])
request = ChatCompletionRequest(model="m", messages=[{{"role": "user", "content": "2+2?"}}])
closed = tokenizer.encode("<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n")
opened = tokenizer.encode("<|im_start|>assistant\\n<think>\\n")

def whole(prompt, text):
    parser = Qwen3Parser(tokenizer)
    parser.set_prompt_token_ids(prompt)
    return parser.parse(text, request)[:2]

def streamed(prompt, text):
    parser = Qwen3Parser(tokenizer)
    delta = parser.parse_delta(text, tokenizer.encode(text), request, prompt, finished=True)
    return [delta.reasoning, delta.content]

print(json.dumps([
    whole(closed, "It is 4."), streamed(closed, "It is 4."), whole(opened, "Let me see.</think>It is 4."),
]))
"""


def test_the_answer_is_content() -> None:
    stock = run_in_engine(SCRIPT).answer
    assert stock[0] == ["It is 4.", None], "the symptom: the answer is taken for thinking"
    patched = run_in_engine(SCRIPT, ["qwen3-answer-as-reasoning"])
    assert patched.answer[0] == [None, "It is 4."]
    assert patched.answer[1] == [None, "It is 4."]
    assert patched.answer[2] == stock[2] == ["Let me see.", "It is 4."], "an open block is still thinking"
    assert patched.outcome("qwen3-answer-as-reasoning") == "applied"
