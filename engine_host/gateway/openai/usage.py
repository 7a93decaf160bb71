"""Figures of a stream in OpenAI's form: in a frame of their own at its end, for a client that asked for them.

vLLM ends a stream with its usage when `stream_options.include_usage` is set, in a frame without choices;
clients that did not ask for it read `choices[0]` of every frame. llama.cpp writes the usage of a completion
into the frame with the reason of its end, whether it was asked for or not.
"""

import json
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway.openai.frames import WholeFrames
from engine_host.gateway.passage import Passage

_NO_CHOICES = b'"choices":[]'
_USAGE = b'"usage":'


def asks_for_usage(body: dict[str, Any]) -> bool:
    """Return True if the client itself asked for usage figures."""
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def with_usage(body: dict[str, Any]) -> bytes:
    """The same request, with the figures asked for."""
    options = body.get("stream_options")
    known = options if isinstance(options, dict) else {}
    return json.dumps({**body, "stream_options": {**known, "include_usage": True}}).encode()


class UsageFilter(Passage):
    """Takes the frame with the figures out of a stream; every other byte passes as it is."""

    def __init__(self) -> None:
        self._frames = WholeFrames()

    def feed(self, data: bytes) -> bytes:
        """The whole frames in what has come so far, but for the one with the figures."""
        whole = self._frames.feed(data)
        if _NO_CHOICES not in whole:
            return whole
        return sse.join(frame for frame in sse.split(whole) if not _is_usage(frame))

    def end(self) -> bytes:
        """Return the bytes after the last whole frame."""
        return self._frames.end()


class UsageApart(Passage):
    """Takes the usage of llama.cpp's completion out of its last frame, into one of its own where it `shows`.

    Timings are in the last frame of either, as in a chat. Each call gets whole frames.
    """

    def __init__(self, *, shows: bool) -> None:
        self._shows = shows

    def feed(self, data: bytes) -> bytes:
        """Return the frames in OpenAI's form."""
        if _USAGE not in data:
            return data
        return b"".join(self._frame(frame) for frame in sse.split(data))

    def _frame(self, frame: bytes) -> bytes:
        whole = frame + sse.FRAME_END
        if _USAGE not in frame:
            return whole
        try:
            told = json_text.parse_object(sse.data_of(frame))
        except ValueError:
            return whole
        usage = told.pop("usage", None)
        if not isinstance(usage, dict) or not told.get("choices"):
            return whole
        if not self._shows:
            return _frame_of(told)
        last = {**told, "choices": [], "usage": usage}
        told.pop("timings", None)
        return _frame_of(told) + _frame_of(last)


def _frame_of(value: dict[str, Any]) -> bytes:
    return sse.frame_of(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _is_usage(frame: bytes) -> bool:
    if _NO_CHOICES not in frame:
        return False
    try:
        value = json_text.parse_object(sse.data_of(frame))
    except ValueError:
        return False
    return value.get("choices") == [] and isinstance(value.get("usage"), dict)
