"""A FAKE server of another machine on a real socket, for what happens between two requests to it."""

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from engine_host.gateway.directory import Target
from engine_host.gateway.kept_connections import KeptConnections
from engine_host.gateway.upstream import Upstream
from tests.unit.asynchronous import until

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Answer = Callable[[asyncio.StreamWriter, int], Awaitable[None]]


async def answers(writer: asyncio.StreamWriter, _request: int) -> None:
    """Give a whole answer."""
    writer.write(WHOLE)


@dataclass
class Server:
    """A FAKE server of another machine: each connection's requests are answered one after the other."""

    target: Target
    answer: Answer = answers
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    ended: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer on one connection until it ends."""
        self.connections += 1
        self.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"Content-Length: (\d+)", head)
                body = await reader.readexactly(int(length[1])) if length is not None else b""
                self.requests.append(head + body)
                await self.answer(writer, len(self.requests))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            writer.close()
        finally:
            self.ended += 1


@asynccontextmanager
async def serving(*, tcp: bool = False) -> AsyncIterator[tuple[Server, KeptConnections]]:
    """Serve, with a place for the connections; all of them are ended at the end."""
    # A socket's path may have 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="sndr-k-"))
    path = str(folder / "s")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.serve(reader, writer)

    if tcp:
        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
        server = Server(Target("r", "m", 1, 4096, 0.0, url=url, provider="other"))
    else:
        listener = await asyncio.start_unix_server(serve, path)
        server = Server(Target("r", "m", 1, 4096, 0.0, socket=path, provider="other", machine="other"))
    kept = KeptConnections()
    try:
        yield server, kept
    finally:
        kept.close()
        assert len(kept) == 0
        listener.close()
        for writer in server.writers:
            writer.close()
        await until(lambda: server.ended == server.connections)
        await listener.wait_closed()
        shutil.rmtree(folder)


async def ask(server: Server, kept: KeptConnections | None) -> bytes:
    """Return the body of the answer to one request."""
    async with await Upstream.open(server.target, "GET", "/v1/models", b"", kept) as asked:
        await asked.head()
        return await asked.rest()
