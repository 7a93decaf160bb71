"""Complete a stream of Anthropic's form, each event as it comes.

llama.cpp gives a message the id of a chat, leaves out the input of a call that begins, lets blocks overlap
where Anthropic's end one before the next begins, says that a model ended by itself where a text of
`stop_sequences` ended it, and has an error form of its own; vLLM has the ids of chats too. What is between
passes unread.
"""

import json
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.messages.failures import error_event
from engine_host.gateway.openai.frames import WholeFrames
from engine_host.gateway.passage import Passage

_DELTA = b"event: content_block_delta\n"
_SIGNATURE = b'"signature_delta"'
_ID = "chatcmpl-"
_END_OF = {"thinking": {"type": "signature_delta", "signature": ""}}


class MessageEvents(Passage):
    """Completes one answer, whole or streamed."""

    form = faults.Form.ANTHROPIC

    def __init__(self, request_id: str) -> None:
        self._request_id = request_id
        self._frames = WholeFrames()
        self._open: tuple[object, str] | None = None
        self._closed: set[object] = set()
        self._over = False

    def feed(self, data: bytes) -> bytes:
        """Return the events that are whole in what has come so far. Raises EndpointError."""
        return b"".join(self._event(frame) for frame in sse.split(self._frames.feed(data)))

    def convert(self, body: bytes) -> bytes:
        """Return the whole answer. Raises EndpointError(502)."""
        try:
            return _encoded(_ended(_named(json_text.parse_object(body))))
        except ValueError as error:
            raise faults.odd_answer() from error

    def failure(self, fault: faults.EndpointError, request_id: str) -> bytes:
        """Return the event that ends a stream with an error, once."""
        if self._over:
            return b""
        self._over = True
        return fault.frame(self.form, request_id)

    def _event(self, frame: bytes) -> bytes:
        if self._over:
            return b""
        if frame.startswith(_DELTA) and _SIGNATURE not in frame:
            return frame + sse.FRAME_END
        data = sse.data_of(frame)
        if not data:
            return frame + sse.FRAME_END
        try:
            event = json_text.parse_object(data)
        except ValueError as error:
            raise faults.odd_answer() from error
        if event.get("error"):
            self._over = True
            return error_event(frame, event, self._request_id)
        return self._repaired(frame, event)

    def _repaired(self, frame: bytes, event: dict[str, Any]) -> bytes:
        kind, index = event.get("type"), event.get("index")
        whole = frame + sse.FRAME_END
        if not isinstance(index, int | None):
            raise faults.odd_answer()
        if kind == "message_start" and isinstance(event.get("message"), dict):
            event["message"] = _named(event["message"])
            return _told(event)
        if kind == "content_block_start" and isinstance(event.get("content_block"), dict):
            block = event["content_block"]
            if block.get("type") == "tool_use":
                block.setdefault("input", {})
            before = self._close()
            self._open = (index, str(block.get("type")))
            return before + _told(event)
        if index is not None and index in self._closed:
            # A signature, or an end, of a block that was ended here.
            return b""
        if kind == "message_delta" and isinstance(event.get("delta"), dict):
            delta = _ended(event["delta"])
            return whole if delta is event["delta"] else _told({**event, "delta": delta})
        if kind == "content_block_stop":
            self._open = None
        self._over = kind == "message_stop"
        return whole

    def _close(self) -> bytes:
        """The end of the block that is open, which the engine leaves open while it writes the next."""
        if self._open is None:
            return b""
        index, kind = self._open
        self._closed.add(index)
        last = _END_OF.get(kind)
        frames = b""
        if last is not None:
            frames = _told({"type": "content_block_delta", "index": index, "delta": last})
        return frames + _told({"type": "content_block_stop", "index": index})


def _named(message: dict[str, Any]) -> dict[str, Any]:
    """A message with an id as Anthropic's have it."""
    name = message.get("id")
    if isinstance(name, str) and name.startswith(_ID):
        return {**message, "id": "msg_" + name.removeprefix(_ID)}
    return message


def _ended(told: dict[str, Any]) -> dict[str, Any]:
    """The same with the reason of its end, where one of the texts that end it was written."""
    by_text = isinstance(told.get("stop_sequence"), str) and told.get("stop_reason") == "end_turn"
    return {**told, "stop_reason": "stop_sequence"} if by_text else told


def _told(event: dict[str, Any]) -> bytes:
    return sse.frame_of(_encoded(event), str(event.get("type")))


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
