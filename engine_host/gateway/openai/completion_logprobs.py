"""Log probabilities in the form of OpenAI's completions, from an engine that writes those of its chats.

llama.cpp answers `/v1/completions` with `{"content": [{"token", "logprob", "top_logprobs": […]}]}`, where
clients of completions read `tokens`, `token_logprobs`, `top_logprobs` and `text_offset`.
"""

import json
from collections import defaultdict
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.openai.frames import WholeFrames
from engine_host.gateway.passage import Passage


class CompletionLogprobs(Passage):
    """Brings one answer, whole or streamed, into that form; `top` is how many were asked for.

    `text_offset` counts from the start of the answer, in characters.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        self._frames = WholeFrames()
        self._lengths: dict[int, int] = defaultdict(int)

    def convert(self, body: bytes) -> bytes:
        """An answer that was not streamed."""
        return self._converted(body)

    def feed(self, data: bytes) -> bytes:
        """The whole frames in what has come of a stream so far."""
        return sse.join(self._frame(frame) for frame in sse.split(self._frames.feed(data)))

    def end(self) -> bytes:
        """Return the bytes after the last whole frame."""
        return self._frames.end()

    def _frame(self, frame: bytes) -> bytes:
        data = sse.data_of(frame) if b'"logprobs"' in frame else b""
        return sse.with_data(frame, self._converted(data)) if data else frame

    def _converted(self, content: bytes) -> bytes:
        """The same answer with its log probabilities in that form. Raises EndpointError(502)."""
        try:
            answer = json_text.parse_object(content)
            for choice in answer.get("choices") or ():
                logprobs = choice.get("logprobs")
                if isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list):
                    choice["logprobs"] = self._form(choice.get("index", 0), logprobs["content"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # Of an engine that writes another form than the one that this is for.
            raise faults.odd_answer() from error
        return json.dumps(answer, ensure_ascii=False).encode()

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
