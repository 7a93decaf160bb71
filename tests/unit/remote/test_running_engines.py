"""Engines on another machine are asked on while looks at it fail; the connection to it is FAKE."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.remote.hosts import RemoteEngine, RemoteFacts
from engine_host.remote.book import KeptHost
from engine_host.remote.running_engines import RunningEngines, RunningModel
from engine_host.remote.ssh.connection import Connection
from engine_host.remote.ssh.folder import HostFolder
from tests.unit.asynchronous import run, until

MODELS = b'{"data": [{"id": "qwen3", "max_model_len": 8192}]}'


class FakeConnection:
    """A connection whose forwarded ports are answered here; each serves one model."""

    def __init__(self, folder: Path) -> None:
        self.host = KeptHost(name="gpu", destination="gpu", added_at=1.0)
        self.folder = HostFolder(folder)
        self.servers: dict[str, asyncio.Server] = {}

    async def forward(self, local: Path, there: str) -> None:
        self.servers[there] = await asyncio.start_unix_server(_answer, local)

    async def end_forward(self, _local: Path, there: str) -> None:
        self.servers.pop(there).close()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(MODELS), MODELS))
    await writer.drain()
    writer.close()


def facts(*ports: int) -> RemoteFacts:
    """A machine on which one engine listens on these ports."""
    listens = tuple(f"127.0.0.1:{port}" for port in ports)
    engine = RemoteEngine(kind="vllm", pid=1, user="me", arguments=("vllm", "serve"), listens=listens)
    return RemoteFacts(host="gpu", user="me", engines=(engine,))


class Looks:
    """What each look at the machine gives, and what was told of its models."""

    def __init__(self, folder: Path) -> None:
        self.now: Callable[[], RemoteFacts] = lambda: facts(8000)
        self.done = 0
        self.told: list[tuple[RunningModel, ...]] = []
        self.connection = FakeConnection(folder)
        self.link = RunningEngines(cast(Connection, self.connection), self._read, self._tell)

    def _tell(self, models: tuple[RunningModel, ...], _rate: float | None) -> None:
        self.told.append(models)

    async def _read(self) -> RemoteFacts:
        self.done += 1
        return self.now()

    async def again(self, now: Callable[[], RemoteFacts]) -> tuple[RunningModel, ...]:
        """Look again, and return what is told after it."""
        self.now, before = now, len(self.told)
        self.link.look()
        await until(lambda: len(self.told) > before)
        return self.told[-1]


@asynccontextmanager
async def looking(folder: Path) -> AsyncIterator[Looks]:
    looks = Looks(folder)
    keeping = asyncio.create_task(looks.link.keep())
    try:
        await until(lambda: len(looks.told) == 1)
        yield looks
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        for server in looks.connection.servers.values():
            server.close()


def test_a_look_that_fails_leaves_the_engines_that_answer(tmp_path: Path) -> None:
    def refused() -> RemoteFacts:
        raise HostError(Reason.SSH_FAILED, "no facts")

    def broken() -> RemoteFacts:
        raise KeyError("os")

    async def work() -> None:
        async with looking(tmp_path) as looks:
            assert [one.id for one in looks.told[0]] == ["qwen3"]
            for now in (refused, broken, lambda: facts(8000)):
                assert [one.id for one in await looks.again(now)] == ["qwen3"]
            assert looks.done == 4

    run(work())


def test_ports_that_are_gone_are_forwarded_no_longer_and_there_are_never_too_many(tmp_path: Path) -> None:
    async def work() -> None:
        async with looking(tmp_path) as looks:
            assert list(looks.connection.servers) == ["127.0.0.1:8000"]
            await looks.again(lambda: facts(8001))
            assert list(looks.connection.servers) == ["127.0.0.1:8001"]
            many = tuple(facts(*range(9000 + 16 * at, 9016 + 16 * at)).engines[0] for at in range(16))
            told = await looks.again(lambda: RemoteFacts(host="gpu", user="me", engines=many))
            assert len(looks.connection.servers) == 64
            assert len(told) == 1
            assert await looks.again(lambda: RemoteFacts(host="gpu", user="me")) == ()
            assert not looks.connection.servers

    run(work())
