"""Hostile connections: endless headers and trailers, silence, floods; each gets an error object."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from engine_host.daemon.descriptors import for_clients, raise_limit
from engine_host.daemon.http_protocol import ConnectionLimits, bounded, control_refusal
from engine_host.daemon.http_server import HttpServer
from engine_host.protocol.errors import ErrorAnswer

LIMITS = ConnectionLimits(url=200, headers=1000, count=20, connections=5)
IMPATIENT = replace(LIMITS, head=0.4, silence=0.8)


class Talk:
    """One connection, spoken byte by byte."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def say(self, *parts: bytes, pause: float = 0.0) -> bytes:
        """Send parts and return everything that comes back until the server closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
                if pause:
                    await asyncio.sleep(pause)
        except ConnectionError:
            pass
        try:
            async with asyncio.timeout(5):
                return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


def serve(act: Callable[[Talk], Awaitable[None]], limits: ConnectionLimits = LIMITS) -> None:
    """Run a real server with small limits while `act` talks to it."""

    async def body(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(len(await request.body())))

    async def whole() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            app = Starlette(routes=[Route("/", body, methods=["GET", "POST"])])
            server = HttpServer(app, listener, name="test", protocol=bounded(limits))
            await server.started()
            try:
                await act(Talk(listener.getsockname()[1]))
            finally:
                await server.close()

    asyncio.run(whole())


def refused(answer: bytes, status: int, code: str) -> None:
    """Check that an answer is an error object of that status and code."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    assert b"application/json" in head
    assert json.loads(body)["error"]["code"] == code


REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
POST = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("parts", "status", "code"),
    [
        ((REQUEST + b"x: " + b"a" * 2000 + b"\r\n\r\n",), 431, "headers_too_large"),
        ((REQUEST + b"x: ", *[b"a" * 500] * 10), 431, "headers_too_large"),
        ((REQUEST + b"".join(b"x%d: 1\r\n" % n for n in range(40)) + b"\r\n",), 431, "headers_too_large"),
        ((b"GET /" + b"a" * 400 + b" HTTP/1.1\r\n\r\n",), 414, "url_too_long"),
        ((b"\x16\x03\x01\x02\x00\x01\x00",), 400, "invalid_http"),
        ((b"GET / HTTP/9.9\r\n\r\n",), 400, "invalid_http"),
        ((REQUEST + b"content-length: -1\r\n\r\n",), 400, "invalid_http"),
    ],
    ids=["long", "endless", "many", "url", "tls", "version", "length"],
)
def test_what_is_too_much_is_refused(parts: tuple[bytes, ...], status: int, code: str) -> None:
    async def act(talk: Talk) -> None:
        refused(await talk.say(*parts), status, code)

    serve(act)


def test_endless_trailers_end() -> None:
    async def act(talk: Talk) -> None:
        answer = await talk.say(POST + b"1\r\na\r\n0\r\n", *[b"x: " + b"a" * 300 + b"\r\n"] * 8)
        refused(answer, 431, "headers_too_large")
        answer = await talk.say(POST + b"1\r\na\r\n0\r\nx: ", *[b"a" * 500] * 8, pause=0.02)
        refused(answer, 431, "headers_too_large")

    serve(act)


def test_headers_and_bodies_that_stop_are_refused_and_slow_ones_are_not() -> None:
    async def act(talk: Talk) -> None:
        head = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 6\r\n\r\n"
        refused(await talk.say(REQUEST + b"x: 1\r\n"), 408, "request_timeout")
        refused(await talk.say(head + b"abc"), 408, "request_timeout")
        answer = await talk.say(head, b"ab", b"cd", b"ef", pause=0.1)
        assert answer.endswith(b"\r\n\r\n6")

    serve(act, IMPATIENT)


def test_connections_that_say_nothing_are_closed() -> None:
    async def act(talk: Talk) -> None:
        assert await asyncio.gather(*(talk.say() for _ in range(4))) == [b""] * 4

    serve(act, IMPATIENT)


def test_one_connection_too_many_is_told_so_and_others_go_on() -> None:
    async def act(talk: Talk) -> None:
        held = [await asyncio.open_connection("127.0.0.1", talk.port) for _ in range(5)]
        await asyncio.sleep(0.05)
        refused(await talk.say(), 503, "too_many_connections")
        for _, writer in held:
            writer.close()
        await asyncio.sleep(0.1)
        assert (await talk.say(REQUEST + b"\r\n")).startswith(b"HTTP/1.1 200")

    serve(act)


def test_an_answer_may_take_as_long_as_it_wants() -> None:
    async def slow(_request: Request) -> PlainTextResponse:
        await asyncio.sleep(1.0)
        return PlainTextResponse("late")

    async def whole() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            app = Starlette(routes=[Route("/", slow)])
            server = HttpServer(app, listener, name="test", protocol=bounded(IMPATIENT))
            await server.started()
            answer = await Talk(listener.getsockname()[1]).say(REQUEST + b"\r\n")
            assert answer.endswith(b"late")
            await server.close()

    asyncio.run(whole())


def test_the_control_api_has_its_own_form() -> None:
    found = ErrorAnswer.model_validate_json(control_refusal(431, "headers_too_large", "Too large."))
    assert found.error.evidence["code"] == "headers_too_large"


def test_descriptors_are_kept_back() -> None:
    limit = raise_limit()
    assert raise_limit() == limit
    assert for_clients(1024) == 384
    assert 2 * for_clients(65_536) + 256 <= 65_536
