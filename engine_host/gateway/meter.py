"""Measure one answer as it passes: its first content, and the figures at the end of it.

A stream is looked into only until its first content; from there the bytes pass unread, and of its last pieces
those frames are parsed that tell the newest figures. Nothing of the text is kept.
"""

import re
from dataclasses import dataclass
from typing import Any

from engine_host.core.bounds.newest import Newest
from engine_host.core.outside import json_text
from engine_host.core.sse import FRAME_END, newest_payloads, payloads

_TAIL_PIECES = 8
"""Pieces kept from the end: finish reason, usage with timings, and `[DONE]`, one or more to a piece."""
_TAIL_SIZE = 4 << 20
"""Bytes of all of them; the last frame of the Responses form holds the whole answer."""

# Frames of the Responses and the Messages form that carry what is written.
_CONTENT_TYPES = {
    "response.output_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "content_block_delta",
}
_LAST_FRAME = re.compile(
    rb"^data: ?\[DONE\]|^event: ?(?:message_stop|response\.(?:completed|incomplete|failed))", re.MULTILINE
)
_LAST_NAMES = (b"message_stop", b"response.completed", b"response.incomplete", b"response.failed")
# The names of all that `_picked` takes; a reason that is null is none.
_FIGURES = re.compile(rb'"(?:usage|timings|error|(?:finish|stop)_reason": *"|(?:finish|stop)_reason" )')
_LONGEST_FINISH = 100
# What is still wanted once the newest counts are known: engines that count as they write do so in each frame.
_REASONS = re.compile(rb'"(?:error|(?:finish|stop)_reason": *"|(?:finish|stop)_reason" )')
_CONTENT_FIELDS = ("content", "reasoning_content", "reasoning", "tool_calls", "refusal")


_LARGEST = 1 << 48


@dataclass(frozen=True)
class Figures:
    """The figures of one answer as the engine reports them: tokens, decode tokens a second; None if not
    reported.

    Source: the `usage` and `timings` objects of llama.cpp's server, `usage` of vLLM's three forms.
    """

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    generated_tokens: int | None = None
    prefill_seconds: float | None = None
    decode_rate: float | None = None
    draft_tokens: int | None = None
    draft_accepted: int | None = None
    finish: str | None = None
    error: str | None = None


class Meter:
    """Watches one event stream in chat, completion, Responses or Messages form."""

    def __init__(self) -> None:
        self.content_seen = False
        self.over = False
        """Whether the frame was fed after which no client reads on."""
        self.progress: tuple[int, int] | None = None
        """Tokens of the prompt that are read, and all of it, where the last piece told."""
        self.pieces = 0
        """Frames since the first content, and that one; a frame is a token, several, or a part of one."""
        self._last_begun = False
        self._pieces: Newest[bytes] = Newest(_TAIL_PIECES, _TAIL_SIZE)
        self._begun: dict[str, Any] = {}
        """The usage in the first frame of the Messages form: llama.cpp does not repeat it in the last."""

    def feed(self, data: bytes) -> bool:
        """Take one piece of the stream; True when it holds the first content."""
        if self.text(data) is not None:
            return False
        self._pieces.add(data, len(data))
        self._last_begun = self._last_begun or ends(data)
        self.over = self._last_begun and data.endswith(FRAME_END)
        if self.content_seen:
            self.pieces += data.count(FRAME_END)
            return False
        for payload in payloads(data):
            value = _object(payload)
            message = value.get("message")
            if value.get("type") == "message_start" and isinstance(message, dict):
                # What is written is not known yet, whatever stands there.
                told = _table(message, "usage")
                self._begun = {name: count for name, count in told.items() if name != "output_tokens"}
            self.progress = _progress(value) or self.progress
            self.content_seen = self.content_seen or _has_content(value)
        self.pieces += self.content_seen
        return self.content_seen

    def text(self, data: bytes) -> int | None:
        """Take a piece that is counted and no more; return how many frames end in it, None for any other."""
        if not self.content_seen or self._last_begun:
            return None
        # Nearly every piece is one line of JSON, which is found out faster than what it has not.
        frames = 1
        if data.count(b"\n") != 2 or not (data.startswith(b"data: {") and data.endswith(FRAME_END)):
            if ends(data):
                return None
            frames = data.count(FRAME_END)
        self._pieces.add(data, len(data))
        self.pieces += frames
        return frames

    def so_far(self) -> Figures:
        """The figures that the newest frames tell, where the engine tells them while it writes."""
        found: dict[str, Any] = {}
        wanted = _FIGURES
        newest = b"".join(self._pieces)
        # Each stream is asked once a second, while nearly none has come to its end.
        has_reason = _REASONS.search(newest) is not None
        for payload in newest_payloads(newest) if has_reason or _FIGURES.search(newest) else ():
            if wanted.search(payload) is None:
                continue
            found = _picked(_object(payload)) | found
            if "usage" in found or "timings" in found:
                if "finish" in found or not has_reason:
                    break
                wanted = _REASONS
        if self._begun:
            found["usage"] = {**self._begun, **_table(found, "usage")}
        return figures_of(found)

    def figures(self) -> Figures:
        """The figures at the end of what was fed; forgets the pieces."""
        found = self.so_far()
        self._pieces.clear()
        return found


def ends(data: bytes) -> bool:
    """Return True where the frame begins in these bytes after which no client reads on."""
    # Nearly all of a stream is neither, and is looked at once a token.
    named = b"event:" in data and any(name in data for name in _LAST_NAMES)
    return (named or b"[DONE]" in data) and _LAST_FRAME.search(data) is not None


def _has_content(value: dict[str, Any]) -> bool:
    """Return True if a frame carries text, reasoning or a part of a tool call."""
    if value.get("type") in _CONTENT_TYPES:
        return True
    choices = value.get("choices")
    if not isinstance(choices, list):
        # llama.cpp's own form, of `/completion` and `/infill`.
        return "stop" in value and bool(value.get("content"))
    for choice in choices:
        if not isinstance(choice, dict):
            continue
        if choice.get("text"):
            return True
        delta = choice.get("delta")
        if isinstance(delta, dict) and any(delta.get(name) for name in _CONTENT_FIELDS):
            return True
    return False


def _progress(value: dict[str, Any]) -> tuple[int, int] | None:
    """Return llama.cpp's progress with a prompt; None in any other frame."""
    told = _table(value, "prompt_progress")
    done, total = _whole(told.get("processed")), _whole(told.get("total"))
    return (min(done, total), total) if done is not None and total else None


def _object(payload: bytes) -> dict[str, Any]:
    """The JSON object in a frame; empty for `[DONE]`, for one cut off at the front, for what is none."""
    try:
        return json_text.parse_object(payload)
    except ValueError:
        return {}


def _picked(answer: dict[str, Any]) -> dict[str, Any]:
    """The parts of a frame or a whole answer that hold figures."""
    picked: dict[str, Any] = {}
    if isinstance(answer.get("response"), dict):  # The last frame of the Responses form holds all of it.
        answer = answer["response"]
    delta = answer.get("delta")
    for reason in (answer.get("stop_reason"), delta.get("stop_reason") if isinstance(delta, dict) else None):
        if reason:
            picked["finish"] = reason
    for name in ("usage", "timings"):
        if isinstance(answer.get(name), dict):
            picked[name] = answer[name]
    choices = answer.get("choices")
    if isinstance(choices, list):
        for choice in choices:
            if isinstance(choice, dict) and choice.get("finish_reason"):
                picked["finish"] = choice["finish_reason"]
    error = answer.get("error")
    if error:
        picked["error"] = str((isinstance(error, dict) and error.get("message")) or error)
    return picked


def figures_of(found: dict[str, Any]) -> Figures:
    """Figures out of `usage`, `timings`, `finish` and `error`, each where present."""
    usage, timings = _table(found, "usage"), _table(found, "timings")
    details = _table(usage, "prompt_tokens_details") or _table(usage, "input_tokens_details")
    cached = _whole(
        details.get("cached_tokens"), usage.get("cache_read_input_tokens"), timings.get("cache_n")
    )
    fresh = _whole(timings.get("prompt_n"))
    prompt = _whole(usage.get("prompt_tokens"), usage.get("input_tokens"))
    if prompt is not None and "cache_read_input_tokens" in usage:
        # Anthropic's form counts apart what was not read again.
        others = ("cache_read_input_tokens", "cache_creation_input_tokens")
        prompt += sum(_whole(usage.get(name)) or 0 for name in others)
    if prompt is None and fresh is not None:
        prompt = fresh + (cached or 0)
    generated = _whole(usage.get("completion_tokens"), usage.get("output_tokens"), timings.get("predicted_n"))
    rate = timings.get("predicted_per_second")
    # One token has no interval before it, so a rate of it is noise.
    timed = isinstance(rate, int | float) and not isinstance(rate, bool) and 0 <= rate < _LARGEST
    measured = timed and generated is not None and generated > 1
    spent = timings.get("prompt_ms")
    told = isinstance(spent, int | float) and not isinstance(spent, bool) and 0 <= spent < _LARGEST
    prefill = spent / 1000 if told and spent is not None else None
    finish = found.get("finish")
    error = found.get("error")
    return Figures(
        prompt_tokens=prompt,
        cached_tokens=cached,
        generated_tokens=generated,
        prefill_seconds=prefill,
        decode_rate=float(rate) if measured and rate is not None else None,
        draft_tokens=_whole(timings.get("draft_n")),
        draft_accepted=_whole(timings.get("draft_n_accepted")),
        finish=finish[:_LONGEST_FINISH] if isinstance(finish, str) else None,
        error=error if isinstance(error, str) else None,
    )


def figures_of_answer(body: bytes) -> Figures:
    """Figures out of a whole answer that was not streamed."""
    return figures_of(_picked(_object(body)))


def _table(found: dict[str, Any], name: str) -> dict[str, Any]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def _whole(*values: object) -> int | None:
    """The first count among the values."""
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST:
            return value
    return None
