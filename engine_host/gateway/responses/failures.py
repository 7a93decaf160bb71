"""Tell of a failure in the middle of a Responses stream, in the event that its clients take for one.

Codex passes over every other form, and says that the stream was closed too early.
"""

import json
import re
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway.error_answers import EndpointError, engine_fault
from engine_host.gateway.passage import Passage
from engine_host.gateway.responses.answer import Frame

_ERROR = re.compile(rb'^(?:event: ?error\n|data: ?\{"error")', re.MULTILINE)
_NUMBER = b'"sequence_number":'
_LAST = b"event: response.completed"
# Codex waits as long as the message says, and then asks again.
_CODES = {"queue_full": "rate_limit_exceeded"}


def numbered_event(kind: str, number: int, fields: dict[str, Any]) -> bytes:
    """Return an event of a stream as it is sent."""
    own = {"type": kind, "sequence_number": number}
    event = json.dumps({**own, **fields, **own}, ensure_ascii=False, separators=(",", ":"))
    return sse.frame_of(event.encode(), kind)


def failed_event(response: dict[str, Any], number: int, fault: EndpointError) -> bytes:
    """Return the event that ends a stream with an error; `response` is what was told of the answer."""
    error = {"code": _CODES.get(fault.code, fault.code), "message": fault.message, "src": fault.source}
    failed = {**response, "status": "failed", "error": {**fault.extra, **error}}
    return numbered_event("response.failed", number, {"response": failed})


class FailureTold(Passage):
    """Passes on a stream of an engine that writes this form well, and ends it with that event.

    vLLM calls the last event of every stream completed, also that of an answer whose status is incomplete
    (`responses/serving.py`): it is named after the status.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._first = b""
        self._last = b""
        self._number = 0
        self._over = False

    def feed(self, data: bytes) -> bytes:
        """Return the same bytes, but for an error in another form; the last event goes on whole."""
        if self._last or _LAST in data:
            return self._at_the_end(data)
        if _ERROR.search(data):
            return b"".join(map(self._event, sse.split(data)))
        return self._noted(data)

    def end(self) -> bytes:
        """Return what was held of an event without an end."""
        rest, self._last = self._last, b""
        return self._noted(rest)

    def _at_the_end(self, data: bytes) -> bytes:
        begun, marker, rest = data.partition(_LAST) if not self._last else (b"", b"", data)
        before = self.feed(begun) if begun else b""
        self._last += marker + rest
        if sse.FRAME_END not in self._last:
            return before
        frames, self._last = self._last, b""
        return before + b"".join(map(self._event, sse.split(frames)))

    def _event(self, frame: bytes) -> bytes:
        if self._over:
            return b""
        if _ERROR.match(frame):
            return self.failure(engine_fault(500, sse.data_of(frame)), "")
        if frame.startswith(_LAST) and (renamed := _incomplete(frame)) is not None:
            return self._noted(renamed)
        return self._noted(frame + sse.FRAME_END)

    def _noted(self, data: bytes) -> bytes:
        if sse.FRAME_END not in self._first:
            self._first += data
        self._number += data.count(_NUMBER)
        return data

    def failure(self, fault: EndpointError, request_id: str) -> bytes:
        """Return the event that ends the stream, after the one that begins it where that is missing."""
        if self._over:
            return b""
        self._over = True
        response = self._frame.begun() | self._told()
        opening = b"" if self._number else numbered_event("response.created", 0, {"response": response})
        return opening + failed_event(response, max(self._number, 1), fault)

    def _told(self) -> dict[str, Any]:
        """The answer as the engine's first event has it."""
        try:
            event = json_text.parse_object(sse.data_of(sse.split(self._first)[0])) if self._first else {}
        except ValueError:
            event = {}
        response = event.get("response")
        return response if isinstance(response, dict) else {}


def _incomplete(frame: bytes) -> bytes | None:
    """Return the last event of an answer that was cut off under its own name; None for others."""
    try:
        event = json_text.parse_object(sse.data_of(frame))
    except ValueError:
        return None
    response = event.get("response")
    if not isinstance(response, dict) or response.get("status") != "incomplete":
        return None
    number = event.get("sequence_number")
    return numbered_event("response.incomplete", number if isinstance(number, int) else 0, event)
