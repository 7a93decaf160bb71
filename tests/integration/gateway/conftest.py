"""The gateway in front of a real llama.cpp server with a small random-weight model."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine_host.bench.random_model import SMALL, Shape, write_random_model
from engine_host.daemon.http_server import HttpServer
from engine_host.engines.llamacpp.command import LlamaCppStart
from engine_host.engines.llamacpp.servers import ServerProber, prebuilt_command
from engine_host.engines.llamacpp.temporary_server import TemporaryServer, temporary_server
from engine_host.gateway import Gateway, Limits, Target, bind_endpoint
from engine_host.gateway.upstream import fetch
from engine_host.library.gguf import read_gguf
from engine_host.protocol.events import EventBase

CONTEXT = 2048


@dataclass
class Real:
    """A gateway over one real engine."""

    gateway: Gateway
    url: str
    target: Target
    server: TemporaryServer
    events: list[EventBase] = field(default_factory=list)

    async def get(self, path: str) -> bytes:
        """Ask the engine itself, past the gateway."""
        status, body = await fetch(self.target, "GET", path)
        assert status == 200
        return body


RealMaker = Callable[..., contextlib.AbstractAsyncContextManager[Real]]


@pytest.fixture(scope="session")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Shape], Path]:
    """Random-weight models, one file a shape."""
    folder = tmp_path_factory.mktemp("models")
    served: dict[Shape, Path] = {}

    def model(shape: Shape = SMALL) -> Path:
        if shape not in served:
            served[shape] = write_random_model(folder / f"random-{len(served)}.gguf", shape)
        return served[shape]

    return model


@pytest.fixture
def real(home: Path, random_model: Callable[..., Path]) -> Iterator[RealMaker]:
    """Makes a gateway over a real engine; both gone when the block ends."""

    @asynccontextmanager
    async def make(
        *,
        slots: int = 8,
        context: int = CONTEXT,
        limits: Limits | None = None,
        embeddings: bool = False,
        reranking: bool = False,
        model: Path | None = None,
    ) -> AsyncIterator[Real]:
        command = prebuilt_command()
        assert command is not None, "the prebuilt server is not installed"
        name = "demo" if model else "random"
        values = {"context": context, "streams": slots, "embeddings": embeddings, "reranking": reranking}
        start = LlamaCppStart(str(model or random_model()), name, values)
        async with temporary_server(await ServerProber().probe(command), start) as server:
            target = Target(
                "e1",
                name,
                slots,
                context,
                time.time(),
                socket=server.socket,
                fill_in_the_middle=True,
                fim_ids=read_gguf(model or random_model()).fim_ids,
                tells_counts=True,
                embeddings=embeddings,
                reranking=reranking,
                # The bundled model is a hybrid; the random one is not.
                checkpoints=model is not None,
            )
            events: list[EventBase] = []
            gateway = Gateway(_One(target), events.append, limits=limits)
            bound = bind_endpoint("127.0.0.1", 0)
            endpoint = HttpServer(gateway.app, bound.socket, name="endpoint")
            await endpoint.started()
            try:
                yield Real(gateway, f"http://127.0.0.1:{bound.port}/v1", target, server, events)
            finally:
                await gateway.aclose()
                await endpoint.close()
                await asyncio.sleep(0.02)

    yield make  # noqa: PT022


@dataclass(frozen=True)
class _One:
    target: Target

    def targets(self) -> tuple[Target, ...]:
        """The engine."""
        return (self.target,)

    def starting(self) -> tuple[str, ...]:
        """Nothing."""
        return ()
