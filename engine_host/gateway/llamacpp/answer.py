"""llama.cpp's own answer to a completion, out of OpenAI's: content as it comes, figures at the end."""

import json
import time
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.openai.frames import WholeFrames
from engine_host.gateway.passage import Passage


class NativeCompletion(Passage):
    """Turns OpenAI's completion, streamed or whole, into that of `/completion`."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._frames = WholeFrames()
        self._began = time.monotonic()
        self._first: float | None = None
        self._finish = ""
        self._stopped_by = ""
        self._usage: dict[str, Any] = {}
        self._over = False

    def feed(self, data: bytes) -> bytes:
        """Return the frames for the next bytes of the engine's stream; raises EndpointError 502."""
        return b"".join(map(self._frame, sse.payloads(self._frames.feed(data))))

    def end(self) -> bytes:
        """Return the last frame, unless it has been sent; llama.cpp ends with it and without `[DONE]`."""
        return b"" if self._over else self._last()

    def convert(self, body: bytes) -> bytes:
        """Return a whole answer; raises EndpointError 502."""
        text = self._note(_object(body))
        return json.dumps(self._figures(text), ensure_ascii=False).encode("utf-8", "replace")

    def _frame(self, payload: bytes) -> bytes:
        if self._over:
            return b""
        if payload == sse.DONE.encode():
            return self._last()
        value = _object(payload)
        if value.get("error"):
            self._over = True
            return faults.engine_fault(500, payload).frame()
        text = self._note(value)
        return _framed({"index": 0, "content": text, "stop": False}) if text else b""

    def _note(self, answer: dict[str, Any]) -> str:
        """Return the text of a frame or an answer, and keep what the last frame tells."""
        if isinstance(answer.get("usage"), dict):
            self._usage = answer["usage"]
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return ""
        if isinstance(choice.get("finish_reason"), str):
            self._finish = choice["finish_reason"]
        if isinstance(choice.get("stop_reason"), str):
            self._stopped_by = choice["stop_reason"]
        text = choice.get("text")
        if self._first is None and text:
            self._first = time.monotonic()
        return text if isinstance(text, str) else ""

    def _last(self) -> bytes:
        self._over = True
        return _framed(self._figures(""))

    def _figures(self, text: str) -> dict[str, Any]:
        now = time.monotonic()
        first = self._first or now
        prompt, predicted = (
            _count(self._usage.get("prompt_tokens")),
            _count(self._usage.get("completion_tokens")),
        )
        kind = "limit" if self._finish == "length" else "word" if self._stopped_by else "eos"
        return {
            "index": 0,
            "content": text,
            "stop": True,
            "stop_type": kind,
            "stopping_word": self._stopped_by,
            "model": self._model,
            "tokens_predicted": predicted,
            "tokens_evaluated": prompt,
            "truncated": False,
            # Measured here: the engine's own are not told for one request.
            "timings": {
                "prompt_n": prompt,
                "prompt_ms": (first - self._began) * 1000,
                "predicted_n": predicted,
                "predicted_ms": (now - first) * 1000,
            },
        }


def _framed(value: dict[str, Any]) -> bytes:
    return sse.frame_of(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _object(content: bytes) -> dict[str, Any]:
    try:
        return json_text.parse_object(content)
    except ValueError as error:
        raise faults.odd_answer() from error


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
