"""HTTP connections with bounds: headers, the address, time, and how many connections there are.

uvicorn reads headers without an end and never closes a connection that says nothing: 100 MB of headers took
2 GB, and 1,100 idle connections used up every descriptor of the process. Nor does it end one whose client
takes nothing of its answer, which held a slot of the engine for ever.
"""

import asyncio
import json
import logging
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import httptools
from starlette.types import Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from engine_host.gateway.streaming.direct import EXTENSION, WritePiece
from engine_host.protocol.errors import ErrorAnswer, Problem, Reason

_log = logging.getLogger(__name__)

IS_OPEN = "sndr.is_open"
"""The extension of ASGI that says whether a request's connection is still there."""

_FRAMING = (b"content-length", b"transfer-encoding")
_AT_ONCE = struct.pack("ii", 1, 0)
Refusal = Callable[[int, str, str], bytes]
"""Returns the body for a status, a code and a sentence."""


_LINGER = 1.0
"""Seconds that a refused client has to read its answer."""
_LEAST_MOVED = 32 << 10
"""Bytes that a client has to take in each span of `stall` seconds while more of its answer waits, and to send
in each of `silence` seconds while more of its request is to come.

1 KiB a second is a twentieth of what a slow model writes, and no network that is in use is slower.
"""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds of a connection: bytes of the address, bytes and number of headers and trailers, seconds.

    `head` is how long a request's headers may take, `silence` how long its body, or the next 32 KiB of a long
    one: who sends a byte a second would hold a connection, and what was read, for days. `connections` may be
    open at once; one more is refused. `stall` is how long a client may take next to nothing of an answer
    that waits for it: half a minute is longer than any hiccup of a network; None is for ever.
    """

    url: int = 16 << 10
    headers: int = 64 << 10
    count: int = 200
    head: float = 30.0
    silence: float = 60.0
    stall: float | None = 30.0
    connections: int = 1024


def openai_refusal(status: int, code: str, message: str) -> bytes:
    """Return an error as OpenAI's clients read it."""
    kind = "invalid_request_error" if status < 500 else "api_error"
    error = {"message": message, "type": kind, "param": None, "code": code}
    return json.dumps({"error": error}).encode()


def control_refusal(status: int, code: str, message: str) -> bytes:
    """Return an error as clients of the control API read it."""
    problem = Problem(reason=Reason.BAD_REQUEST, message=message, evidence={"code": code, "status": status})
    return ErrorAnswer(error=problem).model_dump_json().encode()


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol that refuses what exceeds the limits, in the form of an error object."""

    limits = ConnectionLimits()
    refusal: Refusal = staticmethod(openai_refusal)

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._header_bytes = 0
        self._header_count = 0
        # Bytes since the parser last gave us something: it collects the part of a header by itself.
        self._unparsed = 0
        self._refused = False
        # The request that is being answered; behind it others may wait, of which `cycle` is the newest.
        self._answering: RequestResponseCycle | None = None
        self._has_head = False
        # While a parser is told of a request whose head another one has read.
        self._goes_on = False
        # One timer for a connection: a request that comes at once moves what it waits for, and not the timer.
        self._deadline: asyncio.TimerHandle | None = None
        self._due: float | None = None
        # Bytes of the body since the time for them began.
        self._sent = 0
        self._untaken = 0
        self._taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, unless there are too many; its first request has to come in time."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(503, "too_many_connections", "Too many connections are open. Close some of them.")
        else:
            self._expect(self.limits.head)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and tell whatever answers one of its requests."""
        self._stop_expecting()
        self._stop_taking()
        # uvicorn tells the newest request alone, and after a reset keeps all of this until its timer ends.
        self._unset_keepalive_if_required()
        self.pipeline.clear()
        _disconnect(self._answering)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, unless the connection was refused already."""
        if self._refused:
            return
        self._unset_keepalive_if_required()
        self._unparsed += len(data)
        while data and not self._refused:
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as upgrade:
                # Nothing but HTTP/1.1 is spoken here: the request is answered as if it had not asked.
                data = data[upgrade.args[0] :]
                if self._has_body():
                    self._go_on_with_body()
            except httptools.HttpParserError as error:
                self._refuse(400, "invalid_http", f"This is no HTTP request: {str(error)[:200]}.")
        if self._unparsed > self.limits.url + self.limits.headers:
            self._refuse_headers()

    def on_message_begin(self) -> None:
        """Begin to count anew: a request begins."""
        if self._goes_on:
            return
        self._header_bytes = self._header_count = 0
        self._has_head = False
        self._expect(self.limits.head)
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a part of the address. Raise ValueError when it is too long."""
        if self._goes_on:
            return
        super().on_url(url)
        if len(self.url) > self.limits.url:
            self._refuse(414, "url_too_long", f"The address is longer than {self.limits.url} bytes.")
            raise ValueError("the address is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header or a trailer. Raise ValueError when they are too large."""
        if self._goes_on:
            return
        self._header_count += 1
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > self.limits.headers or self._header_count > self.limits.count:
            self._refuse_headers()
            raise ValueError("the headers are too large")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Answer the request; its body may pause for a while. Raise ValueError for several hosts."""
        if self._goes_on:
            return
        if sum(name == b"host" for name, _ in self.headers) > 1:
            # RFC 9112, section 3.2: another reader of the same request may take the other one.
            self._refuse(400, "invalid_http", "The request names more than one host.")
            raise ValueError("more than one host")
        self._unparsed = self._sent = 0
        self._expect(self.limits.silence)
        try:
            super().on_headers_complete()
        except (httptools.HttpParserInvalidURLError, UnicodeDecodeError) as error:
            self._refuse(400, "invalid_http", "The address of the request cannot be read.")
            raise ValueError("no address") from error
        self._has_head = True
        # Its application begins with the next turn of the loop.
        transport = self.transport
        extensions: dict[str, Any] = {
            EXTENSION: _piece_writer(self.cycle),
            IS_OPEN: lambda: not transport.is_closing(),
        }
        self.scope["extensions"] = extensions

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._unparsed = 0
        self._sent += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole: from here on it is the engine that takes time."""
        if self.parser.should_upgrade() and self._has_body():
            return
        self._unparsed = 0
        self._expect(None)
        super().on_message_complete()

    def pause_writing(self) -> None:
        """More waits than the client takes: it has to take some of it in time."""
        super().pause_writing()
        self._watch_taking()

    def resume_writing(self) -> None:
        """Nearly all that waited was taken."""
        self._stop_taking()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """The answer is written; the rest of it has to be taken in time, also where the connection closes."""
        super().on_response_complete()
        self._watch_taking()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP with an error object instead of plain text."""
        self._refuse(400, "invalid_http", msg)

    def _expect(self, seconds: float | None) -> None:
        """Close the connection unless something comes in so many seconds; None waits for nothing."""
        if seconds is None:
            self._due = None
            return
        due = self._due = self.loop.time() + seconds
        if self._deadline is None or self._deadline.when() > due:
            self._stop_expecting()
            self._due, self._deadline = due, self.loop.call_at(due, self._look)

    def _look(self) -> None:
        """See whether what is expected is late, or look again when it is due."""
        self._deadline = None
        due = self._due
        if due is None:
            return
        if self.loop.time() < due:
            self._deadline = self.loop.call_at(due, self._look)
        else:
            self._due = None
            self._on_late()

    def _stop_expecting(self) -> None:
        self._due = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _has_body(self) -> bool:
        return any(name in _FRAMING for name, _ in self.headers)

    def _go_on_with_body(self) -> None:
        """Read the body of a request that asked for another protocol, which httptools leaves out.

        Java's client asks every time. Left to httptools the body is lost, or read as the next request, which
        is a way to smuggle one in.
        """
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        lines = [b"%b: %b\r\n" % field for field in self.headers if field[0] in _FRAMING]
        self._goes_on = True
        self.parser.feed_data(b"".join([b"POST / HTTP/1.1\r\n", *lines, b"\r\n"]))
        self._goes_on = False

    def _watch_taking(self) -> None:
        """Look after a while whether the client has taken enough of what waits for it now."""
        self._stop_taking()
        self._untaken = self.transport.get_write_buffer_size()
        if self._untaken and self.limits.stall is not None:
            self._taking = self.loop.call_later(self.limits.stall, self._on_untaken)

    def _stop_taking(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def _on_untaken(self) -> None:
        taken = self._untaken - self.transport.get_write_buffer_size()
        if taken >= min(self._untaken, _LEAST_MOVED):
            self._watch_taking()
            return
        _log.info("a client took next to nothing of its answer for %g s; it is cut off", self.limits.stall)
        # A reset: else the system would keep what is unsent, and tell a client of the end behind all of it.
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.transport.abort()

    def _on_late(self) -> None:
        asked: RequestResponseCycle | None = self.cycle
        if asked is None and not self._unparsed:
            self.timeout_keep_alive_handler()  # Nothing was asked: there is nothing to answer.
        elif self._sent >= _LEAST_MOVED:
            self._sent = 0
            self._expect(self.limits.silence)
        else:
            self._refuse(408, "request_timeout", "The request did not come to its end in time.")

    def _refuse_headers(self) -> None:
        most = f"{self.limits.headers} bytes or {self.limits.count} lines"
        self._refuse(431, "headers_too_large", f"The headers hold more than {most}.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Answer with an error object, unless an answer is under way, and close the connection."""
        if self._refused:
            return
        self._refused = True
        self._stop_expecting()
        if self.transport.is_closing():
            return
        asked: RequestResponseCycle | None = self.cycle if self._has_head else None
        answering = self._answering
        if answering is not None and answering is not asked and not answering.response_complete:
            # It is a request behind another one, whose answer goes first; the connection ends with that.
            self.pipeline.clear()
            answering.keep_alive = False
            return
        if asked is None or not asked.response_started:
            self.transport.write(self._refusal(status, code, message))
        _disconnect(asked)
        # Closed at once while more comes in, the answer would be lost in a reset (RFC 9112, section 9.6).
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._deadline = self.loop.call_later(_LINGER, self.transport.close)
        self._watch_taking()

    def _refusal(self, status: int, code: str, message: str) -> bytes:
        body = type(self).refusal(status, code, message)
        fields = b"content-type: application/json\r\nconnection: close\r\n"
        length = b"content-length: %d\r\n\r\n" % len(body)
        is_head = self.parser.get_method() == b"HEAD"
        return STATUS_LINE[status] + fields + length + (b"" if is_head else body)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        if cycle.scope["http_version"] == "1.0":
            # It knows no chunks (RFC 9112, section 6.1): what has no length ends with the connection.
            cycle.chunked_encoding = False
            app = partial(_in_one_piece, cycle, app)
        super()._start_asgi_task(cycle, app)


def _piece_writer(cycle: RequestResponseCycle) -> WritePiece:
    """Return what writes a piece of a body in chunks as `send` does; it is called once for each token."""
    flow, write = cycle.flow, cycle.transport.write
    is_head = cycle.scope["method"] == "HEAD"

    def write_piece(piece: bytes) -> bool:
        # `send` would wait, or do something else.
        if flow.write_paused or cycle.disconnected or cycle.response_complete or not cycle.chunked_encoding:
            return False
        if piece and not is_head:
            write(b"%x\r\n%b\r\n" % (len(piece), piece))
        return not is_head

    return write_piece


async def _in_one_piece(
    cycle: RequestResponseCycle, app: Any, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer without chunks: uvicorn would refuse a body whose length it was not told."""

    async def sending(message: Message) -> None:
        cycle.expected_content_length = len(message.get("body", b""))
        await send(message)

    await app(scope, receive, sending)


def _disconnect(cycle: RequestResponseCycle | None) -> None:
    """Tell the application that its client is gone: what it still sends goes nowhere."""
    if cycle is not None and not cycle.response_complete:
        cycle.disconnected = True
        cycle.message_event.set()


def bounded(limits: ConnectionLimits, refusal: Refusal = openai_refusal) -> type[BoundedProtocol]:
    """Return the protocol with these limits and this form of errors, as uvicorn takes one."""
    return type("Protocol", (BoundedProtocol,), {"limits": limits, "refusal": staticmethod(refusal)})
