"""The client of the control API for programs with an event loop: the window."""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, overload

from engine_host.client import failures, other_version
from engine_host.client.exchange import (
    NOTHING,
    PAUSE,
    Sent,
    answer_of,
    event_of,
    query_of,
    request_of,
    request_of_action,
)
from engine_host.core import sse
from engine_host.core.errors import HostError
from engine_host.core.outside import answers
from engine_host.core.outside.host_clock import AGREES, HostClock
from engine_host.protocol.base import Command, Query, Version
from engine_host.protocol.errors import Action
from engine_host.protocol.events import Event, EventQuery
from engine_host.protocol.operations import table as ops
from engine_host.protocol.operations.definition import Answer, Asked, Nothing, Operation

_CONNECT = 5.0
_ANSWER = 10.0
# The host sends a heartbeat every ten seconds.
_SILENCE = 25.0
_CLOCK = 5.0
"""Seconds between two questions for the clock of a host, for events whose times are not of now."""


class AsyncControlClient:
    """One client of a host, over its local socket."""

    def __init__(
        self, socket: str, token: str, user_agent: str, program: str = "this program", host: str = ""
    ) -> None:
        """`program` is who asks, in words; `host` is the name of a host on another machine."""
        import httpx  # It costs a tenth of a second, and only who connects pays it.

        from engine_host.client.local_http import LocalTransport

        self._socket, self._program, self._host = socket, program, host
        self._told = ""
        self.clock = HostClock()
        self._asked_clock = -math.inf
        self._http = httpx.AsyncClient(
            transport=LocalTransport(socket),
            base_url="http://sndr",
            headers={"Authorization": f"Bearer {token}", "User-Agent": user_agent},
            trust_env=False,
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    @overload
    async def call(self, operation: Operation[Nothing, Answer], /, **path: str) -> Answer: ...

    @overload
    async def call(self, operation: Operation[Asked, Answer], asked: Asked, /, **path: str) -> Answer: ...

    async def call(
        self, operation: Operation[Any, Answer], asked: Command | Query = NOTHING, /, **path: str
    ) -> Answer:
        """Carry an operation out; `path` fills in the names of its path. Raises HostError."""
        content = await self._send(request_of(operation, asked, path, self.clock.ahead))
        return answer_of(operation, content, self.clock.ahead)

    async def version(self) -> Version:
        """Return the host's version. Raises HostError(protocol_mismatch) when it speaks another protocol."""
        version = failures.check_version(await self.call(ops.VERSION), self._program, self._host)
        self._told = version.program
        return version

    async def send(self, action: Action) -> None:
        """Send the request that mends a problem. Raises HostError."""
        await self._send(request_of_action(action))

    async def events(self, after: int, run: str) -> AsyncIterator[Event]:
        """The events after a number; a kind that this version does not know is left out.

        Raises HostError(host_gone) when the host is silent.
        """
        query = query_of(EventQuery(after=after, run=run))
        stream = self._stream("GET", ops.EVENTS.path, query=query, silence=_SILENCE)
        async with contextlib.aclosing(stream) as messages:  # type: ignore[type-var]
            async for message in messages:
                event = event_of(message.data, self.clock.ahead) if message.data else None
                if event is not None and event.at and await self._has_jumped(event.at):
                    event = event_of(message.data, self.clock.ahead)
                if event is not None:
                    yield event

    async def _has_jumped(self, at: float) -> bool:
        """Return True if the clock over there was set, for which it is asked where an event is not of now."""
        # One that is older than that is of before this stream.
        if not self._host or abs(time.time() - at) <= AGREES or time.monotonic() < self._asked_clock + _CLOCK:
            return False
        self._asked_clock = time.monotonic()
        before = self.clock.ahead
        await self.call(ops.VERSION)
        return self.clock.ahead != before

    async def chat(self, body: Mapping[str, Any]) -> AsyncIterator[sse.SseMessage]:
        """The raw messages of a streamed chat completion. Raises HostError."""
        stream = self._stream("POST", "/openai/v1/chat/completions", body=body)
        async with contextlib.aclosing(stream) as messages:  # type: ignore[type-var]
            async for message in messages:
                yield message

    async def _send(self, sent: Sent) -> bytes:
        import httpx

        timeout = httpx.Timeout(sent.seconds, connect=_CONNECT)
        for last in range(1, sent.tries + 1):
            self._check_open()
            began = time.time()
            try:
                async with self._http.stream(
                    sent.method,
                    sent.path,
                    params=dict(sent.query),
                    content=sent.content,
                    headers=sent.headers,
                    timeout=timeout,
                ) as response:
                    if self._host:
                        self.clock.hear(response.headers.get("date"), began, time.time())
                    content = await answers.read(response, failures.MOST)
            except httpx.RequestError as error:
                if last == sent.tries:
                    raise failures.of_transport(error, self._socket, self._host) from error
            except answers.AnswerError as error:
                raise failures.unreadable(error) from error
            else:
                if response.is_success:
                    return content
                raise await self._refusal(sent, content, response.status_code)
            await asyncio.sleep(PAUSE)
        raise AssertionError("unreachable")

    async def _refusal(self, sent: Sent, content: bytes, status: int) -> HostError:
        """Return what a refusal says; a host from before 0.3 is asked whether it serves the path at all."""
        error = failures.of_answer(content, status, self._host, self._told)
        if not other_version.is_open(error.problem, status, self._told):
            return error
        import httpx

        try:
            looked_up = await self._http.request(other_version.LOOK_UP, sent.path)
        except httpx.RequestError as failed:
            return failures.of_transport(failed, self._socket, self._host)
        return (
            other_version.unknown_there(error.problem, self._host) if looked_up.status_code == 404 else error
        )

    async def _stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        silence: float | None = None,
    ) -> AsyncIterator[sse.SseMessage]:
        import httpx

        timeout = httpx.Timeout(_ANSWER, connect=_CONNECT, read=silence)
        self._check_open()
        try:
            async with self._http.stream(method, path, params=query, json=body, timeout=timeout) as response:
                if not response.is_success:
                    content = await answers.read(response, failures.MOST)
                    raise failures.of_answer(content, response.status_code, self._host, self._told)
                answers.check_plain(response)
                pieces = sse.async_messages(response.aiter_bytes())
                async with contextlib.aclosing(pieces) as messages:  # type: ignore[type-var]
                    async for message in messages:
                        yield message
        except httpx.RequestError as error:
            raise failures.of_transport(error, self._socket, self._host) from error
        except (answers.AnswerError, sse.StreamError) as error:
            raise failures.unreadable(error) from error

    def _check_open(self) -> None:
        # A client that lost its host is closed, also between two tries of what is under way.
        if self._http.is_closed:
            raise failures.gone(host=self._host)
