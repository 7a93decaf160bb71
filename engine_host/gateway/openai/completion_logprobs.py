"""Log probabilities in the form of OpenAI's completions, from an engine that writes those of its chats.

llama.cpp answers `/v1/completions` with `{"content": [{"token", "logprob", "top_logprobs": […]}]}`, where
clients of completions read `tokens`, `token_logprobs`, `top_logprobs` and `text_offset`.
"""

import json
from collections import defaultdict
from typing import Any

from engine_host.gateway.openai.frames import WholeFrames


class CompletionLogprobs:
    """Brings one answer, whole or streamed, into that form; `top` is how many were asked for.

    `text_offset` counts from the start of the answer, in characters.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        self._frames = WholeFrames()
        self._lengths: dict[int, int] = defaultdict(int)

    def convert(self, body: bytes) -> bytes:
        """An answer that was not streamed."""
        return json.dumps(self._converted(json.loads(body)), ensure_ascii=False).encode()

    def feed(self, data: bytes) -> bytes:
        """The whole frames in what has come of a stream so far."""
        frames = self._frames.feed(data).split(b"\n\n")[:-1]
        return b"".join(self._frame(frame) + b"\n\n" for frame in frames)

    def end(self) -> bytes:
        """Return the bytes after the last whole frame."""
        return self._frames.end()

    def _frame(self, frame: bytes) -> bytes:
        if b'"logprobs"' not in frame or not frame.startswith(b"data:"):
            return frame
        return b"data: " + json.dumps(self._converted(json.loads(frame[5:])), ensure_ascii=False).encode()

    def _converted(self, answer: dict[str, Any]) -> dict[str, Any]:
        for choice in answer.get("choices") or ():
            logprobs = choice.get("logprobs")
            if isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list):
                choice["logprobs"] = self._form(choice.get("index", 0), logprobs["content"])
        return answer

    def _form(self, index: int, tokens: list[dict[str, Any]]) -> dict[str, Any]:
        offsets = []
        for one in tokens:
            offsets.append(self._lengths[index])
            self._lengths[index] += len(one["token"])
        return {
            "tokens": [one["token"] for one in tokens],
            "token_logprobs": [one["logprob"] for one in tokens],
            "top_logprobs": [self._best(one) for one in tokens],
            "text_offset": offsets,
        }

    def _best(self, token: dict[str, Any]) -> dict[str, float]:
        """The likeliest tokens, and the one that was chosen wherever it stands."""
        best = {one["token"]: one["logprob"] for one in (token.get("top_logprobs") or [])[: self._top]}
        return {**best, token["token"]: token["logprob"]}
