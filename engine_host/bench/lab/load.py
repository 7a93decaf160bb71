"""One request and its clock: a streamed chat answer of any server that speaks OpenAI's interface."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from engine_host.core.bounds.cut_text import cut_text
from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.core.sse import DONE, Reader, StreamError
from engine_host.protocol.errors import Fix, Reason

_PATH = "/v1/chat/completions"
_SILENT = 300.0
_LONGEST = 1800.0
_MOST_BYTES = 64 << 20
_MOST_TEXT = 1 << 20
_MOST_COUNT = 1 << 40
_CONNECT = 10.0
_SHOWN = 300


@dataclass
class Answered:
    """An answer as it came; seconds since it was asked for. `error` is empty where it came whole."""

    started: float
    total: float = 0.0
    arrivals: list[float] = field(default_factory=list)
    text: str = ""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    tokens: int | None = None
    finish: str = ""
    error: str = ""


def client_of(address: str, *, socket: str | None = None, key: str | None = None) -> httpx.AsyncClient:
    """Return a client of an engine by its socket, or of a server by its URL, with `/v1` or without.

    Raises HostError(bad_request) for an address that is no URL, or has a password in it.
    """
    headers = {"authorization": f"Bearer {key}"} if key else {}
    timeout = httpx.Timeout(_SILENT, connect=_CONNECT)
    # A connection of its own each: a kept one may be closed by the engine in the moment it is used again.
    limits = httpx.Limits(max_keepalive_connections=0)
    if socket is not None:
        transport = httpx.AsyncHTTPTransport(uds=socket, verify=False, trust_env=False, limits=limits)
        return httpx.AsyncClient(
            transport=transport, base_url="http://engine", headers=headers, timeout=timeout, trust_env=False
        )
    return httpx.AsyncClient(
        base_url=base_url(address), headers=headers, timeout=timeout, limits=limits, trust_env=False
    )


def base_url(address: str) -> str:
    """Return an address without `/v1`. Raises HostError(bad_request) for one that is no plain URL."""
    try:
        parts = urlsplit(address)
        known = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
        # httpx asks for more than the standard library does.
        httpx.URL(address)
    except (ValueError, httpx.InvalidURL):
        known = False
    if not known or parts.username or parts.password or parts.query or parts.fragment:
        raise HostError(
            Reason.BAD_REQUEST,
            "That is no address of a server.",
            cause="It is http://HOST:PORT or https://HOST, without a name, a password or a query.",
            fix=Fix(
                text="A key goes into the variable SNDR_API_KEY.",
                command="sndr bench run quick --url http://127.0.0.1:8020 --model ID",
            ),
        )
    return address.rstrip("/").removesuffix("/v1")


async def ask(
    client: httpx.AsyncClient,
    model: str,
    prompt: str,
    *,
    max_tokens: int,
    seed: int,
    sampling: Mapping[str, float],
) -> Answered:
    """Ask once and time the answer; a failure is told in it. Cancelled, it closes its connection at once."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "seed": seed,
        "stream": True,
        "stream_options": {"include_usage": True},
        **sampling,
    }
    answer = Answered(started=time.perf_counter())
    try:
        async with (
            asyncio.timeout(_LONGEST),
            client.stream("POST", _PATH, json=body, headers={"accept": "text/event-stream"}) as stream,
        ):
            if not stream.is_success:
                answer.error = f"it answered {stream.status_code}: {await _beginning(stream)}"
            else:
                await _read(stream, answer)
    except TimeoutError:
        answer.error = f"it took more than {_LONGEST:.0f} s"
    except (httpx.HTTPError, StreamError, ValueError) as error:
        answer.error = cut_text(str(error) or type(error).__name__, _SHOWN)
    answer.total = answer.total or time.perf_counter() - answer.started
    return answer


async def _beginning(stream: httpx.Response) -> str:
    said = b""
    async for part in stream.aiter_bytes():
        said += part
        if len(said) >= _SHOWN:
            break
    return said[:_SHOWN].decode("utf-8", "replace")


async def _read(stream: httpx.Response, answer: Answered) -> None:
    """Read to the end. Raises ValueError for what is no stream of chat answers, StreamError, HTTPError."""
    reader = Reader()
    texts: list[str] = []
    length = size = 0
    ended = False
    async for part in stream.aiter_bytes():
        # All that came in one piece came at one time.
        now = time.perf_counter() - answer.started
        size += len(part)
        if size > _MOST_BYTES:
            raise ValueError("the answer does not end")
        for message in reader.feed(part):
            if message.data == DONE:
                ended = True
            if ended or not message.data:
                continue
            said = json_text.parse_object(message.data)
            if said.get("error"):
                raise ValueError(f"it broke off: {said['error']}")
            _take_usage(said, answer)
            if text := _take_text(said, answer):
                answer.arrivals.append(now)
                if length < _MOST_TEXT:
                    texts.append(text)
                    length += len(text)
        # The end of an answer, and not that of its connection.
        answer.total = now
    answer.text = "".join(texts)
    if not ended and not answer.finish:
        raise ValueError("the answer was cut off")


def _take_text(said: dict[str, Any], answer: Answered) -> str:
    """Return the text that a part of the answer brings, thoughts included."""
    choices = said.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return ""
    if isinstance(finish := choice.get("finish_reason"), str):
        answer.finish = finish[:40]
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return ""
    # vLLM calls thoughts `reasoning`, others `reasoning_content`.
    found = [delta.get(name) for name in ("reasoning_content", "reasoning", "content")]
    return "".join(text for text in found if isinstance(text, str))


def _take_usage(said: dict[str, Any], answer: Answered) -> None:
    usage = said.get("usage")
    if isinstance(usage, dict):
        answer.prompt_tokens = _count(usage.get("prompt_tokens"), answer.prompt_tokens)
        answer.tokens = _count(usage.get("completion_tokens"), answer.tokens)
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict):
            answer.cached_tokens = _count(details.get("cached_tokens"), answer.cached_tokens)
    timings = said.get("timings")
    if isinstance(timings, dict):
        # llama.cpp's server tells its own cache so.
        answer.cached_tokens = _count(timings.get("cache_n"), answer.cached_tokens)


def _count(value: object, before: int | None) -> int | None:
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_COUNT
    return int(value) if known and isinstance(value, int) else before
