"""A connection that waits for its next request is closed later than clients' pools close theirs."""

import asyncio
import re
import socket

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from engine_host.daemon.http_protocol import BoundedProtocol
from engine_host.daemon.http_server import HttpServer

_LONGEST_OF_CLIENTS = 90
"""Seconds: Go's `IdleConnTimeout`, and the one of Rust's reqwest."""


async def _hello(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


def test_an_idle_connection_outlives_those_of_clients() -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        listener = socket.create_server(("127.0.0.1", 0))
        server = HttpServer(Starlette(routes=[Route("/", _hello)]), listener, name="test")
        await server.started()
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        answer = await reader.readuntil(b"hello")
        assert answer.startswith(b"HTTP/1.1 200")
        (told,) = re.findall(rb"(?i)\r\nkeep-alive: timeout=(\d+)\r\n", answer)
        (connection,) = server._server.server_state.connections
        assert isinstance(connection, BoundedProtocol)
        timer = connection.timeout_keep_alive_task
        assert timer is not None
        left = timer.when() - loop.time()
        assert left > _LONGEST_OF_CLIENTS + 5
        # Node's `http.Agent` of five minutes, measured: it closes a second before what it is told.
        assert _LONGEST_OF_CLIENTS < int(told) < left - 5
        await server.close()
        assert await reader.read() == b""
        writer.close()

    asyncio.run(go())
