"""One HTTP/1.1 exchange with an engine, over a Unix socket or TCP, cheap enough for every token.

The engine shares its CPU cores with this process, so every microsecond spent on a token is taken from
decoding. A general client spends several hundred on each chunk of a stream; this one spends about ten: the
socket's bytes go through httptools' parser and on, with no buffering layer, task or timer in between.
"""

import asyncio
import contextlib
import functools
import secrets
import socket
import ssl
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httptools

from engine_host import __version__
from engine_host.gateway.directory import Target
from engine_host.gateway.kept_connections import KeptConnections
from engine_host.gateway.routing.key_filter import KeyFilter, key_filter

_AGENT = f"User-Agent: sndr/{__version__}"
PSEUDONYM = f"sndr-{secrets.token_hex(8)}"
"""This process in the Via header of what it passes on (RFC 9110, 7.6.3): it knows its own requests again."""
_HIGH_WATER = 1 << 20
"""Bytes that wait for a slow client before reading from the engine pauses."""

_PATIENCE = 15.0
"""Seconds for a connection to another machine; an engine on this one answers at once."""

_LONGEST_SILENCE = 600.0
"""Seconds without a byte from a provider, after which it is given up: the SDKs of OpenAI and Anthropic wait
as long. An engine on this machine may compute for longer, and its death is seen at once."""

_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""A connection that a router or a VPN has forgotten is noticed within a minute; each platform has some."""

_STALE_SECONDS = 2.0
"""A kept connection that ends within this time without a word was ended by the other side while it waited.

The request is then sent once more, on a new connection; one that was worked on for longer is not repeated.
"""

_MOST_HEADERS = 64 << 10
_MOST_HEADER_LINES = 200
"""Bytes and lines of an answer's headers; engines send some ten."""


class UpstreamLostError(Exception):
    """The engine's connection ended before its answer was complete, or could not be made."""


class AnswerTooLargeError(UpstreamLostError):
    """The engine's answer is larger than what is held of one, in bytes; the engine itself is well."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the answer is larger than {limit} bytes")
        self.limit = limit


@functools.cache
def _trust() -> ssl.SSLContext:
    """The certificates that this machine trusts; read once, which takes some milliseconds."""
    return ssl.create_default_context()


class Upstream(asyncio.Protocol):
    """One request to an engine; use as an async context manager, which ends the connection.

    Ending it early is what aborts the engine's work: llama.cpp's server looks at the connection between two
    tokens.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.complete = False
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._chunks: list[bytes] = []
        self._held = 0
        self._header_bytes = 0
        self._paused = False
        self._resume_timer: asyncio.TimerHandle | None = None
        self._headers_done = False
        self._lost = False
        self._waiter: asyncio.Future[None] | None = None
        self._key: KeyFilter | None = None
        self._heard = 0.0
        self._listener: asyncio.TimerHandle | None = None
        self.silent = False
        """True if a provider was given up because nothing came from it."""
        self._connect: Callable[[], Awaitable[None]] | None = None
        self._request = b""
        self._repeatable_until: float | None = None
        self._kept: KeptConnections | None = None
        self._where = ""
        self._stays_open = False
        self.on_complete: Callable[[], None] = lambda: None
        """Called once, when the engine has sent all of its answer, whoever has read it."""

    @classmethod
    async def open(
        cls,
        target: Target,
        method: str,
        path: str,
        body: bytes = b"",
        kept: KeptConnections | None = None,
    ) -> Self:
        """Send one request, on a connection to another machine that waits in `kept` or on a new one.

        Raises UpstreamLostError when the engine takes no connection.
        """
        self = cls()
        host = "engine"
        if target.url is not None:
            parts = urlsplit(target.url)
            host = parts.netloc
            if target.provider is not None:
                # SDKs, and so providers' documents, count it to the base URL.
                path = path.removeprefix("/v1")
            path = parts.path.rstrip("/") + path
        # Engines of this machine are a system call away, and notice by the connection's end that it is over.
        if kept is not None and target.provider is not None:
            self._kept = kept
            self._where = target.socket or f"{urlsplit(target.url or '').scheme}://{host}"
        try:
            self._request = self._written(method, target.prefix + path, host, body, target)
        except UnicodeError as error:
            raise UpstreamLostError("the request cannot be written") from error
        # Nothing that reads the answer, a capture included, sees the key that it may repeat.
        self._key = key_filter(target.key)
        self._connect = functools.partial(self._connected, target)
        waiting = self._kept.take(self._where, self) if self._kept is not None else None
        if waiting is None:
            await self._connect()
        else:
            self._transport = waiting
            self._repeatable_until = asyncio.get_running_loop().time() + _STALE_SECONDS
        self._begin(target.provider is not None)
        return self

    async def _connected(self, target: Target) -> None:
        """Make a new connection. Raises UpstreamLostError."""
        loop = asyncio.get_running_loop()
        try:
            if target.socket is not None:
                await loop.create_unix_connection(lambda: self, target.socket)
            else:
                parts = urlsplit(target.url or "")
                tls = _trust() if parts.scheme == "https" else None
                port = parts.port or (80 if tls is None else 443)
                async with asyncio.timeout(_PATIENCE):
                    await loop.create_connection(lambda: self, parts.hostname or "", port, ssl=tls)
        except (OSError, UnicodeError) as error:
            raise UpstreamLostError(str(error)) from error

    def _begin(self, watched: bool) -> None:
        """Send the request on the connection that there is."""
        if watched:
            self._keep_watch()
        if self._transport is not None:
            self._transport.write(self._request)
        if self._repeatable_until is None:
            self._request = b""

    async def _again(self) -> bool:
        """Send the request on a new connection if the kept one had ended while it waited; else False."""
        until, connect = self._repeatable_until, self._connect
        if until is None or connect is None or asyncio.get_running_loop().time() > until:
            return False
        # Where the caller gives up meanwhile, the next call tries again.
        await connect()
        if self._repeatable_until is None:
            self.abort()
            return False
        self._repeatable_until = None
        self._lost = False
        self._begin(watched=True)
        return True

    def _keep_watch(self) -> None:
        """Have the system probe the connection, and give it up when nothing comes for too long."""
        found = self._transport.get_extra_info("socket") if self._transport is not None else None
        if found is not None and found.family in (socket.AF_INET, socket.AF_INET6):
            # One that is gone already is found out by who reads.
            with contextlib.suppress(OSError):
                found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                for name, value in _KEEPALIVE.items():
                    if (option := getattr(socket, name, None)) is not None:
                        found.setsockopt(socket.IPPROTO_TCP, option, value)
        self._heard = asyncio.get_running_loop().time()
        self._listen()

    def _listen(self) -> None:
        """Look whether something came since the last look; one timer for the exchange, none for a piece."""
        loop = asyncio.get_running_loop()
        if self._paused:
            # It is us who do not read.
            self._heard = loop.time()
        if loop.time() >= self._heard + _LONGEST_SILENCE:
            self.silent = True
            self.abort()
            return
        self._listener = loop.call_at(self._heard + _LONGEST_SILENCE, self._listen)

    def _written(self, method: str, path: str, host: str, body: bytes, target: Target) -> bytes:
        """Return the request; its headers are ours alone, nothing of the client's is passed on."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", _AGENT]
        if self._kept is None:
            lines.append("Connection: close")
        if target.key:
            lines.append(f"Authorization: Bearer {target.key}")
        if target.provider is not None:
            lines.append(f"Via: 1.1 {PSEUDONYM}")
        if body:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the exchange: a connection whose answer is whole is kept for the next, any other is ended."""
        transport = self._transport
        if self._kept is None or transport is None or not self._stays_open or transport.is_closing():
            self.abort()
            return
        if self._paused:
            transport.resume_reading()
        self._transport = None
        self.abort()
        self._kept.keep(self._where, transport)

    def abort(self) -> None:
        """End the connection at once; a waiting reader gets UpstreamLostError."""
        self._repeatable_until = None
        if self._transport is not None and not self._transport.is_closing():
            self._transport.abort()
        if self._resume_timer is not None:
            self._resume_timer.cancel()
        self._end_watch()
        self._lost = True
        self._wake()

    def _end_watch(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            self._listener = None

    def coalesce_reads(self, seconds: float) -> None:
        """Leave what the engine sends in the socket for so long, so that it is then read in one go."""
        if self._paused or self.complete or self._lost or self._transport is None:
            return
        self._paused = True
        self._transport.pause_reading()
        self._resume_timer = asyncio.get_running_loop().call_later(seconds, self._resume)

    def nudge(self) -> None:
        """Make a waiting `read` return b"" now, so that its caller can look up from the stream."""
        self._wake()

    @property
    def lost(self) -> bool:
        """True if the connection is gone with the answer incomplete."""
        return self._lost and not self.complete

    async def head(self, timeout: float | None = None) -> bool:
        """Wait for status and headers; False after `timeout` seconds; raises UpstreamLostError."""
        if timeout is not None:
            try:
                async with asyncio.timeout(timeout):
                    return await self.head()
            except TimeoutError:
                return False
        while not self._headers_done:
            if not self._lost:
                await self._wait()
            elif not await self._again():
                raise self._ended("the connection ended before the answer began")
        return True

    async def read(self) -> bytes | None:
        """Return the bytes since the last call, without the target's key; b"" after a nudge, None at the end.

        Raises UpstreamLostError.
        """
        if not self._chunks:
            if self.complete:
                return (self._key.end() if self._key is not None else b"") or None
            if self._lost:
                raise self._ended("the connection ended in the middle of the answer")
            await self._wait()
        return self._take()

    async def rest(self, limit: int = 64 << 20) -> bytes:
        """The whole remaining body; raises UpstreamLostError, AnswerTooLargeError above `limit` bytes."""
        parts: list[bytes] = []
        size = 0
        while (part := await self.read()) is not None:
            parts.append(part)
            size += len(part)
            if size > limit:
                self.abort()
                raise AnswerTooLargeError(limit)
        return b"".join(parts)

    def _ended(self, how: str) -> UpstreamLostError:
        return UpstreamLostError(f"nothing came for {_LONGEST_SILENCE:.0f} seconds" if self.silent else how)

    def _take(self) -> bytes:
        chunks = self._chunks
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self._held = 0
        if self._paused and self._resume_timer is None:
            self._resume()
        return data if self._key is None else self._key.feed(data)

    def _resume(self) -> None:
        self._resume_timer = None
        self._paused = False
        if self._transport is not None:
            self._transport.resume_reading()

    async def _wait(self) -> None:
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        try:
            await waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Parse what arrived and wake the reader once for all of it."""
        if self._repeatable_until is not None:
            self._repeatable_until, self._request = None, b""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()
            return
        if self._held > _HIGH_WATER and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        if self._listener is not None:
            self._heard = asyncio.get_running_loop().time()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end; an answer without a length ends with its connection."""
        if self._headers_done and not self.complete and exc is None and self._ends_with_connection():
            self._completed()
        self._end_watch()
        self._lost = True
        self._wake()

    def _ends_with_connection(self) -> bool:
        return "content-length" not in self.headers and "transfer-encoding" not in self.headers

    # httptools callbacks

    def on_message_begin(self) -> None:
        """End the connection after this exchange if what begins is a second answer to its one request."""
        self._stays_open = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep one header, its name in lower case."""
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > _MOST_HEADERS or len(self.headers) > _MOST_HEADER_LINES:
            self.abort()
            return
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The status is known."""
        self.status = self._parser.get_status_code()
        self._headers_done = True

    def on_body(self, body: bytes) -> None:
        """Hold bytes of the body until the reader takes them."""
        self._chunks.append(body)
        self._held += len(body)

    def on_message_complete(self) -> None:
        """The answer is whole."""
        self._stays_open = not self.complete and self._parser.should_keep_alive()
        self._completed()

    def _completed(self) -> None:
        self.complete = True
        self.on_complete()


async def fetch(target: Target, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    """One short exchange: status and body; raises UpstreamLostError."""
    async with await Upstream.open(target, method, path, body) as upstream:
        await upstream.head()
        return upstream.status, await upstream.rest()
