"""What comes on a connection to an engine: each request gets its own answer or the reason why not."""

import asyncio
import contextlib
import os
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine_host.gateway import kept_connections, upstream
from engine_host.gateway.directory import Target
from engine_host.gateway.kept_connections import KeptConnections
from engine_host.gateway.upstream import (
    SilentError,
    UnreachableError,
    UnreadableError,
    Upstream,
    UpstreamLostError,
)
from tests.unit.asynchronous import run, turns, until
from tests.unit.gateway.far_server import WHOLE, Answer, Server, ask, serving

HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nContent-Length: 2\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
STOLEN = b"HTTP/1.1 500 No\r\nContent-Length: 6\r\n\r\nstolen"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\n\r\nok"


def numbered(number: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % number


def says(*pieces: bytes) -> Answer:
    """Answer each request with the same pieces, each by itself."""

    async def say(writer: asyncio.StreamWriter, _request: int) -> None:
        for piece in pieces:
            writer.write(piece)
            await turns(20)

    return say


async def opened(server: Server, kept: KeptConnections | None, body: bytes = b"") -> Upstream:
    return await Upstream.open(server.target, "POST" if body else "GET", "/v1/models", body, kept)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    "interim",
    [(HINTS,), (CONTINUE,), (CONTINUE, HINTS, HINTS), (b"HTTP/1.1 199 X\r\n\r\n",)],
    ids=["103", "100", "several", "199"],
)
def test_what_comes_before_an_answer_is_not_taken_for_it(interim: tuple[bytes, ...], together: bool) -> None:
    async def hints(writer: asyncio.StreamWriter, request: int) -> None:
        whole = (*interim, numbered(request))
        await says(*((b"".join(whole),) if together else whole))(writer, request)

    async def act() -> None:
        async with serving() as (server, kept):
            server.answer = hints
            assert [await ask(server, kept) for _ in range(3)] == [b"1", b"2", b"3"]
            assert (server.connections, len(kept)) == (1, 1)

    run(act())


def test_a_slot_is_not_free_before_the_answer_is_whole() -> None:
    go = asyncio.Event()

    async def waits(writer: asyncio.StreamWriter, _request: int) -> None:
        writer.write(HINTS)
        await go.wait()
        writer.write(WHOLE)

    async def act() -> None:
        async with serving() as (server, kept):
            server.answer = waits
            async with await opened(server, kept) as asked:
                freed: list[bool] = []
                asked.on_complete = lambda: freed.append(True)
                assert not await asked.head(timeout=0.05)
                assert (freed, asked.status, asked.complete) == ([], 0, False)
                go.set()
                await asked.head()
                assert (asked.status, await asked.rest(), freed) == (200, b"ok", [True])

    run(act())


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + WHOLE,
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 104 X\r\nContent-Length: 2\r\n\r\nno" + WHOLE,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        CHUNKED + b"Content-Length: 9\r\n\r\n",
        CONTINUE * 9000,
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 20),
        CHUNKED + b"X: " + b"x" * (1 << 20),
        b"HTTP/2 200 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
    ],
    ids=[
        "101",
        "101 without upgrade",
        "a body of 104",
        "two lengths",
        "twice a length",
        "a length behind",
        "100 for ever",
        "endless header",
        "endless trailer",
        "HTTP/2",
        "ssh",
    ],
)
def test_what_is_no_answer_is_refused_and_its_connection_ended(answer: bytes) -> None:
    async def act() -> None:
        async with serving() as (server, kept):
            server.answer = says(answer)
            with pytest.raises(UnreadableError):
                await ask(server, kept)
            assert len(kept) == 0
            await until(lambda: server.ended == 1)

    run(act())


@dataclass(frozen=True)
class Framed:
    """One answer: its bytes, what its body is, and whether its connection may be kept."""

    answer: bytes
    body: bytes
    stays: bool


@pytest.mark.parametrize(
    "case",
    [
        Framed(b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
        Framed(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", b"", True),
        Framed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", True),
        Framed(CHUNKED + b"\r\n", b"ok", True),
        Framed(CHUNKED + b"X-Sum: 1\r\nX-More: 2\r\n\r\n", b"ok", True),
        Framed(b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno", b"no", True),
        Framed(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", b"ok", True),
        Framed(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok", False),
        Framed(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", b"ok", False),
        Framed(WHOLE + STOLEN, b"ok", False),
        Framed(WHOLE + b"more", b"ok", False),
        Framed(WHOLE + HINTS, b"ok", False),
    ],
    ids=lambda case: str(case.answer[:60]),
)
def test_where_an_answer_ends(case: Framed) -> None:
    async def act() -> None:
        async with serving() as (server, kept):
            server.answer = says(case.answer)
            status = int(case.answer.split()[1])
            for number in (1, 2):
                async with await opened(server, kept) as asked:
                    await asked.head()
                    assert (asked.status, await asked.rest()) == (status, case.body)
                    await turns(20)
                assert len(kept) == case.stays
                assert server.connections == (1 if case.stays else number)

    run(act())


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async def ends(writer: asyncio.StreamWriter, _request: int) -> None:
        writer.write(ENDLESS)
        await turns(20)
        writer.close()

    async def act() -> None:
        async with serving(tcp=True) as (server, kept):
            server.answer = ends
            assert await ask(server, kept) == b"ok"
            assert len(kept) == 0

    run(act())


def test_one_without_a_length_that_is_given_up_is_not_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "_LONGEST_SILENCE", 0.1)

    async def act() -> None:
        async with serving() as (server, kept):
            server.answer = says(ENDLESS)
            with pytest.raises(SilentError):
                await ask(server, kept)
            async with await opened(server, kept) as asked:
                freed: list[bool] = []
                asked.on_complete = lambda: freed.append(True)
                await asked.head()
                asked.abort()
                await turns(20)
                assert (asked.complete, freed) == (False, [])

    run(act())


@pytest.mark.skipif(sys.platform != "linux", reason="a full queue refuses connections")
def test_an_engine_that_takes_one_connection_after_the_other_is_waited_for() -> None:
    async def act() -> None:
        async with serving() as (server, _):
            path = f"{server.target.socket}-slow"
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                listener.listen(0)
                slow = Target("e", "m", 1, 4096, 0.0, socket=path)
                asking = [asyncio.create_task(Upstream.open(slow, "GET", "/v1/models")) for _ in range(9)]
                await turns(20)
                assert any(not one.done() for one in asking), "the queue is full"
                for _ in asking:
                    connection, _address = await asyncio.to_thread(listener.accept)
                    await asyncio.to_thread(connection.recv, 4096)
                    connection.sendall(WHOLE)
                    connection.close()
                for one in asking:
                    async with await one as asked:
                        await asked.head()
                        assert await asked.rest() == b"ok"

    run(act())


@pytest.mark.skipif(sys.platform != "linux", reason="a full queue refuses connections")
def test_one_that_takes_none_for_long_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "_PATIENCE", 0.1)

    async def act() -> None:
        async with serving() as (server, _):
            path = f"{server.target.socket}-full"
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                listener.listen(0)
                full = Target("e", "m", 1, 4096, 0.0, socket=path)
                async with await Upstream.open(full, "GET", "/v1/models"):
                    with pytest.raises(UnreachableError):
                        await Upstream.open(full, "GET", "/v1/models")

    run(act())


@pytest.mark.parametrize("size", [2, 3 << 20])
def test_a_request_is_on_its_way_however_busy_the_loop_is(tmp_path: Path, size: int) -> None:
    """llama.cpp ends a connection that says nothing for five seconds."""
    body = b"x" * size
    heard = bytearray()
    taken: list[socket.socket] = []

    def look(listener: socket.socket) -> None:
        taken.append(listener.accept()[0])
        heard.extend(taken[0].recv(1 << 20, socket.MSG_DONTWAIT))

    def rest() -> None:
        while not heard.endswith(b"\r\n\r\n" + body):
            heard.extend(taken[0].recv(1 << 20))
        taken[0].sendall(WHOLE)
        taken[0].close()

    async def act() -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "s"))
            listener.listen()
            # The next thing that the loop does, so what it is late with comes after.
            asyncio.get_running_loop().call_soon(look, listener)
            target = Target("e", "m", 1, 4096, 0.0, socket=str(tmp_path / "s"))
            async with await Upstream.open(target, "POST", "/v1/completions", body) as asked:
                assert heard.startswith(b"POST /v1/completions")
                await asyncio.to_thread(rest)
                await asked.head()
                assert await asked.rest() == b"ok"

    run(act())
    assert heard.count(b"POST") == 1


@pytest.mark.parametrize("status", [200, 413])
def test_an_answer_before_the_request_is_sent_keeps_no_connection(status: int) -> None:
    async def act() -> None:
        async with serving() as (server, kept):

            async def reads_no_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                server.connections += 1
                server.writers.append(writer)
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\nok" % status)
                with contextlib.suppress(OSError):
                    await reader.read(-1)
                server.ended += 1

            server.serve = reads_no_body  # type: ignore[method-assign]
            async with await opened(server, kept, b"x" * (32 << 20)) as asked:
                await asked.head()
                assert (asked.status, await asked.rest()) == (status, b"ok")
            assert len(kept) == 0

    run(act())


@pytest.mark.parametrize("status", [307, 400, 413, 429, 500])
def test_a_refusal_that_may_not_have_read_the_request_keeps_no_connection(status: int) -> None:
    async def act() -> None:
        async with serving() as (server, kept):
            server.answer = says(b"HTTP/1.1 %d No\r\nContent-Length: 2\r\n\r\nno" % status)
            async with await opened(server, kept, b"{}") as asked:
                await asked.head()
                assert await asked.rest() == b"no"
            assert len(kept) == 0

    run(act())


@pytest.mark.parametrize("tcp", [False, True])
def test_what_came_while_nobody_looked_is_no_answer_to_the_next(tcp: bool) -> None:
    async def act() -> None:
        async with serving(tcp=tcp) as (server, kept):
            await ask(server, kept)
            # It lies in the socket, and the loop has no turn before the next request.
            server.writers[0].write(STOLEN)
            assert await ask(server, kept) == b"ok"
            assert (server.connections, len(kept)) == (2, 1)

    run(act())


async def ends_the_second(writer: asyncio.StreamWriter, request: int) -> None:
    if request == 2:
        raise ConnectionResetError
    writer.write(WHOLE)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Connections are made while this is set."""
    go, connect = asyncio.Event(), upstream._connected_to

    async def waits(path: str, request: bytes) -> tuple[socket.socket, int]:
        await go.wait()
        return await connect(path, request)

    monkeypatch.setattr(upstream, "_connected_to", waits)
    return go


@pytest.mark.parametrize("there", [True, False])
def test_a_new_connection_may_take_longer_than_pings(
    monkeypatch: pytest.MonkeyPatch, gate: asyncio.Event, there: bool
) -> None:
    monkeypatch.setattr(upstream, "_STALE_SECONDS", 1.0)

    async def act() -> None:
        async with serving() as (server, kept):
            server.answer = ends_the_second
            gate.set()
            await ask(server, kept)
            gate.clear()
            async with await opened(server, kept) as asked:
                for _ in range(4):
                    assert not await asked.head(timeout=0.3)
                if not there:
                    os.unlink(str(server.target.socket))
                gate.set()
                if there:
                    await asked.head()
                    assert await asked.rest() == b"ok"
                    assert server.requests == [server.requests[0]] * 3
                else:
                    with pytest.raises(UnreachableError):
                        await asked.head()

    run(act())


def test_one_that_is_left_while_it_connects_anew_leaves_nothing(gate: asyncio.Event) -> None:
    async def act() -> None:
        async with serving() as (server, kept):
            server.answer = ends_the_second
            gate.set()
            await ask(server, kept)
            gate.clear()
            async with await opened(server, kept) as asked:
                assert not await asked.head(timeout=0.05)
                await until(lambda: asked._reconnecting is not None)
                anew = asked._reconnecting
                assert anew is not None
            await until(anew.done)
            gate.set()
            with pytest.raises(UpstreamLostError):
                await asked.head()
            assert (server.connections, len(kept)) == (1, 0)

    run(act())


def test_a_busy_moment_is_no_reason_not_to_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "_STALE_SECONDS", 1.0)

    async def ends_and_is_busy(writer: asyncio.StreamWriter, request: int) -> None:
        if request == 2:
            writer.transport.abort()
            await asyncio.sleep(0)
            time.sleep(1.1)  # noqa: ASYNC251 - this process is busy, the loop with it
        writer.write(WHOLE)

    async def act() -> None:
        async with serving() as (server, kept):
            server.answer = ends_and_is_busy
            assert [await ask(server, kept), await ask(server, kept)] == [b"ok", b"ok"]

    run(act())


def test_a_request_that_is_not_repeated_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "_STALE_SECONDS", 0.05)
    go = asyncio.Event()

    async def thinks(writer: asyncio.StreamWriter, request: int) -> None:
        if request == 2:
            await go.wait()
        writer.write(WHOLE)

    async def act() -> None:
        async with serving() as (server, kept):
            server.answer = thinks
            await ask(server, kept)
            async with await opened(server, kept) as asked:
                assert asked._request
                await until(lambda: not asked._request)
                go.set()
                await asked.head()
                assert await asked.rest() == b"ok"

    run(act())


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system has no such option")
def test_a_machine_that_takes_nothing_any_more_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kept_connections._KEEPALIVE, "TCP_USER_TIMEOUT", 300)

    async def act() -> None:
        async with serving(tcp=True) as (server, kept):

            async def frozen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                server.connections += 1
                server.writers.append(writer)
                assert isinstance(writer.transport, asyncio.Transport)
                writer.transport.pause_reading()
                await done.wait()
                server.ended += 1

            done = asyncio.Event()
            server.serve = frozen  # type: ignore[method-assign]
            try:
                async with await opened(server, kept, b"x" * (64 << 20)) as asked:
                    with pytest.raises(SilentError):
                        await asked.head()
            finally:
                done.set()

    run(act())
