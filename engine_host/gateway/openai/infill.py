"""Fill-in-the-middle: OpenAI's completion with `suffix`, for engines that do not understand it.

llama.cpp's `/v1/completions` ignores `suffix` without a word, so a client would get a plain continuation and
take it for a middle. It is asked for a completion whose prompt holds the numbers of the model's own tokens,
where its file names them. Its `/infill` builds that prompt by itself, but leaves out log probabilities, cuts
both ends to a batch, and is not computed while any other answer is; it is asked where the tokens are not
known, or a text looks like them, and answers in llama.cpp's form, which this module turns into OpenAI's.
vLLM refuses `suffix`: its prompt is put together here.
"""

import json
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.meter import Figures, figures_of
from engine_host.gateway.openai.frames import WholeFrames

_DROPPED = {"suffix", "prompt", "model", "stream_options", "best_of", "echo", "n", "user", "logprobs"}
# Bytes of prefix and suffix that are surely no more tokens than `/infill` keeps of each: three quarters and
# one quarter of its batch, 2,048 tokens unless it is told otherwise.
_KEPT = (1_500, 500)
_MARKS = ("<|", "<fim", "<s>", "</s>")
_FINISH = {"eos": "stop", "word": "stop", "limit": "length"}


def wants_infill(body: dict[str, Any]) -> bool:
    """Return True if a completion request asks for the middle: an empty suffix is an ordinary completion."""
    return bool(body.get("suffix"))


def prompt_with_tokens(body: dict[str, Any], tokens: tuple[str, str, str]) -> dict[str, Any]:
    """The plain completion for one with a suffix: its prompt holds the model's tokens around both ends.

    Raises EndpointError for what cannot be carried.
    """
    before, after, middle = tokens
    prompt = _one_text(body)
    if any(token in text for token in tokens for text in (prompt, str(body["suffix"]))):
        # The engine would take the text's own token for ours, and fill another gap.
        raise faults.invalid(f"With suffix, no text may hold {before}, {after} or {middle}.", param="prompt")
    rest = {name: value for name, value in body.items() if name != "suffix"}
    return {**rest, "prompt": f"{before}{prompt}{after}{body['suffix']}{middle}"}


def takes_numbers(body: dict[str, Any]) -> bool:
    """Return True for a completion with a suffix that is to be asked for by the numbers of its tokens.

    Of a text with marks like a model's own `/infill` alone takes them for text; it is left to that where
    it would not be cut, and is answered as asked.
    """
    texts = (_one_text(body), str(body["suffix"]))
    if not any(mark in text for mark in _MARKS for text in texts):
        return True
    is_long = any(len(text.encode()) > most for text, most in zip(texts, _KEPT, strict=True))
    return is_long or body.get("logprobs") is not None or body.get("n") not in (None, 1)


def prompt_with_numbers(body: dict[str, Any], ids: tuple[int, ...]) -> dict[str, Any]:
    """The plain completion of llama.cpp for one with a suffix: it takes texts and numbers of tokens in turn.

    Raises EndpointError for what cannot be carried.
    """
    *before, prefix, suffix, middle = ids
    prompt = [*before, prefix, _one_text(body), suffix, body["suffix"], middle]
    return {name: value for name, value in body.items() if name != "suffix"} | {"prompt": prompt}


def _one_text(body: dict[str, Any]) -> str:
    """The prompt. Raises EndpointError for several, for numbers, and for what goes with no suffix."""
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise faults.invalid("With suffix, prompt must be one text.", param="prompt")
    if body.get("echo"):
        raise faults.invalid("echo cannot be combined with suffix.", param="echo")
    return prompt


def infill_request(body: dict[str, Any]) -> bytes:
    """The `/infill` request for a completion with a suffix; raises EndpointError for what it cannot carry."""
    prompt = _one_text(body)
    if body.get("n") not in (None, 1):
        raise faults.invalid("n must be 1 with suffix.", param="n")
    request = {name: value for name, value in body.items() if name not in _DROPPED and value is not None}
    # The native route drops a stop given as a plain text.
    if isinstance(request.get("stop"), str):
        request["stop"] = [request["stop"]]
    if "max_tokens" in request:
        request["n_predict"] = request.pop("max_tokens")
    request |= {"input_prefix": prompt, "input_suffix": body["suffix"], "prompt": ""}
    return _json(request)


class InfillAnswer:
    """Turns one answer of `/infill`, streamed or whole, into OpenAI's completion."""

    def __init__(self, request_id: str, model: str, created: int, *, include_usage: bool = False) -> None:
        self._base = {
            "id": f"cmpl-{request_id}",
            "object": "text_completion",
            "created": created,
            "model": model,
        }
        self._include_usage = include_usage
        self._lines = WholeFrames(b"\n")
        self._last: dict[str, Any] = {}
        self._error: str | None = None
        self.content_seen = False

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """The frames for these bytes of the engine's stream, and whether they hold the first content."""
        frames = [self._frame(payload) for payload in sse.payloads(self._lines.feed(data))]
        first = not self.content_seen and any(seen for _, seen in frames)
        self.content_seen = self.content_seen or first
        return b"".join(frame for frame, _ in frames), first

    def end(self) -> bytes:
        """Return the frame that closes the stream: `[DONE]`, which `/infill` does not send."""
        return sse.frame_of(sse.DONE.encode())

    def figures(self) -> Figures:
        """The figures of the end of the answer."""
        found: dict[str, Any] = {"error": self._error}
        if self._last:
            found |= {
                "usage": _usage(self._last),
                "timings": self._last.get("timings") or {},
                "finish": _finish(self._last),
            }
        return figures_of(found)

    def convert(self, body: bytes) -> bytes:
        """The OpenAI answer for a whole answer of `/infill`."""
        value = _object(body)
        self._last = value
        choice = {
            "text": _text(value),
            "index": 0,
            "logprobs": None,
            "finish_reason": _finish(value),
        }
        answer = {**self._base, "choices": [choice], "usage": _usage(value)}
        if isinstance(value.get("timings"), dict):
            answer["timings"] = value["timings"]
        return _json(answer)

    def _frame(self, payload: bytes) -> tuple[bytes, bool]:
        if payload == sse.DONE.encode():
            return b"", False
        value = _object(payload)
        if value.get("error"):
            fault = faults.engine_fault(500, payload)
            self._error = fault.message
            return fault.frame(), False
        text = _text(value)
        frames = b""
        if text:
            frames += self._choice(text, None)
        if value.get("stop"):
            self._last = value
            extra = {"timings": value["timings"]} if isinstance(value.get("timings"), dict) else {}
            usage = {"choices": [], "usage": _usage(value), **extra}
            frames += self._choice("", _finish(value), {} if self._include_usage else extra)
            if self._include_usage:
                frames += sse.frame_of(_json({**self._base, **usage}))
        return frames, bool(text)

    def _choice(self, text: str, finish: str | None, extra: dict[str, Any] | None = None) -> bytes:
        choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": finish}
        return sse.frame_of(_json({**self._base, "choices": [choice], **(extra or {})}))


def _finish(value: dict[str, Any]) -> str:
    return _FINISH.get(str(value.get("stop_type")), "stop")


def _usage(value: dict[str, Any]) -> dict[str, Any]:
    """`usage` from the native counters; `timings.cache_n` is what was reused, `tokens_cached` is not."""
    prompt, generated = _count(value.get("tokens_evaluated")), _count(value.get("tokens_predicted"))
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": generated,
        "total_tokens": prompt + generated,
    }
    timings = value.get("timings")
    cached = timings.get("cache_n") if isinstance(timings, dict) else None
    if isinstance(cached, int):
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    return usage


def _object(content: bytes) -> dict[str, Any]:
    """The object that the engine wrote. Raises EndpointError(502) for everything else."""
    try:
        return json_text.parse_object(content)
    except ValueError as error:
        raise faults.odd_answer() from error


def _text(value: dict[str, Any]) -> str:
    content = value.get("content")
    return content if isinstance(content, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
