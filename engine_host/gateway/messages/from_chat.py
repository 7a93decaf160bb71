"""Write a chat's answer in Anthropic's form, each piece of a stream as it comes."""

import json
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.messages.failures import error_event
from engine_host.gateway.openai.frames import WholeFrames
from engine_host.gateway.passage import Passage

_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
# The kind of a block, the field of its delta, and the type of that delta.
_TEXTS = (
    ("reasoning_content", "thinking", "thinking", "thinking_delta"),
    ("content", "text", "text", "text_delta"),
)


class ChatAsMessage(Passage):
    """Translates one answer, whole or streamed; the message's id is that of the request."""

    form = faults.Form.ANTHROPIC

    def __init__(self, request_id: str, model: str) -> None:
        self._request_id = request_id
        name = "msg_" + request_id.removeprefix("req_")
        self._message: dict[str, Any] = {
            "id": name, "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 0, "output_tokens": 0},
        }  # fmt: skip
        self._frames = WholeFrames()
        self._begun = False
        self._over = False
        self._blocks = 0
        self._open: object = None
        self._reason = "end_turn"
        self._usage: dict[str, int] = {}

    def feed(self, data: bytes) -> bytes:
        """Return the events for what is whole of the chat so far. Raises EndpointError."""
        return b"".join(self._events(frame) for frame in sse.split(self._frames.feed(data)))

    def end(self) -> bytes:
        """Return the events that end the message, where the chat had no end of its own."""
        return self._end()

    def convert(self, body: bytes) -> bytes:
        """Return the whole message. Raises EndpointError(502)."""
        try:
            answer = json_text.parse_object(body)
            choice = answer["choices"][0]
            self._note(answer, choice)
            message = {
                **self._message,
                "content": _blocks(choice["message"], cut=self._reason == "max_tokens"),
                "stop_reason": self._reason,
                "usage": self._usage,
            }
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise faults.odd_answer() from error
        return _encoded(message)

    def failure(self, fault: faults.EndpointError, request_id: str) -> bytes:
        """Return the event that ends a stream with an error, once."""
        if self._over:
            return b""
        self._over = True
        return fault.frame(self.form, request_id)

    def _events(self, frame: bytes) -> bytes:
        data = sse.data_of(frame)
        if self._over:
            return b""
        if not data:
            return frame + sse.FRAME_END
        if data == sse.DONE.encode():
            return self._end()
        try:
            chunk = json_text.parse_object(data)
            if chunk.get("error"):
                self._over = True
                return error_event(frame, chunk, self._request_id)
            choices = chunk.get("choices") or [{}]
            self._note(chunk, choices[0])
            if not self._begun:
                self._message["usage"] |= _read(chunk.get("prompt_progress"))
            return self._begin() + self._delta(choices[0].get("delta") or {})
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise faults.odd_answer() from error

    def _note(self, answer: dict[str, Any], choice: dict[str, Any]) -> None:
        """Keep why the answer ended, and what it took."""
        finish = choice.get("finish_reason")
        if isinstance(finish, str):
            self._reason = _REASONS.get(finish, "end_turn")
        usage = answer.get("usage")
        if isinstance(usage, dict):
            cached = int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
            self._usage = {
                "input_tokens": max(0, int(usage.get("prompt_tokens") or 0) - cached),
                "output_tokens": int(usage.get("completion_tokens") or 0),
                "cache_read_input_tokens": cached,
            }

    def _delta(self, delta: dict[str, Any]) -> bytes:
        events = b""
        for field, kind, name, delta_type in _TEXTS:
            text = delta.get(field)
            if isinstance(text, str) and text:
                events += self._block(kind, {"type": kind, name: ""})
                events += self._told_delta({"type": delta_type, name: text})
        for call in delta.get("tool_calls") or ():
            function = call.get("function") or {}
            block = {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": {}}
            events += self._block(("call", int(call.get("index") or 0)), block)
            if function.get("arguments"):
                events += self._told_delta(
                    {"type": "input_json_delta", "partial_json": str(function["arguments"])}
                )
        return events

    def _begin(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        return _told({"type": "message_start", "message": self._message})

    def _block(self, key: object, block: dict[str, Any]) -> bytes:
        """The beginning of a block, after the end of the one before it; nothing for the one that is open."""
        if self._open == key:
            return b""
        ended = self._close()
        self._open, self._blocks = key, self._blocks + 1
        return ended + _told(
            {"type": "content_block_start", "index": self._blocks - 1, "content_block": block}
        )

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        signed = b""
        if self._open == "thinking":
            signed = self._told_delta({"type": "signature_delta", "signature": ""})
        self._open = None
        return signed + _told({"type": "content_block_stop", "index": self._blocks - 1})

    def _told_delta(self, delta: dict[str, Any]) -> bytes:
        return _told({"type": "content_block_delta", "index": self._blocks - 1, "delta": delta})

    def _end(self) -> bytes:
        if self._over:
            return b""
        events = self._begin() + self._close()
        self._over = True
        delta = {"stop_reason": self._reason, "stop_sequence": None}
        usage = self._usage or {"output_tokens": 0}
        return (
            events
            + _told({"type": "message_delta", "delta": delta, "usage": usage})
            + _told({"type": "message_stop"})
        )


def _blocks(message: dict[str, Any], *, cut: bool) -> list[dict[str, Any]]:
    """The blocks of a whole answer; a call whose arguments were `cut` off by its limit is none.

    Raises ValueError for arguments that are no object.
    """
    blocks: list[dict[str, Any]] = []
    if message.get("reasoning_content"):
        blocks.append({"type": "thinking", "thinking": message["reasoning_content"], "signature": ""})
    if message.get("content"):
        blocks.append({"type": "text", "text": message["content"]})
    for call in message.get("tool_calls") or ():
        function = call["function"]
        try:
            given = json_text.parse_object(function.get("arguments") or "{}")
        except ValueError:
            if cut:
                # Anthropic's form has whole objects alone; `stop_reason` says that there is more.
                continue
            raise
        blocks.append({"type": "tool_use", "id": call.get("id"), "name": function["name"], "input": given})
    return blocks


def _read(progress: object) -> dict[str, int]:
    """Return what llama.cpp says of a prompt before it has read it, as Anthropic's first event has it."""
    if not isinstance(progress, dict):
        return {}
    total, cached = int(progress.get("total") or 0), int(progress.get("cache") or 0)
    return {"input_tokens": max(0, total - cached), "cache_read_input_tokens": max(0, cached)}


def _told(event: dict[str, Any]) -> bytes:
    return sse.frame_of(_encoded(event), str(event["type"]))


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
