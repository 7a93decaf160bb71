"""One end for a stream of several answers, from an engine that writes one for each of them.

llama.cpp ends each answer of a request with `n`, or of several prompts, with the figures of that one alone,
so that clients count too little; and it begins a completion of several prompts with a frame that holds
`null`, which OpenAI's library cannot read.
"""

import json
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway.openai.frames import WholeFrames
from engine_host.gateway.passage import Passage

_USAGE = b'"usage":'
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_OF_ONE = ("usage", "timings")


def is_one(body: dict[str, Any]) -> bool:
    """Return True for a request of one answer to one prompt."""
    return body.get("n") in (None, 1) and body.get("n_cmpl") in (None, 1) and not has_several_prompts(body)


def has_several_prompts(body: dict[str, Any]) -> bool:
    """Return True for a completion of several prompts; a list of numbers, and a text at its front, is one."""
    prompt = body.get("prompt")
    return isinstance(prompt, list) and any(isinstance(one, str | list) for one in prompt[1:])


class Sum:
    """The usage of several answers; their prompt counts once if it is the same."""

    def __init__(self, *, one_prompt: bool) -> None:
        self._one_prompt = one_prompt
        self._sums: dict[str, int] = {}
        self._cached = 0

    def add(self, usage: dict[str, Any]) -> None:
        """Add what one of them took."""
        for name in _COUNTS:
            count = usage.get(name)
            if isinstance(count, int):
                self._sums[name] = self._sums.get(name, 0) + count
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        if isinstance(cached, int):
            self._cached = max(self._cached, cached) if self._one_prompt else self._cached + cached
        prompt = usage.get("prompt_tokens")
        if self._one_prompt and isinstance(prompt, int):
            # It was read once for all of them.
            self._sums["prompt_tokens"] = prompt
            self._sums["total_tokens"] = prompt + self._sums.get("completion_tokens", 0)

    def usage(self) -> dict[str, Any] | None:
        """Return the usage of all of them; None where none was told."""
        if not self._sums:
            return None
        return {**self._sums, "prompt_tokens_details": {"cached_tokens": self._cached}}


class SeveralAnswers(Passage):
    """Adds the figures up, and tells them once, before the end; the first prompt counts once if `one_prompt`.

    `shows_usage`: the client asked for the frame with the figures.
    """

    def __init__(self, *, shows_usage: bool, one_prompt: bool) -> None:
        self._shows_usage = shows_usage
        self._frames = WholeFrames()
        self._head: dict[str, Any] = {}
        self._sum = Sum(one_prompt=one_prompt)

    def feed(self, data: bytes) -> bytes:
        """Return the whole frames in what has come so far, without the figures of each answer."""
        whole = self._frames.feed(data)
        return b"".join(self._frame(frame) for frame in sse.split(whole))

    def end(self) -> bytes:
        """Return the bytes after the last whole frame."""
        return self._frames.end()

    def _frame(self, frame: bytes) -> bytes:
        data = sse.data_of(frame)
        if data == b"null":
            return b""
        whole = frame + sse.FRAME_END
        if data == sse.DONE.encode():
            return self._figures() + whole
        if _USAGE not in frame:
            return whole
        try:
            value = json_text.parse_object(data)
        except ValueError:
            return whole
        usage = value.get("usage")
        if not isinstance(usage, dict) or value.get("error"):
            return whole
        self._sum.add(usage)
        rest = {name: part for name, part in value.items() if name not in _OF_ONE}
        self._head = {**rest, "choices": []}
        return sse.frame_of(_encoded(rest)) if rest.get("choices") else b""

    def _figures(self) -> bytes:
        usage = self._sum.usage()
        if not self._shows_usage or usage is None:
            return b""
        return sse.frame_of(_encoded({**self._head, "usage": usage}))


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
