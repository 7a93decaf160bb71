"""Ollama's answers: lines of JSON, each sent as the engine's frame comes, and figures in the last one."""

import json
import time
from datetime import UTC, datetime
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.openai.frames import WholeFrames
from engine_host.gateway.passage import Passage

_NANO = 1_000_000_000
_MOST_CALLS = 256
_LONGEST_CALLS = 4 << 20
"""Bytes of all arguments of an answer: Ollama's clients get a call whole, so it is held until its end."""


class OllamaLines(Passage):
    """Turns OpenAI's chat or completion into Ollama's chat, or text where `is_chat` is False."""

    form = faults.Form.OLLAMA
    lines = True

    def __init__(self, model: str, *, is_chat: bool) -> None:
        self._model = model
        self._is_chat = is_chat
        self._frames = WholeFrames()
        self._began = time.monotonic()
        self._first: float | None = None
        self._calls: dict[int, dict[str, str]] = {}
        self._held = 0
        self._finish: str | None = None
        self._usage: dict[str, Any] = {}
        self._timings: dict[str, Any] = {}
        self._over = False

    def feed(self, data: bytes) -> bytes:
        """Return the lines for the next bytes of the engine's stream; raises EndpointError 502."""
        return b"".join(map(self._line_of, sse.payloads(self._frames.feed(data))))

    def end(self) -> bytes:
        """Return the last line, unless it has been sent."""
        return b"" if self._over else self._last()

    def convert(self, body: bytes) -> bytes:
        """Return a whole answer; raises EndpointError 502."""
        answer = _object(body)
        choice = _choice(answer)
        self._note(answer, choice)
        message = choice.get("message")
        delta = message if isinstance(message, dict) else {"content": choice.get("text")}
        self._add_calls(delta.get("tool_calls"))
        said = {**(self._said(delta) or self._words("", "")), **_logprobs(choice)}
        return json.dumps({**said, **self._figures(self._taken_calls(said))}, ensure_ascii=False).encode()

    def failure(self, fault: faults.EndpointError, request_id: str) -> bytes:
        """Return the line that tells why no more will come."""
        self._over = True
        return fault.encoded(faults.Form.OLLAMA, request_id) + b"\n"

    def _line_of(self, payload: bytes) -> bytes:
        if self._over:
            return b""
        if payload == sse.DONE.encode():
            return self._last()
        frame = _object(payload)
        if frame.get("error"):
            return self.failure(faults.engine_fault(500, payload), "")
        choice = _choice(frame)
        self._note(frame, choice)
        delta = choice.get("delta")
        said = self._said(delta if isinstance(delta, dict) else {"content": choice.get("text")})
        if isinstance(delta, dict):
            self._add_calls(delta.get("tool_calls"))
        line = _line({**said, **_logprobs(choice), "done": False}) if said else b""
        if self._finish is not None and self._calls:
            line += _line({**self._taken_calls(self._words("", "")), "done": False})
        return line

    def _note(self, answer: dict[str, Any], choice: dict[str, Any]) -> None:
        """Keep what the last line tells."""
        finish = choice.get("finish_reason")
        if isinstance(finish, str):
            self._finish = finish
        for name, kept in (("usage", self._usage), ("timings", self._timings)):
            if isinstance(answer.get(name), dict):
                kept.update(answer[name])

    def _said(self, delta: dict[str, Any]) -> dict[str, Any]:
        """Return what a frame says; empty for one without a word."""
        text = delta.get("content")
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if not isinstance(text, str):
            text = ""
        if not isinstance(thought, str):
            thought = ""
        if not text and not thought:
            return {}
        if self._first is None:
            self._first = time.monotonic()
        return self._words(text, thought)

    def _words(self, text: str, thought: str) -> dict[str, Any]:
        head = {"model": self._model, "created_at": _now()}
        thinking = {"thinking": thought} if thought else {}
        if self._is_chat:
            return {**head, "message": {"role": "assistant", "content": text, **thinking}}
        return {**head, "response": text, **thinking}

    def _add_calls(self, calls: object) -> None:
        """Put the parts of tool calls together; raises EndpointError 502 for what is none."""
        for place, part in enumerate(calls if isinstance(calls, list) else ()):
            function = part.get("function") if isinstance(part, dict) else None
            if not isinstance(function, dict):
                raise faults.odd_answer()
            index = part.get("index", place)
            if not isinstance(index, int) or not 0 <= index < _MOST_CALLS:
                raise faults.odd_answer()
            call = self._calls.setdefault(index, {"name": "", "arguments": ""})
            for name in call:
                text = function.get(name)
                if isinstance(text, str):
                    self._held += len(text)
                    call[name] += text
            if self._held > _LONGEST_CALLS:
                raise faults.odd_answer()

    def _taken_calls(self, said: dict[str, Any]) -> dict[str, Any]:
        """Return the same with the calls that were put together, each whole."""
        calls, self._calls = [self._calls[index] for index in sorted(self._calls)], {}
        if not self._is_chat or not calls:
            return said
        whole = [
            {"function": {"name": call["name"], "arguments": arguments}}
            for call in calls
            if (arguments := _arguments(call["arguments"])) is not None
        ]
        # One that was cut off in the middle is no call; `done_reason` says so.
        return {**said, "message": {**said["message"], "tool_calls": whole}} if whole else said

    def _last(self) -> bytes:
        self._over = True
        return _line(self._figures(self._taken_calls(self._words("", ""))))

    def _figures(self, said: dict[str, Any]) -> dict[str, Any]:
        """Return the last line: durations in nanoseconds, as measured here where the engine tells none."""
        now = time.monotonic()
        first = self._first or now
        return {
            **said,
            "done": True,
            "done_reason": "length" if self._finish == "length" else "stop",
            "total_duration": int((now - self._began) * _NANO),
            "load_duration": 0,
            "prompt_eval_count": _count(self._usage.get("prompt_tokens")),
            "prompt_eval_duration": self._duration("prompt_ms", first - self._began),
            "eval_count": _count(self._usage.get("completion_tokens")),
            "eval_duration": self._duration("predicted_ms", now - first),
        }

    def _duration(self, name: str, measured: float) -> int:
        told = self._timings.get(name)
        known = isinstance(told, int | float) and not isinstance(told, bool) and 0 <= told < 1e12
        return int(told * 1_000_000) if known and told is not None else int(measured * _NANO)


def loaded(model: str, *, is_chat: bool, unload: bool) -> bytes:
    """Return the answer to a request that asks nothing: models are started and stopped elsewhere."""
    words: dict[str, Any] = {"message": {"role": "assistant", "content": ""}} if is_chat else {"response": ""}
    reason = "unload" if unload else "load"
    answer = {"model": model, "created_at": _now(), **words, "done": True, "done_reason": reason}
    return json.dumps(answer).encode()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _object(content: bytes) -> dict[str, Any]:
    try:
        return json_text.parse_object(content)
    except ValueError as error:
        raise faults.odd_answer() from error


def _choice(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the first choice; empty in a frame that has none, such as that of the figures."""
    choices = answer.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return {}


def _logprobs(choice: dict[str, Any]) -> dict[str, Any]:
    """Return the likelihoods of a choice's tokens as Ollama has them; empty where none were asked for."""
    told = choice.get("logprobs")
    content = told.get("content") if isinstance(told, dict) else None
    return {"logprobs": content} if isinstance(content, list) and content else {}


def _arguments(text: str) -> dict[str, Any] | None:
    """Return the arguments of a call as the object that Ollama's clients read; None for what is none."""
    try:
        return json_text.parse_object(text) if text.strip() else {}
    except ValueError:
        return None


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
