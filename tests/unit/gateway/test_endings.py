"""Requests end when the host wants it: with clients that read nothing, while it closes, from the queue."""

import asyncio
import contextlib
import select
import socket
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from engine_host.gateway import Limits
from engine_host.protocol.engines import RequestState
from engine_host.protocol.errors import Reason

BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
CHAT = "/v1/chat/completions"
PATIENCE = 60.0
BRIEF = Limits(close_grace=0.2)


async def until(condition: Any) -> None:
    """Wait for a condition that something else makes true."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class Flood:
    """A script that never stops writing to the client `stuck`; everybody else gets the usual one."""

    def __init__(self, scripts: Any) -> None:
        self._scripts = scripts
        self.written = 0

    async def __call__(self, engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        """Write for ever, or two words."""
        if body.get("user") != "stuck":
            await self._scripts.two_words(engine, body, writer)
            return
        writer.write(self._scripts.stream_head)
        while True:
            writer.write(self._scripts.chunk("x" * 65536))
            await writer.drain()
            self.written += 1

    async def stands_still(self) -> None:
        """Wait until all buffers between engine and client are full."""
        async with asyncio.timeout(PATIENCE):
            before = -1
            while not self.written or self.written != before:
                before = self.written
                await asyncio.sleep(0.3)


class Finished:
    """A script that writes all of a long answer to the client `stuck`, and has then done its work."""

    def __init__(self, scripts: Any, size: int) -> None:
        self._scripts = scripts
        self._size = size
        self.done = asyncio.Event()

    async def __call__(self, engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        """Write so many bytes in frames of 16 KiB, streamed or whole; or two words."""
        if body.get("user") != "stuck":
            await self._scripts.two_words(engine, body, writer)
            return
        text = "x" * (16 << 10)
        if not body["stream"]:
            await self._scripts.answers(200, b'{"text": "' + b"x" * self._size + b'"}')(engine, body, writer)
        else:
            writer.write(self._scripts.stream_head)
            for _ in range(self._size >> 14):
                writer.write(self._scripts.chunk(text))
                await writer.drain()
            writer.write(self._scripts.http_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        await writer.drain()
        self.done.set()

    async def stands_still(self) -> None:
        """Wait until the engine has written all."""
        async with asyncio.timeout(PATIENCE):
            await self.done.wait()


class Unfinished(Finished):
    """The same, of which more is with the engine than is held for a client."""

    async def stands_still(self) -> None:
        """Nothing to wait for."""


@contextlib.asynccontextmanager
async def stuck_client(
    url: str, script: Flood | Finished, *, stream: bool = True, close: bool = False
) -> AsyncIterator[socket.socket]:
    """A client of the endpoint that asks for an answer and reads none of it, once nothing more fits."""
    parts = urlsplit(url)
    content = httpx.Request("POST", url, json={**BODY, "user": "stuck", "stream": stream}).content
    head = f"POST {CHAT} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: {len(content)}\r\n"
    head += "Connection: close\r\n\r\n" if close else "\r\n"
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        client.connect((parts.hostname, parts.port))
        client.sendall(head.encode() + content)
        await script.stands_still()
        yield client


def test_cancelling_a_request_whose_client_reads_nothing_frees_its_slot(world: Any, scripts: Any) -> None:
    async def go() -> None:
        flood = Flood(scripts)
        async with (
            world(flood, slots=1, limits=BRIEF) as served,
            httpx.AsyncClient(base_url=served.url, timeout=PATIENCE) as client,
            stuck_client(served.url, flood),
        ):
            served.engine.go.set()
            (stuck,) = served.gateway.request_log.requests()
            other = asyncio.create_task(client.post(CHAT, json={**BODY, "stream": False}))
            await until(lambda: served.gateway.request_log.waiting("e1") == 1)
            assert served.gateway.request_log.cancel(stuck.id).state is RequestState.CANCELLED
            assert served.gateway.request_log.waiting("e1") == 0
            assert (await other).status_code == 200
            await until(lambda: served.engine.active == 0)
            assert await served.gateway.drain("e1", PATIENCE) is True

    asyncio.run(go())


def test_the_host_ends_although_a_client_reads_nothing(world: Any, scripts: Any) -> None:
    async def go() -> None:
        flood = Flood(scripts)
        async with world(flood, limits=BRIEF) as served, stuck_client(served.url, flood):
            async with asyncio.timeout(PATIENCE):
                await served.gateway.aclose()
            (request,) = served.gateway.request_log.requests()
            assert request.state is RequestState.FAILED
            assert request.problem.evidence["code"] == "engine_stopped"
            assert served.gateway.request_log.live() == ()
            assert served.gateway.request_log.active("e1") == 0

    asyncio.run(go())


def test_closing_ends_what_works_and_what_waits_with_the_same_reason(world: Any) -> None:
    async def go() -> None:
        async with (
            world(slots=1) as served,
            httpx.AsyncClient(base_url=served.url, timeout=PATIENCE) as client,
        ):
            whole = {**BODY, "stream": False}
            tasks = [asyncio.create_task(client.post(CHAT, json=whole))]
            await until(lambda: served.gateway.request_log.active("e1") == 1)
            for place, body in enumerate((whole, BODY), 1):
                tasks.append(asyncio.create_task(client.post(CHAT, json=body)))
                await until(lambda place=place: served.gateway.request_log.waiting("e1") == place)
            await served.gateway.aclose()
            worked, waited, streamed = await asyncio.gather(*tasks)
            for answer in (worked, waited):
                assert (answer.status_code, answer.json()["error"]["code"]) == (503, "engine_stopped")
            assert streamed.text.rstrip().rpartition("data: ")[2].count('"code":"engine_stopped"') == 1
            for request in served.gateway.request_log.requests():
                assert request.state is RequestState.FAILED
                assert request.problem.reason is Reason.CANCELLED
            assert len(served.engine.received) == 1

    asyncio.run(go())


def test_nothing_new_is_taken_while_the_host_closes(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url, timeout=PATIENCE) as client:
            served.engine.go.set()
            await served.gateway.aclose()
            answer = await client.post(CHAT, json=BODY)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "draining")
            assert int(answer.headers["retry-after"]) > 0
            assert served.engine.received == []

    asyncio.run(go())


async def cut_off(client: socket.socket) -> bytes:
    """Wait, without reading, until the endpoint has given the client up; what there was to read."""
    poll = select.poll()
    poll.register(client, select.POLLHUP | select.POLLERR | select.POLLRDHUP)
    async with asyncio.timeout(PATIENCE):
        while not poll.poll(0):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    read = b""
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(1 << 16):
            read += part
    return read


def test_the_slot_is_free_once_the_engine_has_finished_whoever_reads(world: Any, scripts: Any) -> None:
    async def go() -> None:
        # More than the system's buffers take, and less than is held for a client.
        script = Finished(scripts, 512 << 10)
        async with (
            world(script, slots=1) as served,
            httpx.AsyncClient(base_url=served.url, timeout=PATIENCE) as client,
            stuck_client(served.url, script),
        ):
            served.engine.go.set()
            await until(lambda: served.gateway.request_log.active("e1") == 0)
            assert [one.state for one in served.gateway.request_log.requests()] == [RequestState.DECODE]
            assert (await client.post(CHAT, json={**BODY, "stream": False})).status_code == 200
            assert served.activity[-1] == ("e1", 0)
            assert await served.gateway.drain("e1", PATIENCE) is True

    asyncio.run(go())


def test_a_client_that_reads_nothing_is_cut_off_and_the_engine_with_it(world: Any, scripts: Any) -> None:
    async def go() -> None:
        flood = Flood(scripts)
        async with (
            world(flood, slots=1, stall=0.5) as served,
            stuck_client(served.url, flood) as stuck,
        ):
            read = await cut_off(stuck)
            assert len(read) < 1 << 20
            await until(lambda: served.engine.active == 0)
            (request,) = served.gateway.request_log.requests()
            assert request.state is RequestState.CANCELLED
            assert served.gateway.request_log.active("e1") == 0

    asyncio.run(go())


@pytest.mark.parametrize("close", [False, True], ids=["keep-alive", "close"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_finished_answer_that_nobody_reads_does_not_wait_for_ever(
    world: Any, scripts: Any, stream: bool, close: bool
) -> None:
    async def go() -> None:
        script = Finished(scripts, 400 << 10)
        async with (
            world(script, slots=1, stall=0.5) as served,
            stuck_client(served.url, script, stream=stream, close=close) as stuck,
        ):
            await until(lambda: served.gateway.request_log.active("e1") == 0)
            assert len(await cut_off(stuck)) < 300 << 10
            await until(lambda: served.gateway.request_log.live() == ())

    asyncio.run(go())


def test_a_slow_reader_gets_all_of_its_answer(world: Any, scripts: Any) -> None:
    async def go() -> None:
        script = Finished(scripts, 1 << 20)
        async with (
            world(script, slots=1, stall=1.0) as served,
            stuck_client(served.url, script, close=True) as slow,
        ):
            slow.setblocking(False)
            loop, read = asyncio.get_running_loop(), b""
            async with asyncio.timeout(PATIENCE):
                while part := await loop.sock_recv(slow, 48 << 10):
                    read += part
                    await asyncio.sleep(0.1)
            assert read.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
            assert read.count(b"x" * (16 << 10)) == 64
            assert [one.state for one in served.gateway.request_log.requests()] == [RequestState.DONE]

    asyncio.run(go())


def test_who_reads_slowly_lends_its_slot_and_is_drained_all_the_same(world: Any, scripts: Any) -> None:
    async def go() -> None:
        script = Unfinished(scripts, 4 << 20)
        async with (
            world(script, slots=1, limits=Limits(ping=0.2)) as served,
            httpx.AsyncClient(base_url=served.url, timeout=PATIENCE) as client,
            stuck_client(served.url, script) as slow,
        ):
            served.engine.go.set()
            for _ in range(2):
                assert (await client.post(CHAT, json={**BODY, "stream": False})).status_code == 200
            assert served.gateway.request_log.active("e1") == 1
            assert await served.gateway.drain("e1", 0.1) is False
            drained = asyncio.create_task(served.gateway.drain("e1", PATIENCE))
            slow.setblocking(False)
            loop, read = asyncio.get_running_loop(), b""
            async with asyncio.timeout(PATIENCE):
                while not read.endswith(b"0\r\n\r\n"):
                    read += await loop.sock_recv(slow, 1 << 20)
            assert read.count(b"x" * (16 << 10)) == 256
            assert await drained is True

    asyncio.run(go())
