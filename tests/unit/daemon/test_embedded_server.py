"""The embedded server ends when it is told: what is idle is closed, what is asked is answered, or cut off."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from engine_host.daemon.embedded_server import EmbeddedServer
from tests.unit.asynchronous import run, until

ASK = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


class Served:
    """A server with one path that answers once it may."""

    def __init__(self, folder: Path, grace: int) -> None:
        self.asked = asyncio.Event()
        self.may = asyncio.Event()
        self.cut = False
        self.path = folder / "s.sock"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(self.path))
        listener.listen()
        app = Starlette(routes=[Route("/", self._answer)])
        config = uvicorn.Config(app, lifespan="off", log_config=None, timeout_graceful_shutdown=grace)
        self.server = EmbeddedServer(config)
        self.task = asyncio.create_task(self.server.serve(sockets=[listener]))

    async def _answer(self, _request: Request) -> Response:
        self.asked.set()
        try:
            await self.may.wait()
        except asyncio.CancelledError:
            self.cut = True
            raise
        return PlainTextResponse("answered")


@contextlib.asynccontextmanager
async def served(folder: Path, grace: int = 30) -> AsyncIterator[Served]:
    """A server that is ended in any case."""
    one = Served(folder, grace)
    await until(lambda: one.server.started)
    try:
        yield one
    finally:
        one.server.end()
        await one.task


def test_what_is_idle_is_closed_and_no_more_let_in(tmp_path: Path) -> None:
    async def work() -> None:
        async with served(tmp_path) as one:
            one.may.set()
            reader, writer = await asyncio.open_unix_connection(one.path)
            writer.write(ASK)
            assert (await reader.readuntil(b"answered")).startswith(b"HTTP/1.1 200 OK\r\ndate: ")
            one.server.end()
            assert await reader.read() == b""
            writer.close()
            await one.task
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_unix_connection(one.path)

    run(work())


def test_what_is_asked_is_answered_first(tmp_path: Path) -> None:
    async def work() -> None:
        async with served(tmp_path) as one:
            reader, writer = await asyncio.open_unix_connection(one.path)
            writer.write(ASK)
            await one.asked.wait()
            one.server.end()
            await asyncio.sleep(0.2)
            assert not one.task.done()
            one.may.set()
            assert (await reader.read()).endswith(b"answered")
            writer.close()
            assert not one.cut

    run(work())


def test_what_does_not_end_is_cut_off_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with served(tmp_path, grace=1) as one:
            _, writer = await asyncio.open_unix_connection(one.path)
            writer.write(ASK)
            await one.asked.wait()
            one.server.end()
            await one.task
            assert one.cut
            writer.close()

    with caplog.at_level(logging.ERROR):
        run(work())
    assert "were cut off: 1" in caplog.text
    assert "Traceback" not in caplog.text
