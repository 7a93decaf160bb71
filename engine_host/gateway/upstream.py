"""One HTTP/1.1 exchange with an engine, over a Unix socket or TCP, cheap enough for every token.

The engine shares its CPU cores with this process, so every microsecond spent on a token is taken from
decoding. A general client spends several hundred on each chunk of a stream; this one spends about ten: the
socket's bytes go through httptools' parser and on, with no buffering layer, task or timer in between.
"""

import asyncio
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
from engine_host.gateway.kept_connections import KeptConnections, have_probed
from engine_host.gateway.routing.key_filter import KeyFilter, key_filter
from engine_host.protocol.operations.definition import Method

_AGENT = f"User-Agent: sndr/{__version__}"
PSEUDONYM = f"sndr-{secrets.token_hex(8)}"
"""This process in the Via header of what it passes on (RFC 9110, 7.6.3): it knows its own requests again."""
_HIGH_WATER = 1 << 20
"""Bytes that wait for a slow client before reading from the engine pauses."""

_PATIENCE = 15.0
"""Seconds for a connection; an engine on this machine takes one at once, unless many ask in one moment."""

_QUEUE_FULL_SECONDS = 0.005
_LONGEST_SILENCE = 600.0
"""Seconds without a byte from a provider, after which it is given up: the SDKs of OpenAI and Anthropic wait
as long. An engine on this machine may compute for longer, and its death is seen at once."""

_STALE_SECONDS = 2.0
"""A kept connection that ends within this time without a word was ended by the other side while it waited.
The request is then sent once more, on a new connection; one that was worked on for longer is not repeated."""

_MOST_AROUND = 64 << 10
"""Bytes that come in a row without any of the body: headers, interim answers, trailers."""

_SWITCHING = 101
_LENGTHS = {b"content-length", b"transfer-encoding"}


class UpstreamLostError(Exception):
    """The engine's connection ended before its answer was complete, or could not be made."""


class UnreachableError(UpstreamLostError):
    """The engine takes no connection, so that it has not seen the request."""


class SilentError(UpstreamLostError):
    """Nothing came from a provider or another machine for too long."""


class UnreadableError(UpstreamLostError):
    """An answer that is none of HTTP; the engine itself may be well."""


class AnswerTooLargeError(UpstreamLostError):
    """The engine's answer is larger than what is held of one, in bytes; the engine itself is well."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the answer is larger than {limit} bytes")
        self.limit = limit


@functools.cache
def _trust() -> ssl.SSLContext:
    """The certificates that this machine trusts; read once, which takes some milliseconds."""
    return ssl.create_default_context()


async def _connected_to(path: str, request: bytes) -> tuple[socket.socket, int]:
    """Connect to a Unix socket and write at once; the number of bytes that it took is returned, too.

    asyncio takes a full queue (llama.cpp's holds a handful) for a connection, and writes some turns later:
    llama.cpp ends one that says nothing for five seconds, which many requests on a busy processor can take.
    """
    found = socket.socket(socket.AF_UNIX)
    found.setblocking(False)
    try:
        while True:
            try:
                found.connect(path)
            except BlockingIOError:
                await asyncio.sleep(_QUEUE_FULL_SECONDS)
            else:
                return found, found.send(request)
    except BaseException:
        found.close()
        raise


class Upstream(asyncio.Protocol):
    """One request to an engine; use as an async context manager, which ends the connection.

    Ending it early is what aborts the engine's work: llama.cpp's server looks at the connection between two
    tokens of a stream. A whole answer it mostly writes to its end: a stream is asked for in its place where
    that tells as much (`gathering/`).
    """

    def __init__(self) -> None:
        self.status = 0
        self.complete = False
        self.date = ""
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._chunks: list[bytes] = []
        self._held = 0
        self._around = 0
        self._paused = False
        self._resume_timer: asyncio.TimerHandle | None = None
        self._headers_done = False
        self._has_length = False
        self._lost = False
        self._failure: UpstreamLostError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._key: KeyFilter | None = None
        self._heard = 0.0
        self._listener: asyncio.TimerHandle | None = None
        self._connect: Callable[[], Awaitable[None]] | None = None
        self._request = b""
        """Sent once more if a kept connection turns out to have ended; else empty."""
        self._written_at_once = 0
        self._has_body = False
        self._forgetting: asyncio.TimerHandle | None = None
        self._reconnecting: asyncio.Task[None] | None = None
        self._kept: KeptConnections | None = None
        self._where = ""
        self._stays_open = False
        self.on_complete: Callable[[], None] = lambda: None
        """Called once, when the engine has sent all of its answer, whoever has read it."""
        self.on_piece: Callable[[bytes], bool] | None = None
        """Given what comes while a reader waits, who gets it where this returns False."""

    @classmethod
    async def open(
        cls,
        target: Target,
        method: Method,
        path: str,
        body: bytes = b"",
        kept: KeptConnections | None = None,
    ) -> Self:
        """Send one request, on a connection to another machine that waits in `kept` or on a new one.

        Raises UnreachableError when the engine takes no connection.
        """
        self = cls()
        self._has_body = bool(body)
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
            raise UnreachableError("the request cannot be written") from error
        # Nothing that reads the answer, a capture included, sees the key that it may repeat.
        self._key = key_filter(target.key)
        self._connect = functools.partial(self._connected, target)
        waiting = self._kept.take(self._where, self) if self._kept is not None else None
        if waiting is None:
            await self._connect()
        else:
            self._transport = waiting
            self._forgetting = asyncio.get_running_loop().call_later(_STALE_SECONDS, self._forget)
        self._begin(watched=target.provider is not None)
        return self

    async def _connected(self, target: Target) -> None:
        """Make a new connection. Raises UnreachableError."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_PATIENCE):
                if target.socket is not None:
                    found, self._written_at_once = await _connected_to(target.socket, self._request)
                    await loop.create_unix_connection(lambda: self, sock=found)
                    return
                parts = urlsplit(target.url or "")
                tls = _trust() if parts.scheme == "https" else None
                port = parts.port or (80 if tls is None else 443)
                await loop.create_connection(lambda: self, parts.hostname or "", port, ssl=tls)
        except (OSError, UnicodeError) as error:
            raise UnreachableError(str(error)) from error

    def _begin(self, *, watched: bool) -> None:
        """Send the request on the connection that there is."""
        if watched:
            self._keep_watch()
        if self._transport is not None:
            self._transport.write(self._request[self._written_at_once :])
        if self._forgetting is None:
            self._request = b""

    def _forget(self) -> None:
        """Let the request go, once the kept connection has lived for long enough."""
        # Its end may have been seen and not be told yet, where this process was busy meanwhile.
        if self._transport is not None and not self._transport.is_closing():
            self._sent()

    def _sent(self) -> None:
        """Note that the request is not to be sent again."""
        self._request = b""
        self._stop_forgetting()

    def _stop_forgetting(self) -> None:
        if self._forgetting is not None:
            self._forgetting.cancel()
            self._forgetting = None

    async def _reconnect(self, connect: Callable[[], Awaitable[None]]) -> None:
        """Send the request on a new connection, as the kept one had ended while it waited."""
        try:
            await connect()
        except UnreachableError as error:
            self._reconnecting = None
            self.abort(error)
        else:
            self._begin(watched=True)

    def _keep_watch(self) -> None:
        """Have the system probe the connection, and give it up when nothing comes for too long."""
        found = self._transport.get_extra_info("socket") if self._transport is not None else None
        if found is not None:
            have_probed(found)
        self._heard = asyncio.get_running_loop().time()
        self._listen()

    def _listen(self) -> None:
        """Look whether something came since the last look; one timer for the exchange, none for a piece."""
        loop = asyncio.get_running_loop()
        if self._paused:
            # It is us who do not read.
            self._heard = loop.time()
        if loop.time() >= self._heard + _LONGEST_SILENCE:
            self.abort(SilentError(f"nothing came for {_LONGEST_SILENCE:.0f} seconds"))
            return
        self._listener = loop.call_at(self._heard + _LONGEST_SILENCE, self._listen)

    def _written(self, method: Method, path: str, host: str, body: bytes, target: Target) -> bytes:
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

    def abort(self, why: UpstreamLostError | None = None) -> None:
        """End the connection at once; a waiting reader gets `why`, or an UpstreamLostError."""
        self._failure = self._failure or why
        self._sent()
        if self._reconnecting is not None:
            self._reconnecting.cancel()
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

    @property
    def is_full(self) -> bool:
        """True while as much waits for the reader as is held for one."""
        return self._held > _HIGH_WATER

    def nudge(self) -> None:
        """Make a waiting `read` return b"" now, so that its caller can look up from the stream."""
        self._wake()

    async def head(self, timeout: float | None = None) -> bool:
        """Wait for status and headers; False after `timeout` seconds; raises UpstreamLostError."""
        if timeout is not None:
            try:
                async with asyncio.timeout(timeout):
                    return await self.head()
            except TimeoutError:
                return False
        while not self._headers_done:
            if self._lost:
                raise self._failure or UpstreamLostError("the connection ended before the answer began")
            await self._wait()
        return True

    async def read(self) -> bytes | None:
        """Return the bytes since the last call, without the target's key; b"" after a nudge, None at the end.

        Raises UpstreamLostError.
        """
        if not self._chunks:
            if self.complete:
                return (self._key.end() if self._key is not None else b"") or None
            if self._lost:
                raise self._failure or UpstreamLostError("the connection ended in the middle of the answer")
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
        if self._request:
            self._sent()
        held = self._held
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort(UnreadableError("what came is no answer of HTTP"))
            return
        # The parser gathers a header until it is whole, and interim answers could come for ever.
        self._around = self._around + len(data) if self._held == held else 0
        if self._around > _MOST_AROUND:
            self.abort(UnreadableError(f"more than {_MOST_AROUND} bytes came around the answer"))
            return
        if self._held > _HIGH_WATER and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        if self._listener is not None:
            self._heard = asyncio.get_running_loop().time()
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        if self.on_piece is not None and self._chunks and not (self.complete or self._lost):
            piece = self._take()
            if self.on_piece(piece):
                return
            self._chunks.append(piece)
            self._held = len(piece)
        waiter.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end; an answer without a length ends with its connection."""
        if self._lost:
            # Ended from here: what came of the answer is not all of it.
            return
        self._end_watch()
        if self._request and self._connect is not None:
            self._stop_forgetting()
            self._reconnecting = asyncio.get_running_loop().create_task(self._reconnect(self._connect))
            return
        if self._headers_done and not self.complete and exc is None and not self._has_length:
            self._completed()
        if isinstance(exc, TimeoutError):
            self._failure = SilentError("the other side acknowledges nothing any more")
        self._lost = True
        self._wake()

    # httptools callbacks; what they raise ends the parsing

    def on_message_begin(self) -> None:
        """Refuse a second answer to the one request."""
        if self.complete:
            raise UnreadableError("another answer follows")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note whether the answer says where it ends, and its date."""
        self._has_length = self._has_length or name.lower() in _LENGTHS
        if name == b"date":
            self.date = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Note the status, unless another answer is to follow: 100 to 199 are interim ones."""
        status = self._parser.get_status_code()
        if status == _SWITCHING:
            raise UnreadableError("it goes on in another protocol")
        if status < 200:
            self._has_length = False
            return
        self.status = status
        self._headers_done = True

    def on_body(self, body: bytes) -> None:
        """Hold bytes of the body until the reader takes them."""
        if not self._headers_done:
            raise UnreadableError("an interim answer has a body")
        self._chunks.append(body)
        self._held += len(body)

    def on_message_complete(self) -> None:
        """Note that the answer is whole; the connection may serve another where its request was read too."""
        if not self._headers_done:
            return
        unread = self._transport is None or self._transport.get_write_buffer_size() > 0
        refused = self._has_body and self.status >= 300
        self._stays_open = self._parser.should_keep_alive() and not unread and not refused
        self._completed()

    def _completed(self) -> None:
        self.complete = True
        self.on_complete()


async def fetch(target: Target, method: Method, path: str, body: bytes = b"") -> tuple[int, bytes]:
    """One short exchange: status and body; raises UpstreamLostError."""
    async with await Upstream.open(target, method, path, body) as upstream:
        await upstream.head()
        return upstream.status, await upstream.rest()
