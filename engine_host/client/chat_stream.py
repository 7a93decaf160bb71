"""One streamed question to an OpenAI endpoint, timed as its client sees it."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from engine_host.client import chat_chunk, failures
from engine_host.client.sync import chunks
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import ended_host
from engine_host.core.outside import answers
from engine_host.core.rates import decode_rate
from engine_host.core.sizes import duration
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

_ANSWER = 300.0


@dataclass
class Answer:
    """An answer that came back; times in seconds, None where it was not measured."""

    text: str = ""
    reasoning: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    finish: str | None = None
    prompt_tokens: int | None = None
    generated_tokens: int | None = None
    ttft: float | None = None
    decode_rate: float | None = None
    rate_of_client: bool = False
    """The rate is by the clock of whoever asked: the engine told none."""
    interrupted: bool = False

    def speed(self) -> str:
        """TTFT, tokens and rate in one line."""
        parts = [
            f"TTFT {duration(self.ttft)} (client)" if self.ttft is not None else "",
            f"{self.generated_tokens} tokens" if self.generated_tokens is not None else "",
            ""
            if self.decode_rate is None
            else f"{self.decode_rate:.1f} tok/s{' (client)' if self.rate_of_client else ''}",
        ]
        return " · ".join(part for part in parts if part)

    def as_json(self) -> dict[str, Any]:
        """The answer as a JSON object."""
        return dict(vars(self))


def collect(stream: Iterable[dict[str, Any]], show: Callable[[str], None] | None, began: float) -> Answer:
    """Put a streamed answer together, showing its text as it comes; Ctrl+C ends it and keeps what came."""
    answer = Answer()
    first = last = None
    told = False
    try:
        for chunk in stream:
            counted = chat_chunk.counts(chunk)
            if counted.timed:
                # The engine's own clock: ours would measure how its text was bundled on the way.
                answer.decode_rate, told = counted.rate, True
            if chunk.get("usage"):
                answer.prompt_tokens = counted.prompt_tokens
                answer.generated_tokens = counted.generated_tokens
            for delta in chat_chunk.deltas(chunk):
                if delta.text or delta.reasoning or delta.calls:
                    last = time.monotonic()
                    first = first or last
                answer.text += delta.text
                answer.reasoning += delta.reasoning
                answer.tool_calls.extend(map(dict, delta.calls))
                answer.finish = delta.finish or answer.finish
                if delta.text and show is not None:
                    show(delta.text)
            if len(answer.text) + len(answer.reasoning) > chat_chunk.MOST_TEXT:
                raise chat_chunk.too_long()
    except KeyboardInterrupt:
        answer.interrupted = True
    if first is not None and last is not None:
        answer.ttft = first - began
        # vLLM tells no rate: then it is the rate at which the text came here.
        if not told:
            answer.rate_of_client = True
            answer.decode_rate = decode_rate(answer.generated_tokens, last - first)
    return answer


def ask(
    url: str,
    model: str,
    text: str,
    show: Callable[[str], None] | None = None,
    max_tokens: int | None = None,
    key: str | None = None,
) -> Answer:
    """Ask the public endpoint at `url` one question, over the network as any client would, with an API key.

    Raises HostError.
    """
    import httpx

    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if max_tokens is not None:
        body["max_tokens"] = max_tokens
    headers = [(b"accept-encoding", b"identity")]
    if key is not None:
        headers.append((b"x-api-key", key.encode()))
    began = time.monotonic()
    try:
        with (
            httpx.Client(timeout=httpx.Timeout(10, read=_ANSWER), trust_env=False, verify=False) as http,
            http.stream(
                "POST", f"{url.rstrip('/')}/chat/completions", json=body, headers=headers
            ) as response,
        ):
            if not response.is_success:
                raise failures.of_answer(answers.read_now(response, failures.MOST), response.status_code)
            answers.check_plain(response)
            return collect(_checked(chunks(response.iter_bytes())), show, began)
    except answers.AnswerError as error:
        raise failures.unreadable(error) from error
    except httpx.TransportError as error:
        raise HostError(
            Reason.HOST_GONE,
            tr("The endpoint {url} broke off: {error}.", url=url, error=error),
            cause=ended_host(),
            fix=Fix(text="See what the host says.", command="sndr logs host"),
        ) from error


def _checked(stream: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The chunks; an answer without a single one is an error."""
    empty = True
    for chunk in stream:
        empty = False
        yield chunk
    if empty:
        raise HostError(
            Reason.INTERNAL,
            "The endpoint answered nothing.",
            cause="The engine ended, or was stopped, before its first word.",
            fix=Fix(text="See what the host says.", command="sndr logs host"),
        )
