"""Connections to other machines between two requests, against servers on real sockets."""

import asyncio

import pytest

from engine_host.gateway import kept_connections, upstream
from engine_host.gateway.directory import Target
from engine_host.gateway.upstream import Upstream, UpstreamLostError
from tests.unit.asynchronous import run, until
from tests.unit.gateway.far_server import WHOLE, ask, serving


@pytest.mark.parametrize("tcp", [False, True])
def test_the_next_request_goes_over_the_same_connection(tcp: bool) -> None:
    async def act() -> None:
        async with serving(tcp=tcp) as (server, kept):
            assert [await ask(server, kept) for _ in range(3)] == [b"ok"] * 3
            assert (server.connections, len(server.requests), len(kept)) == (1, 3, 1)
            assert b"connection: close" not in server.requests[0].lower()
            both = await asyncio.gather(ask(server, kept), ask(server, kept))
            assert list(both) == [b"ok"] * 2
            assert (server.connections, len(kept)) == (2, 2)

    run(act())


def test_an_engine_of_this_machine_gets_a_connection_for_each_request() -> None:
    async def act() -> None:
        async with serving() as (server, kept):
            own = Target("e", "m", 1, 4096, 0.0, socket=server.target.socket)
            server.target = own
            await ask(server, kept)
            await ask(server, kept)
            assert (server.connections, len(kept)) == (2, 0)
            assert b"connection: close" in server.requests[0].lower()

    run(act())


def test_what_the_other_side_ends_while_it_waits_is_forgotten() -> None:
    async def act() -> None:
        async with serving() as (server, kept):
            await ask(server, kept)
            server.writers[0].close()
            await until(lambda: len(kept) == 0)
            assert await ask(server, kept) == b"ok"
            assert server.connections == 2

    run(act())


def test_a_request_that_met_the_end_of_a_kept_connection_is_sent_once_more() -> None:
    async def ends_the_second(writer: asyncio.StreamWriter, request: int) -> None:
        if request == 2:
            raise ConnectionResetError
        writer.write(WHOLE)

    async def act() -> None:
        async with serving() as (server, kept):
            server.answer = ends_the_second
            assert [await ask(server, kept), await ask(server, kept)] == [b"ok", b"ok"]
            assert (server.connections, len(server.requests)) == (2, 3)
            assert server.requests[1] == server.requests[2]

    run(act())


def test_one_that_was_worked_on_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ends_all_but_the_first(writer: asyncio.StreamWriter, request: int) -> None:
        if request > 1:
            raise ConnectionResetError
        writer.write(WHOLE)

    async def act() -> None:
        async with serving() as (server, kept):
            server.answer = ends_all_but_the_first
            await ask(server, kept)
            with pytest.raises(UpstreamLostError):
                await ask(server, kept)
            assert len(server.requests) == 3, "a new connection's end is final"
            server.requests.clear()
            await ask(server, kept)
            monkeypatch.setattr(upstream, "_STALE_SECONDS", -1.0)
            with pytest.raises(UpstreamLostError):
                await ask(server, kept)
            assert len(server.requests) == 2

    run(act())


@pytest.mark.parametrize(
    "answer",
    [
        WHOLE + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen",
        WHOLE + b"more",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
    ids=["a second answer", "bytes behind it", "close", "HTTP/1.0"],
)
def test_no_answer_of_one_request_reaches_another(answer: bytes) -> None:
    async def says(writer: asyncio.StreamWriter, _request: int) -> None:
        writer.write(answer)

    async def act() -> None:
        async with serving() as (server, kept):
            server.answer = says
            for _ in range(2):
                asked = await Upstream.open(server.target, "GET", "/v1/models", b"", kept)
                async with asked:
                    await asked.head()
                    assert (await asked.read() or b"").startswith(b"ok")
            assert (server.connections, len(kept)) == (2, 0)

    run(act())


def test_what_comes_late_ends_a_waiting_connection() -> None:
    async def act() -> None:
        async with serving() as (server, kept):
            await ask(server, kept)
            server.writers[0].write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen")
            await until(lambda: len(kept) == 0)
            assert await ask(server, kept) == b"ok"
            assert server.connections == 2

    run(act())


def test_an_answer_that_is_left_ends_its_connection() -> None:
    async def begins(writer: asyncio.StreamWriter, _request: int) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")

    async def act() -> None:
        async with serving() as (server, kept):
            server.answer = begins
            asked = await Upstream.open(server.target, "GET", "/v1/models", b"", kept)
            async with asked:
                await asked.head()
            assert len(kept) == 0
            await until(lambda: server.ended == 1)

    run(act())


def test_no_more_are_kept_than_are_of_use_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_connections, "_MOST_EACH", 2)
    monkeypatch.setattr(kept_connections, "IDLE_SECONDS", 0.05)

    async def act() -> None:
        async with serving() as (server, kept):
            await asyncio.gather(*(ask(server, kept) for _ in range(5)))
            assert len(kept) <= 2
            await until(lambda: len(kept) == 0)
            await until(lambda: server.ended == 5)

    run(act())
