"""Complete the events of a Responses stream, each as it comes.

llama.cpp numbers no event and says of none to which item and part it belongs; the SDKs of OpenAI and Vercel
keep their state by those numbers. It tells of no failure in a form that Codex takes for one.
"""

import json
from dataclasses import dataclass
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.openai.frames import WholeFrames
from engine_host.gateway.passage import Passage
from engine_host.gateway.responses.answer import Frame, whole_part
from engine_host.gateway.responses.failures import failed_event, numbered_event

_DELTA = b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta",'
"""The beginning of almost every frame, as llama.cpp writes it: these are completed without being read."""
_LAST = ("response.completed", "response.incomplete", "response.failed")


@dataclass
class _Item:
    """An item of the output that has begun."""

    index: int
    kind: str
    part_open: bool = False
    arguments_told: bool = False


class ResponseEvents(Passage):
    """Completes one answer, whole or streamed."""

    def __init__(self, frame: Frame, *, hides_progress: bool = False) -> None:
        """`hides_progress`: events that only tell how much of the prompt is read are kept from the client."""
        self._hides_progress = hides_progress
        self._frame = frame
        self._frames = WholeFrames()
        self._number = 0
        self._items: dict[str, _Item] = {}
        self._base: dict[str, Any] = {}
        self._current = b""
        self._over = False

    def feed(self, data: bytes) -> bytes:
        """Return the events that are whole in what has come so far. Raises EndpointError."""
        return b"".join(self._event(frame) for frame in sse.split(self._frames.feed(data)))

    def convert(self, body: bytes) -> bytes:
        """Return the whole answer. Raises EndpointError(502)."""
        return _encoded(self._frame.ended(_object(body)))

    def failure(self, fault: faults.EndpointError, request_id: str) -> bytes:
        """Return the event by which clients of this form know that an answer has failed."""
        if self._over:
            return b""
        opening = self._opening({})
        self._over = True
        return opening + failed_event(self._base, self._number, fault)

    def _event(self, frame: bytes) -> bytes:
        if self._over:
            return b""
        if frame.startswith(_DELTA) and self._current:
            number, self._number = self._number, self._number + 1
            return b"%b%b%b%d,%b%b" % (
                _DELTA, self._current, b'"sequence_number":', number, frame[len(_DELTA) :], sse.FRAME_END,
            )  # fmt: skip
        data = sse.data_of(frame)
        if not data:
            return frame + sse.FRAME_END
        event = _object(data)
        kind = event.get("type")
        if kind == "error" or (event.get("error") and kind not in _LAST):
            return self.failure(faults.engine_fault(500, data), "")
        if not isinstance(kind, str):
            raise faults.odd_answer()
        try:
            return self._repaired(kind, event)
        except (KeyError, TypeError, AttributeError) as error:
            # Of an engine that writes another form than the one that this is for.
            raise faults.odd_answer() from error

    def _repaired(self, kind: str, event: dict[str, Any]) -> bytes:
        """The event with all that belongs to it, and those that the engine leaves out before it."""
        if kind in ("response.created", "response.in_progress"):
            opened = self._opening(event["response"])
            if kind == "response.created" or (self._hides_progress and "prompt_progress" in event):
                return opened
            return opened or self._told(kind, {"response": self._base} | _progress(event))
        before = self._opening({})
        if kind in _LAST:
            whole = self._frame.ended(event["response"])
            self._over = True
            whole["id"] = self._base["id"]
            return before + self._told(f"response.{whole['status']}", {**event, "response": whole})
        if kind == "response.output_item.added":
            return before + self._begin(self._frame.item(event["item"]))
        if kind == "response.output_item.done":
            return before + self._finish(self._frame.item(event["item"]))
        return before + self._within(kind, event)

    def _opening(self, response: dict[str, Any]) -> bytes:
        """The first event, which the engine leaves out when its first token is no text."""
        if self._base:
            return b""
        self._base = {**self._frame.begun(), **response}
        return self._told("response.created", {"response": self._base})

    def _begin(self, item: dict[str, Any]) -> bytes:
        name = str(item["id"])
        begun = self._items[name] = _Item(len(self._items), str(item["type"]))
        if begun.kind == "message":
            place = {"output_index": begun.index, "content_index": 0, "logprobs": []}
            self._current = _encoded(place)[1:-1] + b","
        return self._told("response.output_item.added", {"output_index": begun.index, "item": item})

    def _within(self, kind: str, event: dict[str, Any]) -> bytes:
        """An event of an item that has begun."""
        name = event.get("item_id")
        item = self._items.get(name) if isinstance(name, str) else None
        if item is None:
            # One that this does not know: its number is all that can be said of it.
            return self._told(kind, event)
        place: dict[str, Any] = {"output_index": item.index}
        before = b""
        if item.kind != "function_call":
            place["content_index"] = 0
        if kind == "response.reasoning_text.delta":
            before = self._open_reasoning(str(name), item)
        if kind.startswith("response.output_text."):
            place["logprobs"] = []
        if kind == "response.function_call_arguments.done":
            item.arguments_told = True
        if kind.startswith("response.content_part."):
            event = {**event, "part": whole_part(event["part"])}
        return before + self._told(kind, {**place, **event})

    def _open_reasoning(self, name: str, item: _Item) -> bytes:
        """The part that the engine does not open for what a model thinks."""
        if item.part_open:
            return b""
        item.part_open = True
        part = {"type": "reasoning_text", "text": ""}
        place = {"item_id": name, "output_index": item.index, "content_index": 0}
        return self._told("response.content_part.added", {**place, "part": part})

    def _finish(self, item: dict[str, Any]) -> bytes:
        """The end of an item, and of what is open within it."""
        name = str(item["id"])
        frames = b"" if name in self._items else self._begin({**item, "status": "in_progress"})
        begun = self._items[name]
        place: dict[str, Any] = {"item_id": name, "output_index": begun.index}
        if begun.kind == "function_call" and not begun.arguments_told:
            fields = {"name": item["name"], "arguments": item["arguments"]}
            frames += self._told("response.function_call_arguments.done", {**place, **fields})
        if begun.part_open:
            begun.part_open = False
            part = item["content"][0]
            place["content_index"] = 0
            frames += self._told("response.reasoning_text.done", {**place, "text": part["text"]})
            frames += self._told("response.content_part.done", {**place, "part": part})
        ended = {"output_index": begun.index, "item": item}
        return frames + self._told("response.output_item.done", ended)

    def _told(self, kind: str, fields: dict[str, Any]) -> bytes:
        """An event with its number."""
        number, self._number = self._number, self._number + 1
        return numbered_event(kind, number, fields)


def _progress(event: dict[str, Any]) -> dict[str, Any]:
    """The progress with the prompt that an event tells, for a client that asked for it."""
    return {name: event[name] for name in ("prompt_progress",) if name in event}


def _object(content: bytes) -> dict[str, Any]:
    """The object that the engine wrote. Raises EndpointError(502) for everything else."""
    try:
        return json_text.parse_object(content)
    except ValueError as error:
        raise faults.odd_answer() from error


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
