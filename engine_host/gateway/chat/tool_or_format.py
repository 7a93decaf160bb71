"""Get a call of a tool or an answer in a form, from an engine that cannot do both in one request.

With the templates of Qwen 3.5, Qwen3-Coder, Devstral, Ministral 3 and Nemotron llama.cpp makes an empty
grammar of tools together with a format, and refuses it. So a request with both is asked as it is first;
where that is refused, with the tools alone; and when the model then writes instead of calling a tool, with
the format alone, the tools still in its prompt. Nothing reaches the client before it is known which.
"""

import json
from dataclasses import replace
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway.call import AskAgainError, Call
from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.openai.frames import WholeFrames
from engine_host.gateway.passage import Passage

# A quotation mark within a text has a stroke before it, so none of these stands in one.
_CALLS = (b'"tool_calls":[{', b'"type":"function_call"', b'"type":"tool_use"')
_TEXTS = (b'"content":"', b'"type":"response.output_text.delta"', b'"type":"text_delta"')
_LIMITS = (b'"finish_reason":"length"', b'"type":"response.incomplete"', b'"stop_reason":"max_tokens"')
_FAILS = b'"error":'
_MOST_TEXTS = 40
"""Pieces of text before a call: some models say first what they are about to do."""
_MOST_HELD = 1 << 20


def both(body: dict[str, Any], call: Call, format_field: str = "response_format") -> Call:
    """Return the request that asks for either; the same one where it does not ask for both.

    `body` is that of the request, with tools and format as llama.cpp reads them.
    """
    if not body.get("tools") or not body.get(format_field) or body.get("tool_choice") not in (None, "auto"):
        return call
    alone = replace(call, body=_written({**body, "tool_choice": "none"}))
    tools = {name: value for name, value in body.items() if name != format_field}
    passage = ToolOrAgain(call.passage or Passage(), alone)
    first = replace(call, body=_written(tools), passage=passage, tentative=True)
    return replace(call, otherwise=first)


class ToolOrAgain(Passage):
    """Holds an answer back until it calls a tool, and asks for another one where it does not.

    `longer` is asked where a whole answer, tried with `tokens` at most, was cut in a call or before a word.
    """

    def __init__(self, passage: Passage, alone: Call, longer: Call | None = None, tokens: int = 0) -> None:
        self._passage = passage
        self._alone = alone
        self._longer, self._tokens = longer, tokens
        self._frames = WholeFrames()
        self._held = b""
        self._texts = 0
        self._decided = False

    def feed(self, data: bytes) -> bytes:
        """Return what the client gets of a call. Raises AskAgainError for an answer without one."""
        if self._decided:
            return self._passage.feed(data)
        for frame in sse.split(self._frames.feed(data)):
            self._held += frame + sse.FRAME_END
            self._decided = self._decided or _has(frame, _CALLS) or _FAILS in frame
            self._texts += _has(frame, _TEXTS)
            # What thought until its limit would do so again.
            self._decided = self._decided or (not self._texts and _has(frame, _LIMITS))
        if self._decided:
            return self._passage.feed(self._held + self._frames.end())
        if self._texts > _MOST_TEXTS or len(self._held) > _MOST_HELD:
            raise AskAgainError(self._alone)
        return b""

    def end(self) -> bytes:
        """Return the end of a call. Raises AskAgainError for an answer without one."""
        if not self._decided:
            raise AskAgainError(self._alone)
        return self._passage.end()

    def convert(self, body: bytes) -> bytes:
        """Return a whole answer with a call. Raises AskAgainError for one without."""
        is_cut = self._longer is not None and _tokens_of(body) >= self._tokens
        if self._longer is not None and is_cut and (_calls_a_tool(body) or not _writes(body)):
            raise AskAgainError(self._longer)
        if _calls_a_tool(body) or _thought_alone(body):
            return self._passage.convert(body)
        raise AskAgainError(self._alone)

    def failure(self, fault: EndpointError, request_id: str) -> bytes:
        """Return the frames of a failure, as the client's form has them."""
        return self._passage.failure(fault, request_id)


def _has(frame: bytes, marks: tuple[bytes, ...]) -> bool:
    return any(mark in frame for mark in marks)


def _calls_a_tool(body: bytes) -> bool:
    """Return True for an answer that calls a tool, in the form of a chat, of Responses or of Messages."""
    answer = _parsed(body)
    messages = [one.get("message") for one in _list(answer.get("choices")) if isinstance(one, dict)]
    if any(isinstance(one, dict) and one.get("tool_calls") for one in messages):
        return True
    parts = [*_list(answer.get("output")), *_list(answer.get("content"))]
    return any(isinstance(one, dict) and one.get("type") in ("function_call", "tool_use") for one in parts)


def _tokens_of(body: bytes) -> int:
    """Return how many tokens an answer has, as its engine counts them."""
    usage = _parsed(body).get("usage")
    told = (
        [usage.get(name) for name in ("completion_tokens", "output_tokens")]
        if isinstance(usage, dict)
        else []
    )
    return max((count for count in told if isinstance(count, int)), default=0)


def _writes(body: bytes) -> bool:
    """Return True for an answer with a text, in each of the three forms."""
    answer = _parsed(body)
    said = [one.get("message") for one in _list(answer.get("choices")) if isinstance(one, dict)]
    parts = [*_list(answer.get("content")), *_list(answer.get("output"))]
    return any(isinstance(one, dict) and one.get("content") for one in said) or any(
        isinstance(one, dict) and (one.get("text") or one.get("type") == "message") for one in parts
    )


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        return json_text.parse_object(body)
    except ValueError:
        return {}


def _thought_alone(body: bytes) -> bool:
    """Return True for an answer in which nothing was written before its limit came."""
    answer = _parsed(body)
    if answer.get("stop_reason") == "max_tokens":
        return not any(isinstance(one, dict) and one.get("text") for one in _list(answer.get("content")))
    choices = [one for one in _list(answer.get("choices")) if isinstance(one, dict)]
    return bool(choices) and all(
        one.get("finish_reason") == "length"
        and isinstance(one.get("message"), dict)
        and not one["message"].get("content")
        for one in choices
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _written(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()
