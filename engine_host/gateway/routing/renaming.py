"""Let a request name the model as the engine knows it, and its answer as the client asked for it."""

import json
import re
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway.directory import Target
from engine_host.gateway.openai.bounds import LENGTHS, NO_LIMIT
from engine_host.gateway.openai.frames import WholeFrames

_MODEL = b'"model"'
# Inside a text of JSON its quotes would stand behind backslashes.
_NAMED = re.compile(rb'(?<!\\)"model": ?"[^"\\]*"')
_DATA = b"data: {"
_BRACKETS = (b"{", b"}", b"[", b"]")
_INNER = ("response", "message")
"""Where the events of Responses and of Messages hold an answer that names its model."""


def for_engine(raw: bytes, body: dict[str, Any], target: Target) -> tuple[bytes, dict[str, Any]]:
    """Return a request that names its model as the target does; the client's own bytes where it does.

    One for vLLM asks for no longer an answer than its context holds: agents ask for 32,000 tokens of any
    model, which vLLM refuses. It shortens what is less than its context to what the prompt leaves. No limit
    is null to it.
    """
    changes: dict[str, Any] = {}
    if "model" in body and body["model"] != target.engine_name:
        changes["model"] = target.engine_name
    if target.provider is None and not target.native_infill:
        changes |= {name: target.context for name in LENGTHS if _is_more(body.get(name), target.context)}
        changes |= {name: None for name in LENGTHS if body.get(name) == NO_LIMIT}
    if not changes:
        return raw, body
    changed = {**body, **changes}
    return json.dumps(changed, ensure_ascii=False).encode(), changed


def _is_more(asked: object, most: int) -> bool:
    return isinstance(asked, int) and not isinstance(asked, bool) and asked > most


class Renaming:
    """Writes the id that was asked for into one answer, whole or streamed; changes nothing else of it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._named = b'"model":' + _encoded(name)
        self._same: tuple[bytes, bytes] | None = None
        """What the last frame began or ended with, its name in it; and the same with the other name."""
        self._frames = WholeFrames()

    def feed(self, data: bytes) -> bytes:
        """Return the whole frames of a stream so far. Raises AnswerTooLargeError for one without end."""
        whole = self._frames.feed(data)
        names = whole.count(_MODEL)
        if not names:
            return whole
        # All of a stream's tokens begin or end alike: to read and write the JSON of each took longer than all
        # else that is done with it.
        if self._same is not None and whole.count(self._same[0]) == names:
            return whole.replace(*self._same)
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
        if (quickly := self._quickly(frame)) is not None:
            return quickly
        try:
            value = json_text.parse_object(sse.data_of(frame))
        except ValueError:
            return frame
        return sse.with_data(frame, _encoded(value)) if self._rename(value) else frame

    def _quickly(self, frame: bytes) -> bytes | None:
        """Return a frame with the one name in it replaced; None where it may not be the answer's own."""
        found = _NAMED.search(frame)
        if found is None or frame.count(_MODEL) != 1 or not frame.startswith(_DATA) or b"\n" in frame:
            return None
        start, end = found.span()
        # In the object that is the frame's data, and in none within it. vLLM names the model before all that
        # opens another, llama.cpp after the last. Brackets in a text count too: then it is not known.
        before, after = frame[:start], frame[end:]
        if not any(sign in before[len(_DATA) :] for sign in _BRACKETS):
            self._same = frame[:end], before + self._named
        elif after.endswith(b"}") and not any(sign in after[:-1] for sign in _BRACKETS):
            one = before[-1:]
            self._same = one + frame[start:] + sse.FRAME_END, one + self._named + after + sse.FRAME_END
        else:
            return None
        return before + self._named + after

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
