"""Add to vLLM's chats and completions what clients read of llama.cpp: timings, and a name of reasoning.

Open WebUI, llama-swap and others show llama.cpp's `timings`; Zed and Roo Code read `reasoning_content`, where
vLLM has `reasoning` alone. Tokens are those of vLLM's usage; times are measured here, but for those that vLLM
tells itself (`metrics`, with --enable-per-request-metrics). What was not measured is left out.
"""

import json
import re
import time
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.openai.frames import WholeFrames
from engine_host.gateway.openai.live_counts import without_usage
from engine_host.gateway.passage import Passage

_NO_CHOICES = b'"choices":[]'
_FINISH = b'"finish_reason":"'
_BEGINS = (b'"content":"', b'"reasoning":"', b'"tool_calls":[{', b'"text":"')
_EMPTY = (b'"content":""', b'"text":""')
# Within a text each quotation mark has a stroke before it, so this is a field and nothing that a model wrote.
_REASONING = re.compile(rb'"reasoning":("(?:[^"\\]|\\.)*+")')
_WITH_BOTH = rb'"reasoning":\1,"reasoning_content":\1'
_MARK, _BOTH = b'"reasoning":"', b'"reasoning_content":'


class VllmAnswer(Passage):
    """Completes one chat or completion, whole or streamed.

    `shows_usage`: the client asked for the frame with the figures, which else is taken out of its stream.
    `one` is False for a request of several answers or prompts, whose tokens have no common time.
    `counted`: vLLM was asked for usage with each frame, which the client was not to get.
    """

    def __init__(self, *, shows_usage: bool, one: bool, counted: bool = False) -> None:
        self._shows_usage, self._one, self._counted = shows_usage, one, counted
        self._frames = WholeFrames()
        self._asked_at: float | None = None
        self._first_at: float | None = None
        self._last_at = 0.0
        self._held: bytes = b""

    def begun(self) -> None:
        """Note when the engine got the request."""
        self._asked_at = time.monotonic()

    def feed(self, data: bytes) -> bytes:
        """Return the whole frames in what has come so far, completed."""
        whole = self._frames.feed(data)
        if not whole:
            return b""
        if self._counted:
            whole = without_usage(whole)
        if self._first_at is None and _has_content(whole):
            self._first_at = time.monotonic()
        if _MARK in whole and _BOTH not in whole:
            whole = _REASONING.sub(_WITH_BOTH, whole)
        if not self._held and _FINISH not in whole and _NO_CHOICES not in whole:
            return whole
        self._last_at = time.monotonic()
        return b"".join(self._frame(frame + sse.FRAME_END) for frame in sse.split(whole))

    def end(self) -> bytes:
        """Return the bytes after the last whole frame."""
        held, self._held = self._held, b""
        return held + self._frames.end()

    def convert(self, body: bytes) -> bytes:
        """Return the whole answer. Raises EndpointError(502)."""
        try:
            answer = json_text.parse_object(body)
        except ValueError as error:
            raise faults.odd_answer() from error
        if _BOTH not in body:
            body = _REASONING.sub(_WITH_BOTH, body)
        timings = self._timings(answer)
        return body if "timings" in answer else _with(body, timings)

    def _frame(self, frame: bytes) -> bytes:
        """Return one of the last frames; that with the reason of the end waits for that with the figures."""
        figures = self._figures(frame) if _NO_CHOICES in frame else None
        held, self._held = self._held, b""
        if figures is not None:
            timings = self._timings(figures)
            if self._shows_usage:
                return held + _in_frame(frame, timings)
            return _in_frame(held, timings)
        if _FINISH in frame and not self._shows_usage:
            self._held = frame
            return held
        return held + frame

    def _figures(self, frame: bytes) -> dict[str, Any] | None:
        try:
            value = json_text.parse_object(sse.data_of(frame.removesuffix(sse.FRAME_END)))
        except ValueError:
            return None
        return value if value.get("choices") == [] and isinstance(value.get("usage"), dict) else None

    def _timings(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return what is known of an answer in llama.cpp's words."""
        usage, told = _table(answer.get("usage")), _table(answer.get("metrics"))
        read, written = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        cached = _count(_table(usage.get("prompt_tokens_details")).get("cached_tokens"))
        found: dict[str, Any] = {}
        if cached is not None:
            found["cache_n"] = cached
        if read is not None:
            found["prompt_n"] = max(0, read - (cached or 0))
        if written is not None:
            found["predicted_n"] = written
        if self._one:
            first = _milliseconds(told.get("time_to_first_token_ms"), self._asked_at, self._first_at)
            rest = _milliseconds(told.get("generation_time_ms"), self._first_at, self._last_at)
            # The first token comes with the end of the prompt; one alone has no time of its own.
            found |= _rate("prompt", found.get("prompt_n"), first)
            found |= _rate("predicted", written - 1 if written is not None else None, rest)
        drafts = _table(told.get("speculative_decoding"))
        for name, own in (("draft_n", "num_draft_tokens"), ("draft_n_accepted", "num_accepted_draft_tokens")):
            if (count := _count(drafts.get(own))) is not None:
                found[name] = count
        return found


def _has_content(frames: bytes) -> bool:
    """Return True where a frame carries some of the answer, and not its beginning alone."""
    for mark in _EMPTY:
        frames = frames.replace(mark, b"")
    return any(mark in frames for mark in _BEGINS)


def _rate(name: str, tokens: int | None, milliseconds: float | None) -> dict[str, Any]:
    if not tokens or milliseconds is None or milliseconds <= 0:
        return {}
    return {
        f"{name}_ms": round(milliseconds, 3),
        f"{name}_per_token_ms": round(milliseconds / tokens, 3),
        f"{name}_per_second": round(1000 * tokens / milliseconds, 3),
    }


def _milliseconds(told: object, start: float | None, end: float | None) -> float | None:
    """Return what the engine told, else what was measured here."""
    if isinstance(told, int | float) and not isinstance(told, bool):
        return float(told)
    return None if start is None or not end else 1000 * (end - start)


def _in_frame(frame: bytes, timings: dict[str, Any]) -> bytes:
    return _with(frame.removesuffix(sse.FRAME_END), timings) + sse.FRAME_END if frame else b""


def _with(written: bytes, timings: dict[str, Any]) -> bytes:
    """Return an object with one field more at its end; all else of it stays byte for byte."""
    body = written.rstrip()
    if not timings or not body.endswith(b"}"):
        return written
    return body[:-1] + b',"timings":' + json.dumps(timings, separators=(",", ":")).encode() + b"}"


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
