"""The progress of llama.cpp with a prompt, asked for with a long one and kept from a client that did not ask.

With `return_progress` its stream begins with frames that hold `prompt_progress` and no content; a frame with
the role of the answer follows them as ever.
"""

from typing import Any

from engine_host.core import sse
from engine_host.gateway.openai.frames import WholeFrames
from engine_host.gateway.passage import Passage

_LONG = 16 << 10
"""Bytes of a request whose prompt takes a while; a shorter one is passed on byte for byte."""
_ASKED = "return_progress"
# In a text a stroke would stand before each quotation mark.
_MARK = b'"prompt_progress":'


def is_long(raw: bytes, body: dict[str, Any]) -> bool:
    """Return True for a streamed request of which progress is worth knowing, and was not asked for."""
    return len(raw) > _LONG and bool(body.get("stream")) and _ASKED not in body


def with_progress(raw: bytes) -> bytes:
    """Return the same request that also asks for progress; all else of it stays byte for byte."""
    place = raw.index(b"{") + 1
    return raw[:place] + b'"return_progress":true,' + raw[place:]


class ProgressFilter(Passage):
    """Takes the frames of progress out of the beginning of a stream; from the first other one all pass."""

    def __init__(self) -> None:
        self._frames = WholeFrames()
        self._over = False

    def feed(self, data: bytes) -> bytes:
        """Return what the client gets of the next bytes."""
        if self._over:
            return data
        frames = sse.split(self._frames.feed(data))
        kept = [frame for frame in frames if _MARK not in frame]
        # A comment that keeps the connection alive may stand between two of them.
        self._over = any(not frame.startswith(b":") for frame in kept)
        return sse.join(kept) + (self._frames.end() if self._over else b"")

    def end(self) -> bytes:
        """Return the bytes after the last whole frame."""
        return self._frames.end()
