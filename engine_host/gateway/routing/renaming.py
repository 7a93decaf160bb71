"""Let a request name the model as the engine knows it, and its answer as the client asked for it."""

import json
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway.directory import Target
from engine_host.gateway.openai.frames import WholeFrames

_MODEL = b'"model"'
_INNER = ("response", "message")
"""Where the events of Responses and of Messages hold an answer that names its model."""


def for_engine(raw: bytes, body: dict[str, Any], target: Target) -> tuple[bytes, dict[str, Any]]:
    """Return a request that names its model as the target does; the client's own bytes where it does."""
    if "model" not in body or body["model"] == target.engine_name:
        return raw, body
    named = {**body, "model": target.engine_name}
    return json.dumps(named, ensure_ascii=False).encode(), named


class Renaming:
    """Writes the id that was asked for into one answer, whole or streamed; changes nothing else of it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._frames = WholeFrames()

    def feed(self, data: bytes) -> bytes:
        """Return the whole frames of a stream so far. Raises AnswerTooLargeError for one without end."""
        whole = self._frames.feed(data)
        if _MODEL not in whole:
            return whole
        return sse.join(self._frame(frame) for frame in sse.split(whole))

    def end(self) -> bytes:
        """Return the bytes after the last whole frame."""
        return self._frames.end()

    def convert(self, body: bytes) -> bytes:
        """Return a whole answer; what is no object stays as it is."""
        if _MODEL not in body:
            return body
        try:
            value = json_text.parse_object(body)
        except ValueError:
            return body
        return _encoded(value) if self._rename(value) else body

    def _frame(self, frame: bytes) -> bytes:
        if _MODEL not in frame:
            return frame
        try:
            value = json_text.parse_object(sse.data_of(frame))
        except ValueError:
            return frame
        return sse.with_data(frame, _encoded(value)) if self._rename(value) else frame

    def _rename(self, value: dict[str, Any]) -> bool:
        """Rename where each form names its model; what tools are given stands deeper and may name one too."""
        found = False
        for part in (value, *(value.get(name) for name in _INNER)):
            if isinstance(part, dict) and isinstance(part.get("model"), str):
                part["model"] = self._name
                found = True
        return found


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
