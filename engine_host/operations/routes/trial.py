"""The requests with which a target is tried before a route leads to it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import ASGIApp

from engine_host.core.outside import json_text
from engine_host.gateway.directory import Target
from engine_host.gateway.upstream import UpstreamLostError, fetch
from engine_host.operations.routes.requests import Answer, post
from engine_host.protocol.endpoint.routes import RouteCheck
from engine_host.protocol.language import tr

_CHAT, _EMBEDDINGS, _RERANK = "/v1/chat/completions", "/v1/embeddings", "/v1/rerank"
_WORDS = "The quick brown fox jumps over the lazy dog. "
_MOST_TOKENS = 8192
"""Tokens of the long prompt, at most half of the context: a slow machine reads them in a minute."""
_AT_ONCE = 3
_ANSWER = 16
_MOST_COUNTED = 1 << 40
_NONE = {404, 405, 501}
_PATIENCE = 900.0
"""Seconds for one check; the slowest, a prompt of half the context, takes minutes on a slow machine."""
_NEEDS_TOOL = "What is the weather in Berlin?"
_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tell the weather of a place.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
        },
    },
}

Check = Callable[[], Awaitable[str]]


class CheckFailedError(Exception):
    """A request was not answered as it has to be; its message says in what way."""


class Trial:
    """Tries one target, which requests reach by the id `name`; each check says what it saw."""

    def __init__(self, app: ASGIApp, target: Target, name: str) -> None:
        self._app = app
        self._target = target
        self._name = name

    def checks(self) -> list[tuple[str, Check]]:
        """Return the checks for what the target can do, in their order."""
        target = self._target
        found: list[tuple[str, Check]] = [("models", self._models)]
        if target.embeddings:
            found.append(("embeddings", self._embed))
        elif target.reranking:
            found.append(("rerank", self._rerank))
        elif target.tokens_only:
            found.append(("completion", self._complete))
        else:
            found += [("chat", self._chat), ("stream", self._stream)]
            found += [("tool call", self._tool_call)] if target.tools else []
            found.append(("long prompt", self._long))
        return [*found, ("three at once", self._at_once)]

    async def _models(self) -> str:
        """It lists the model by its own name."""
        try:
            status, body = await fetch(self._target, "GET", "/v1/models")
        except UpstreamLostError as error:
            raise CheckFailedError(f"no connection: {error}") from error
        if self._target.provider is not None and status in _NONE:
            return "it has no list of models"
        try:
            entries = json_text.parse_object(body)["data"]
            names = [str(entry["id"]) for entry in entries]
        except (ValueError, KeyError, TypeError) as error:
            raise CheckFailedError(f"status {status}, and no list of models") from error
        if self._target.engine_name not in names:
            listed = ", ".join(names[:5])[:200] or "none"
            raise CheckFailedError(f"it does not list {self._target.engine_name}; it lists {listed}")
        return f"{self._target.engine_name} is listed"

    async def _chat(self) -> str:
        """It answers a chat."""
        return _said(await self._ask(_CHAT, _hello()))

    async def _stream(self) -> str:
        """It streams one to its end."""
        answer = await self._ask(_CHAT, {**_hello(), "stream": True})
        if not answer.is_whole_stream:
            raise CheckFailedError("the stream broke off before its end")
        found = (_at(frame, "choices", 0, "delta") for frame in answer.frames)
        deltas = [delta for delta in found if isinstance(delta, dict) and delta]
        if not deltas:
            raise CheckFailedError("the stream carried nothing")
        return f"{len(deltas)} pieces"

    async def _tool_call(self) -> str:
        """It calls a tool that it has to call."""
        body = {**_hello(_NEEDS_TOOL), "tools": [_TOOL], "tool_choice": "required", "max_tokens": 256}
        answer = await self._ask(_CHAT, body)
        call = _at(answer.value, "choices", 0, "message", "tool_calls", 0, "function")
        name, given = _at(call, "name"), _at(call, "arguments") or "{}"
        try:
            if not isinstance(name, str) or not isinstance(given, str):
                raise ValueError("it is no call")
            json_text.parse_object(given)
        except ValueError as error:
            raise CheckFailedError("it called no tool, or not in JSON") from error
        return f"it called {name[:200]}"

    async def _long(self) -> str:
        """It reads a prompt of half its context."""
        first = await self._ask(_CHAT, _hello(_WORDS * 4))
        few = _tokens(first, "prompt_tokens")
        wanted = min(_MOST_TOKENS, self._target.context // 2)
        # The template's own tokens are in the count too, so the prompt comes out shorter and never longer.
        times = max(4, 4 * wanted // few) if few else max(4, wanted // len(_WORDS))
        answer = await self._ask(_CHAT, _hello(_WORDS * times))
        tokens = _tokens(answer, "prompt_tokens")
        return f"{tokens:,} tokens read" if tokens else f"{times * len(_WORDS):,} characters read"

    async def _complete(self) -> str:
        """It goes on from token numbers."""
        body = {"prompt": [1, 2, 3], "max_tokens": _ANSWER}
        await self._ask("/v1/completions", body)
        return "a completion of token numbers"

    async def _embed(self) -> str:
        """It makes a vector."""
        answer = await self._ask(_EMBEDDINGS, {"input": "Hello"})
        vector = _at(answer.value, "data", 0, "embedding")
        if not isinstance(vector, list) or not vector:
            raise CheckFailedError("the answer holds no vector")
        return f"a vector of {len(vector)}"

    async def _rerank(self) -> str:
        """It scores texts."""
        answer = await self._ask(_RERANK, {"query": "Hello", "documents": ["Hello", "Goodbye"]})
        if _at(answer.value, "results", 0) is None:
            raise CheckFailedError("the answer holds no score")
        return "two texts scored"

    async def _at_once(self) -> str:
        """It answers three requests that come at the same time."""
        again = self.checks()[1][1]
        ended = await asyncio.gather(*(again() for _ in range(_AT_ONCE)), return_exceptions=True)
        for one in ended:
            if isinstance(one, BaseException):
                raise one
        return f"{_AT_ONCE} answered"

    async def _ask(self, path: str, body: dict[str, Any]) -> Answer:
        answer = await post(self._app, path, {"model": self._name, **body})
        if told := answer.error():
            raise CheckFailedError(told)
        return answer


async def carry_out(target: str, name: str, check: Check) -> RouteCheck:
    """Carry out one check of a target; a failure is its result."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(_PATIENCE):
            passed, detail = True, await check()
    except CheckFailedError as error:
        passed, detail = False, str(error)
    except TimeoutError:
        passed, detail = False, tr("no whole answer within {patience:.0f} seconds", patience=_PATIENCE)
    seconds = time.monotonic() - began
    return RouteCheck(target=target, name=name, passed=passed, detail=detail, seconds=seconds)


def _hello(text: str = "Say hello.") -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": _ANSWER}


def _said(answer: Answer) -> str:
    message = _at(answer.value, "choices", 0, "message")
    if not isinstance(message, dict):
        raise CheckFailedError("the answer holds no message")
    if not any(message.get(part) for part in ("content", "reasoning_content", "reasoning")):
        raise CheckFailedError("the answer is empty")
    count = _tokens(answer, "completion_tokens")
    return f"{count} tokens written" if count else "a text written"


def _tokens(answer: Answer, kind: str) -> int:
    """Return a count of an answer; 0 for none, and for one that nobody can have counted."""
    count = _at(answer.value, "usage", kind)
    return count if isinstance(count, int) and 0 < count < _MOST_COUNTED else 0


def _at(value: object, *path: str | int) -> object:
    """Return what stands there in an answer, None where it has another shape."""
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return None
    return value
