"""Write a chat's answer as events of Responses, each piece of a stream as it comes.

They are as bare as llama.cpp writes them: `events` gives them their numbers and places.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.openai.frames import WholeFrames

_MOST_CALLS = 256


@dataclass
class _Item:
    """One item of the output as far as it has come."""

    kind: str
    id: str
    call_id: str = ""
    name: str = ""
    parts: list[str] = field(default_factory=list)

    def told(self, status: str) -> dict[str, Any]:
        """Return the item as an event holds it."""
        text = "".join(self.parts)
        own: dict[str, Any] = {"id": self.id, "type": self.kind, "status": status}
        if self.kind == "function_call":
            return {**own, "call_id": self.call_id, "name": self.name, "arguments": text}
        if self.kind == "reasoning":
            content = [{"type": "reasoning_text", "text": text}] if text else []
            return {**own, "summary": [], "content": content}
        return {**own, "role": "assistant", "content": [_text_part(text)] if text else []}


class ChatAsResponse:
    """Translates one answer, whole or streamed; `name` begins the ids of its items."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._frames = WholeFrames()
        self._items: list[_Item] = []
        self._open: _Item | None = None
        self._calls: dict[int, _Item] = {}
        self._usage: dict[str, Any] | None = None
        self._cut = False
        self._over = False

    def feed(self, data: bytes) -> bytes:
        """Return the events for what is whole of the chat so far. Raises EndpointError."""
        return b"".join(self._events(frame) for frame in sse.split(self._frames.feed(data)))

    def end(self) -> bytes:
        """Return the events that end the answer, where the chat had no end of its own."""
        return self._end()

    def convert(self, body: bytes) -> bytes:
        """Return the whole answer. Raises EndpointError(502)."""
        try:
            answer = json_text.parse_object(body)
            choice = answer["choices"][0]
            self._note(answer, choice)
            self._take(choice["message"])
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise faults.odd_answer() from error
        return _encoded(self._response())

    def _events(self, frame: bytes) -> bytes:
        data = sse.data_of(frame)
        if not data or self._over:
            return b"" if self._over else frame + sse.FRAME_END
        if data == sse.DONE.encode():
            return self._end()
        try:
            chunk = json_text.parse_object(data)
            if chunk.get("error"):
                self._over = True
                return frame + sse.FRAME_END
            choices = chunk.get("choices") or [{}]
            self._note(chunk, choices[0])
            return self._take(choices[0].get("delta") or {})
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise faults.odd_answer() from error

    def _note(self, answer: dict[str, Any], choice: dict[str, Any]) -> None:
        """Keep why the answer ended, and what it took."""
        self._cut = self._cut or choice.get("finish_reason") == "length"
        usage = answer.get("usage")
        if isinstance(usage, dict):
            read, written = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
            thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
            self._usage = {
                "input_tokens": read,
                "input_tokens_details": {"cached_tokens": _count(cached)},
                "output_tokens": written,
                "output_tokens_details": {"reasoning_tokens": _count(thought)},
                "total_tokens": read + written,
            }

    def _take(self, said: dict[str, Any]) -> bytes:
        """The events of a piece of the answer, or of all of it."""
        events = b""
        thought = said.get("reasoning_content") or said.get("reasoning")
        if isinstance(thought, str) and thought:
            events += self._begin("reasoning")
            events += self._more("response.reasoning_text.delta", thought)
        if isinstance(said.get("content"), str) and said["content"]:
            events += self._begin("message")
            events += self._more("response.output_text.delta", said["content"])
        for place, call in enumerate(said.get("tool_calls") or ()):
            function = call.get("function") or {}
            events += self._begin_call(int(call.get("index", place)), call.get("id"), function.get("name"))
            if function.get("arguments"):
                events += self._more("response.function_call_arguments.delta", str(function["arguments"]))
        return events

    def _begin(self, kind: str) -> bytes:
        """The beginning of a text, after the end of the one before it; nothing for the one that is open."""
        if self._open is not None and self._open.kind == kind:
            return b""
        return self._close_text() + self._added(_Item(kind, f"{kind[:3]}_{self._name}_{len(self._items)}"))

    def _begin_call(self, number: int, call_id: object, name: object) -> bytes:
        known = self._calls.get(number)
        if known is not None:
            self._open = known
            return b""
        if len(self._calls) >= _MOST_CALLS:
            raise ValueError("an answer with more calls of tools than any has")
        item = _Item("function_call", f"fc_{self._name}_{len(self._items)}")
        item.call_id = str(call_id or f"call_{self._name}_{number}")
        item.name = str(name or "")
        self._calls[number] = item
        return self._close_text() + self._added(item)

    def _added(self, item: _Item) -> bytes:
        self._items.append(item)
        self._open = item
        events = _told("response.output_item.added", {"item": item.told("in_progress")})
        if item.kind == "message":
            events += _told("response.content_part.added", {"item_id": item.id, "part": _text_part("")})
        return events

    def _more(self, kind: str, text: str) -> bytes:
        assert self._open is not None
        self._open.parts.append(text)
        return _told(kind, {"item_id": self._open.id, "delta": text})

    def _close_text(self) -> bytes:
        """The end of a text; calls of tools stay open, for the pieces of several may come in turns."""
        item, self._open = self._open, None
        return b"" if item is None or item.kind == "function_call" else self._done(item)

    def _done(self, item: _Item) -> bytes:
        events, whole = b"", item.told("completed")
        if item.kind == "message":
            place = {"item_id": item.id}
            text = "".join(item.parts)
            events += _told("response.output_text.done", {**place, "text": text})
            events += _told("response.content_part.done", {**place, "part": _text_part(text)})
        return events + _told("response.output_item.done", {"item": whole})

    def _end(self) -> bytes:
        if self._over:
            return b""
        events = self._close_text() + b"".join(map(self._done, self._calls.values()))
        self._over = True
        return events + _told("response.completed", {"response": self._response()})

    def _response(self) -> dict[str, Any]:
        items = [item.told("completed") for item in self._items]
        status = "incomplete" if self._cut else "completed"
        return {"object": "response", "status": status, "output": items, "usage": self._usage}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _told(kind: str, fields: dict[str, Any]) -> bytes:
    return sse.frame_of(_encoded({"type": kind, **fields}), kind)


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
