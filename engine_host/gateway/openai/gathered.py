"""A whole answer out of a stream, as llama.cpp is asked for one also where the client is to get a whole.

Its stream ends with the client, where a whole answer is written to its end for nobody. And its `usage` of
several answers that come as a whole is that of the first; in a stream each has its own, and they add up.
"""

import codecs
import json
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.openai.several import SeveralAnswers

_TEXTS = ("content", "reasoning_content", "refusal")


def streamed(raw: bytes) -> bytes:
    """Return the same request for a stream that ends with its figures."""
    options = {"stream": True, "stream_options": {"include_usage": True}}
    return json.dumps(
        {**json_text.parse_object(raw.removeprefix(codecs.BOM_UTF8)), **options}, ensure_ascii=False
    ).encode()


def gathered(stream: bytes, *, several: bool = False, one_prompt: bool = True) -> bytes:
    """Return the answer that a stream tells in pieces, or a whole one as it is.

    `several`: answers, whose figures are added up. Raises EndpointError where the stream ends with an error.
    """
    if stream.startswith(b"{"):
        return stream
    answer: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for data in sse.payloads(_added_up(stream, one_prompt) if several else stream):
        if data == sse.DONE.encode():
            continue
        try:
            told = json_text.parse_object(data)
            if told.get("error"):
                raise faults.engine_fault(500, data)
            parts = told.pop("choices")
            told.pop("prompt_progress", None)
            answer |= told
            for part in parts:
                _add(choices.setdefault(part["index"], {"index": part["index"]}), part)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise faults.odd_answer() from error
    if isinstance(answer.get("object"), str):
        answer["object"] = answer["object"].removesuffix(".chunk")
    whole = {"choices": [_ended(choices[index]) for index in sorted(choices)], **answer}
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def _added_up(stream: bytes, one_prompt: bool) -> bytes:
    return SeveralAnswers(shows_usage=True, one_prompt=one_prompt).feed(stream)


def _add(choice: dict[str, Any], part: dict[str, Any]) -> None:
    """Add a piece to the choice that it belongs to."""
    if "text" in part:
        choice["text"] = choice.get("text", "") + (part["text"] or "")
        choice.setdefault("logprobs", None)
    delta = part.get("delta")
    if isinstance(delta, dict):
        message = choice.setdefault("message", {"role": "assistant", "content": None})
        for name in _TEXTS:
            if isinstance(delta.get(name), str):
                message[name] = (message.get(name) or "") + delta[name]
        for call in delta.get("tool_calls") or ():
            _call(message.setdefault("tool_calls", {}), call)
    choice["finish_reason"] = part.get("finish_reason") or choice.get("finish_reason")


def _call(calls: dict[int, dict[str, Any]], part: dict[str, Any]) -> None:
    call = calls.setdefault(part["index"], {"type": "function", "function": {"name": "", "arguments": ""}})
    if part.get("id"):
        call["id"] = part["id"]
    for name, text in (part.get("function") or {}).items():
        call["function"][name] += text or ""


def _ended(choice: dict[str, Any]) -> dict[str, Any]:
    """Return a choice with its calls as a list."""
    message = choice.get("message")
    if message is not None and "tool_calls" in message:
        message["tool_calls"] = [call for _, call in sorted(message["tool_calls"].items())]
    elif message is not None:
        message["content"] = message["content"] or ""
    return choice
