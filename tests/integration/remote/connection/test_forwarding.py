"""A port that is forwarded over the real ssh is led there no longer once it is ended."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from tests.integration.remote.conftest import Fleet
from tests.unit.asynchronous import run

Open = Callable[..., AbstractAsyncContextManager[Fleet]]


async def _greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello")
    await writer.drain()
    writer.close()


def test_a_forwarded_port_can_be_ended_and_forwarded_again(fleet: Open) -> None:
    async def work() -> None:
        server = await asyncio.start_server(_greet, "127.0.0.1", 0)
        there = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with fleet() as found, server:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            await found.reach("gpu")
            connection = found.hosts.connection("gpu")
            local = connection.folder.path / "test.sock"
            for _ in range(2):
                await connection.forward(local, there)
                reader, writer = await asyncio.open_unix_connection(local)
                assert await reader.read() == b"hello"
                writer.close()
                await connection.end_forward(local, there)
                assert not local.exists()

    run(work())
