"""One request and its clock: a streamed chat answer of any server that speaks OpenAI's interface."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from engine_host.core.bounds.cut_text import cut_text
from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.core.sse import DONE, Reader, StreamError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.launch.plans import EngineKind

_PATH = "/v1/chat/completions"
_LONGEST = 1800.0
_MOST_BYTES = 64 << 20
_MOST_TEXT = 1 << 20
_MOST_COUNT = 1 << 40
_MOST_CALLS = 64
_CONNECT = 10.0
_SHOWN = 300


Message = Mapping[str, Any]
"""A message of a chat, as OpenAI's interface has it."""


def beside(engine: str) -> Mapping[str, Any]:
    """Return the fields that a kind of engine is asked with, so that it ends with the connection.

    llama.cpp sees that a client has gone as it writes: it reads a prompt to its end for nobody, for minutes,
    unless it is to tell how far it has come.
    """
    return {"return_progress": True} if engine == EngineKind.LLAMA_CPP else {}


@dataclass
class Called:
    """A call of a tool as it came: nobody has checked the arguments."""

    name: str = ""
    arguments: str = ""


@dataclass
class Answered:
    """An answer as it came; seconds since it was asked for. `error` is empty where it came whole.

    `text` is all of it in the order it came, thoughts included; `thought` and `said` are its two sides.
    """

    started: float
    total: float = 0.0
    arrivals: list[float] = field(default_factory=list)
    text: str = ""
    thought: str = ""
    said: str = ""
    calls: list[Called] = field(default_factory=list)
    status: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    tokens: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    decoding: float | None = None
    finish: str = ""
    error: str = ""


def client_of(address: str, *, socket: str | None = None, key: str | None = None) -> httpx.AsyncClient:
    """Return a client of an engine by its socket, or of a server by its URL, with `/v1` or without.

    Raises HostError(bad_request) for an address that is no URL, or has a password in it.
    """
    headers = {"authorization": f"Bearer {key}"} if key else {}
    # A prompt of 90,000 tokens is read for minutes, and of an answer nothing comes before its end.
    timeout = httpx.Timeout(_LONGEST, connect=_CONNECT)
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
    messages: Sequence[Message],
    *,
    max_tokens: int,
    seed: int,
    sampling: Mapping[str, float],
    more: Mapping[str, Any] | None = None,
    streamed: bool = True,
    read: Callable[[float], None] | None = None,
    due: float | None = None,
) -> Answered:
    """Ask once and time the answer; a failure is told in it. Cancelled, it closes its connection at once.

    Seconds count from the moment that it was `due`, where it had to wait with us. `more` are fields of the
    request beside these, such as tools; `read` hears of the share of the prompt that a server tells to have
    read.
    """
    body = {
        "model": model,
        "messages": [dict(message) for message in messages],
        "max_tokens": max_tokens,
        "seed": seed,
        **({"stream": True, "stream_options": {"include_usage": True}} if streamed else {}),
        **sampling,
        **(more or {}),
    }
    answer = Answered(started=time.perf_counter() if due is None else due)
    accept = {"accept": "text/event-stream"} if streamed else {}
    try:
        async with (
            asyncio.timeout(_LONGEST),
            client.stream("POST", _PATH, json=body, headers=accept) as stream,
        ):
            answer.status = stream.status_code
            if not stream.is_success:
                answer.error = f"it answered {stream.status_code}: {await _beginning(stream)}"
            elif streamed:
                await _read(stream, answer, read)
            else:
                await _read_whole(stream, answer)
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


async def _read(stream: httpx.Response, answer: Answered, read: Callable[[float], None] | None) -> None:
    """Read to the end. Raises ValueError for what is no stream of chat answers, StreamError, HTTPError."""
    reader = Reader()
    taken = _Taken(answer)
    size = 0
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
            if read is not None and (share := _share_read(said)) is not None:
                read(share)
            if taken.take(said, "delta"):
                answer.arrivals.append(now)
        # The end of an answer, and not that of its connection.
        answer.total = now
    taken.finish()
    if not ended and not answer.finish:
        raise ValueError("the answer was cut off")


def _share_read(said: Mapping[str, Any]) -> float | None:
    """Return the share of the prompt that llama.cpp has read; None in what tells nothing of it."""
    told = said.get("prompt_progress")
    whole, done = (told.get("total"), told.get("processed")) if isinstance(told, dict) else (None, None)
    if not isinstance(whole, int | float) or not isinstance(done, int | float) or not 0 <= done <= whole:
        return None
    return done / whole if whole else None


async def _read_whole(stream: httpx.Response, answer: Answered) -> None:
    """Read an answer that is not streamed. Raises ValueError for what is none, HTTPError."""
    content = b""
    async for part in stream.aiter_bytes():
        content += part
        if len(content) > _MOST_BYTES:
            raise ValueError("the answer does not end")
    said = json_text.parse_object(content)
    _take_usage(said, answer)
    taken = _Taken(answer)
    if not taken.take(said, "message") and not answer.finish:
        raise ValueError("it is no answer of a chat")
    taken.finish()


class _Taken:
    """The texts and calls of one answer, put together from what comes; each has an end."""

    def __init__(self, answer: Answered) -> None:
        self._answer = answer
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._said: list[str] = []
        self._arguments: dict[int, list[str]] = {}
        self._length = 0

    def take(self, said: Mapping[str, Any], name: str) -> bool:
        """Take what a part of the answer brings, thoughts and calls included; True where it brings any."""
        choices = said.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return False
        if isinstance(finish := choice.get("finish_reason"), str):
            self._answer.finish = finish[:40]
        brought = choice.get(name)
        if not isinstance(brought, dict):
            return False
        some = self._calls(brought.get("tool_calls"))
        # vLLM calls thoughts `reasoning`, others `reasoning_content`.
        for field_name, side in (
            ("reasoning_content", self._thoughts),
            ("reasoning", self._thoughts),
            ("content", self._said),
        ):
            text = brought.get(field_name)
            if isinstance(text, str) and text:
                some = True
                if self._fits(text):
                    side.append(text)
                    self._texts.append(text)
        return some

    def finish(self) -> None:
        """Put together what came in parts."""
        answer = self._answer
        answer.text = "".join(self._texts)
        answer.thought, answer.said = "".join(self._thoughts), "".join(self._said)
        for place, parts in self._arguments.items():
            answer.calls[place].arguments = "".join(parts)

    def _fits(self, text: str) -> bool:
        self._length += len(text)
        return self._length - len(text) < _MOST_TEXT

    def _calls(self, calls: object) -> bool:
        some = False
        for place, call in enumerate(calls if isinstance(calls, list) else ()):
            if not isinstance(call, dict):
                continue
            index = call.get("index", place)
            if not isinstance(index, int) or not 0 <= index < _MOST_CALLS:
                continue
            while len(self._answer.calls) <= index:
                self._answer.calls.append(Called())
            asked = call.get("function")
            asked = asked if isinstance(asked, dict) else {}
            if isinstance(name := asked.get("name"), str) and name:
                self._answer.calls[index].name += name[:200]
                some = True
            if isinstance(text := asked.get("arguments"), str) and text and self._fits(text):
                self._arguments.setdefault(index, []).append(text)
                some = True
        return some


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
        answer.drafted = _count(timings.get("draft_n"), answer.drafted)
        answer.accepted = _count(timings.get("draft_n_accepted"), answer.accepted)
        answer.decoding = _seconds(timings.get("predicted_ms"), answer.decoding)


def _seconds(milliseconds: object, before: float | None) -> float | None:
    if isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool):
        return milliseconds / 1000 if 0 < milliseconds <= _MOST_COUNT else before
    return before


def _count(value: object, before: int | None) -> int | None:
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_COUNT
    return int(value) if known and isinstance(value, int) else before
