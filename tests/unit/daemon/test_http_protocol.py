"""Hostile connections: endless headers and trailers, silence, floods; each gets an error object."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from engine_host.daemon.descriptors import for_clients, raise_limit
from engine_host.daemon.http_protocol import ConnectionLimits, bounded, control_refusal
from engine_host.daemon.http_server import HttpServer
from engine_host.protocol.errors import ErrorAnswer
from tests.unit.asynchronous import until

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


async def body(request: Request) -> PlainTextResponse:
    """Answer with the length of what was sent."""
    return PlainTextResponse(str(len(await request.body())))


def serve(
    act: Callable[[Talk], Awaitable[None]],
    limits: ConnectionLimits = LIMITS,
    answer: Callable[[Request], Awaitable[Response]] = body,
) -> None:
    """Run a real server with small limits while `act` talks to it."""

    async def whole() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            app = Starlette(routes=[Route("/", answer, methods=["GET", "POST"])])
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


def test_an_address_that_is_none_is_told_so() -> None:
    async def act(talk: Talk) -> None:
        answer = await talk.say(b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nhost: x\r\n\r\n")
        refused(answer, 400, "invalid_http")
        assert b"The address of the request cannot be read." in answer

    serve(act)


@pytest.mark.parametrize("method", [b"GET", b"POST", b"HEAD"])
def test_http_1_0_knows_no_chunks(method: bytes) -> None:
    async def streamed(_request: Request) -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            for part in (b"one ", b"two ", b"three"):
                yield part

        return StreamingResponse(parts())

    async def act(talk: Talk) -> None:
        answer = await talk.say(
            method + b" / HTTP/1.0\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n"
        )
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"transfer-encoding" not in head
        assert b"connection: close" in head
        assert body == (b"" if method == b"HEAD" else b"one two three")
        assert b"transfer-encoding: chunked" in await talk.say(REQUEST + b"\r\n")

    serve(act, answer=streamed)


def test_a_refused_head_has_no_body_and_two_hosts_are_none() -> None:
    async def act(talk: Talk) -> None:
        answer = await talk.say(b"HEAD /\x7f HTTP/1.1\r\nhost: x\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.endswith(b"\r\n\r\n")
        refused(await talk.say(REQUEST + b"host: y\r\n\r\n"), 400, "invalid_http")

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


def test_a_long_body_may_take_long_and_one_in_drops_is_refused() -> None:
    async def act(talk: Talk) -> None:
        head = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        answer = await talk.say(head % 400_000, *[b"x" * 20_000] * 20, pause=0.08)
        assert answer.endswith(b"\r\n\r\n400000")
        refused(await talk.say(head % 20, *[b"x"] * 20, pause=0.08), 408, "request_timeout")

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


class Held:
    """An application that answers `/slow` when it is let go, and sees its clients leave."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.left = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/slow":
            await receive()
            leaves, goes = asyncio.ensure_future(receive()), asyncio.ensure_future(self.go.wait())
            done, _ = await asyncio.wait({leaves, goes}, return_when=asyncio.FIRST_COMPLETED)
            self.left += leaves in done
            leaves.cancel()
            goes.cancel()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


def held(act: Callable[[Held, int], Awaitable[None]]) -> None:
    """Run a real server with an application that can be held."""

    async def whole() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            app = Held()
            server = HttpServer(app, listener, name="test", protocol=bounded(LIMITS))
            await server.started()
            try:
                await act(app, listener.getsockname()[1])
            finally:
                await server.close()

    asyncio.run(whole())


SLOW = b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n"
QUICK = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.mark.parametrize("behind", [b"", QUICK, QUICK * 5], ids=["alone", "one more", "five more"])
@pytest.mark.parametrize("reset", [False, True])
def test_whoever_leaves_is_noticed_also_with_requests_behind(behind: bytes, reset: bool) -> None:
    async def act(app: Held, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(SLOW + behind)
        await writer.drain()
        await asyncio.sleep(0.05)
        if reset:
            writer.transport.abort()
        writer.close()
        await until(lambda: app.left == 1)
        assert await reader.read() == b""

    held(act)


def test_what_is_wrong_behind_a_request_does_not_take_its_answer(caplog: pytest.LogCaptureFixture) -> None:
    async def act(app: Held, port: int) -> None:
        for behind in (b"\x00\x01", QUICK + b"\xff\r\n\r\n", b"GET / HTTP/1.1\r\nx: " + b"a" * 2_000):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(SLOW)
            await asyncio.sleep(0.02)
            writer.write(behind)
            await asyncio.sleep(0.05)
            app.go.set()
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert answer.count(b"HTTP/1.1") == 1
            assert answer.endswith(b"\r\n\r\nok")
            writer.close()
            app.go.clear()

    held(act)
    assert not caplog.records


def test_a_body_that_breaks_is_refused_and_its_application_told(caplog: pytest.LogCaptureFixture) -> None:
    async def act(app: Held, port: int) -> None:
        start = POST.replace(b"/ ", b"/slow ", 1)
        parts = (start, b"5\r\nhello\r\n", b"zz\r\n")
        refused(await Talk(port).say(*parts, pause=0.05), 400, "invalid_http")
        await until(lambda: app.left == 1)

    held(act)
    assert not caplog.records


@pytest.mark.parametrize("pause", [0.0, 0.05])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_request_that_asks_for_another_protocol_is_answered_with_its_body(
    pause: float, chunked: bool
) -> None:
    async def act(talk: Talk) -> None:
        body = b"GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n"
        upgrade = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\n"
        framing = b"transfer-encoding: chunked" if chunked else b"content-length: %d" % len(body)
        sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body
        last = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        parts = (upgrade + framing + b"\r\n\r\n", sent[:7], sent[7:], last)
        answer = await talk.say(*parts, pause=pause) if pause else await talk.say(b"".join(parts))
        assert answer.count(b"HTTP/1.1 200 OK\r\n") == answer.count(b"HTTP/1.1") == 2
        assert answer.count(b"\r\n\r\n%d" % len(body)) == 1
        assert answer.endswith(b"\r\n\r\n0")

    serve(act)


def test_the_control_api_has_its_own_form() -> None:
    found = ErrorAnswer.model_validate_json(control_refusal(431, "headers_too_large", "Too large."))
    assert found.error.evidence["code"] == "headers_too_large"


def test_descriptors_are_kept_back() -> None:
    limit = raise_limit()
    assert raise_limit() == limit
    assert for_clients(1024) == 384
    assert 2 * for_clients(65_536) + 256 <= 65_536
