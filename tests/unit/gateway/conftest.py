"""The gateway over a real socket, in front of a scripted engine; no model is involved."""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.keys.ring import Key, KeyRing, digest_of
from engine_host.core.store import Store
from engine_host.daemon.http_protocol import ConnectionLimits, bounded
from engine_host.daemon.http_server import HttpServer
from engine_host.gateway import Gateway, Limits, Target, bind_endpoint
from engine_host.gateway.loading.loader import Loader
from engine_host.gateway.routing.book import RouteBook
from engine_host.protocol.endpoint.keys import Permission
from engine_host.protocol.engines import RequestState
from engine_host.protocol.events import EngineRequestEvent, EventBase, RoutesChangedEvent

Script = Callable[["FakeEngine", dict[str, Any], asyncio.StreamWriter], Awaitable[None]]


@dataclass
class FakeEngine:
    """A FAKE engine: answers on a Unix socket whatever a test's script writes."""

    socket: str
    script: Script
    received: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    hung_up: int = 0
    active: int = 0
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request, run the script, and note a client that hangs up first."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ")[1]
        length = next(
            (
                int(line.split(":")[1])
                for line in head.split("\r\n")
                if line.lower().startswith("content-length")
            ),
            0,
        )
        body = json.loads(await reader.readexactly(length)) if length else {}
        self.received.append((path, body))
        self.active += 1
        gone = asyncio.create_task(reader.read())
        work = asyncio.create_task(self._run(body, writer))
        await asyncio.wait({gone, work}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            self.hung_up += 1
        self.active -= 1
        for task in (gone, work):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await task
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def _run(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await self.script(self, body, writer)
        await writer.drain()


@dataclass
class World:
    """Everything a gateway test looks at; also the gateway's directory."""

    engine: FakeEngine
    slots: int = 2
    url: str = ""
    running: list[Target] = field(default_factory=list)
    loading: tuple[str, ...] = ()
    ring: KeyRing = field(default_factory=KeyRing)
    hosts: frozenset[str] = frozenset()
    events: list[EngineRequestEvent] = field(default_factory=list)
    activity: list[tuple[str, int]] = field(default_factory=list)
    routes_changed: int = 0

    gateway: Gateway = field(init=False)
    routes: RouteBook = field(init=False)
    store: Store = field(init=False)

    def book(self, home: Path) -> RouteBook:
        """Make the gateway's routes, none yet."""
        self.store = Store(home / "routes.db")
        self.routes = RouteBook(self.store)
        return self.routes

    def close_book(self) -> None:
        """Close their database."""
        self.store.close()

    @property
    def keys(self) -> frozenset[str]:
        """The names of the keys."""
        raise NotImplementedError

    @keys.setter
    def keys(self, keys: frozenset[str]) -> None:
        self.ring.replace(
            Key(f"id-{key}", f"name of {key}", frozenset({Permission.INFER}), digest_of(key.encode()), 0.0)
            for key in keys
        )

    def targets(self) -> list[Target]:
        """The running engines."""
        return self.running

    def starting(self) -> tuple[str, ...]:
        """The engines on their way."""
        return self.loading

    def publish(self, event: EventBase) -> None:
        """Keep an event of a request."""
        if isinstance(event, RoutesChangedEvent):
            self.routes_changed += 1
            return
        assert isinstance(event, EngineRequestEvent)
        self.events.append(event)

    def states(self) -> list[RequestState]:
        """The states published so far."""
        return [event.request.state for event in self.events]


def chunk(text: str, **more: Any) -> bytes:
    """One frame of a scripted chat stream, as one HTTP chunk."""
    value = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    delta = {"content": text} if text else {}
    value["choices"] = [{"index": 0, "delta": delta, "finish_reason": None}]
    return http_chunk(b"data: " + json.dumps({**value, **more}).encode() + b"\n\n")


def http_chunk(data: bytes) -> bytes:
    """Bytes as one piece of a chunked answer."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
TAIL = {
    "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": 7,
        "completion_tokens": 2,
        "total_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 3},
    },
    "timings": {"predicted_n": 2, "predicted_per_second": 50.0, "draft_n": 4, "draft_n_accepted": 2},
}


async def two_words(engine: FakeEngine, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    """The usual script: a stream of two words that ends after `go` is set, or a whole answer."""
    if not body.get("stream") or (engine.received[-1][0] == "/v1/messages" and "return_progress" in body):
        # Of a message as a whole it tells no stream.
        await engine.go.wait()
        answer = json.dumps(
            {
                "id": "c",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                **TAIL,
                "choices": [
                    {"index": 0, "message": {"role": "assistant", "content": "a b"}, "finish_reason": "stop"}
                ],
            }
        ).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(answer)}\r\n\r\n"
        writer.write(head.encode() + answer)
        return
    writer.write(STREAM_HEAD + chunk("a "))
    await writer.drain()
    await engine.go.wait()
    writer.write(chunk("b") + chunk("", **TAIL) + http_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")


def answers(status: int, body: bytes, content_type: str = "application/json") -> Script:
    """A script that gives one whole answer."""

    async def script(engine: FakeEngine, sent: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)

    return script


@dataclass(frozen=True)
class Scripts:
    """The building blocks of scripts, for the tests."""

    two_words: Script = two_words
    answers: Callable[..., Script] = answers
    chunk: Callable[..., bytes] = chunk
    http_chunk: Callable[[bytes], bytes] = http_chunk
    stream_head: bytes = STREAM_HEAD


@pytest.fixture
def scripts() -> Scripts:
    """The building blocks of scripts."""
    return Scripts()


WorldMaker = Callable[..., contextlib.AbstractAsyncContextManager[World]]


@pytest.fixture
def world(home: Path) -> Iterator[WorldMaker]:
    """Makes a gateway in front of a FAKE engine, both gone when the block ends."""

    @asynccontextmanager
    async def make(
        script: Script = two_words,
        *,
        slots: int = 2,
        limits: Limits | None = None,
        stall: float = 30.0,
        loader: Loader | None = None,
    ) -> AsyncIterator[World]:
        engine = FakeEngine(str(home / "engine.sock"), script)
        server = await asyncio.start_unix_server(engine.handle, engine.socket)
        served = World(engine, slots)
        served.running = [Target("e1", "m", slots, 4096, 1000.0, socket=engine.socket)]
        served.gateway = Gateway(
            served,
            served.publish,
            routes=served.book(home),
            keys=served.ring,
            allowed_hosts=lambda: served.hosts,
            limits=limits,
            loader=loader,
            on_activity=lambda engine_id, active: served.activity.append((engine_id, active)),
        )
        bound = bind_endpoint("127.0.0.1", 0)
        # The system's own buffers would take some MB of an answer.
        bound.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
        protocol = bounded(ConnectionLimits(stall=stall))
        endpoint = HttpServer(served.gateway.app, bound.socket, name="endpoint", protocol=protocol)
        await endpoint.started()
        served.url = f"http://127.0.0.1:{bound.port}"
        try:
            yield served
        finally:
            served.close_book()
            await served.gateway.aclose()
            await endpoint.close()
            server.close()
            os.unlink(engine.socket)
            # The last connections tell the engine on the loop's next turns.
            await asyncio.sleep(0.02)

    yield make  # noqa: PT022
