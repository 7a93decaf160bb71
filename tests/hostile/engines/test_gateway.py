"""A hostile engine behind the real endpoint: each answer ends, and each slot is free again."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import strategies as st

from engine_host.daemon.http_server import HttpServer
from engine_host.gateway import Gateway, Target, bind_endpoint
from engine_host.protocol.events import EventBase
from tests.hostile.effort import fuzz
from tests.hostile.making import http

pytestmark = pytest.mark.fuzz
MESSAGES = [{"role": "user", "content": "hi"}]
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/chat/completions", {"messages": MESSAGES}),
    ("/v1/chat/completions", {"messages": MESSAGES, "stream": True}),
    ("/v1/completions", {"prompt": "a", "logprobs": 1}),
    ("/v1/completions", {"prompt": "a", "logprobs": 1, "stream": True}),
    ("/v1/completions", {"prompt": "a", "suffix": "b"}),
    ("/v1/completions", {"prompt": "a", "suffix": "b", "stream": True}),
    ("/v1/messages", {"messages": MESSAGES, "max_tokens": 5, "stream": True}),
)


class Directory:
    """One engine that runs."""

    def __init__(self, socket: str) -> None:
        self.running = [
            Target("e1", "m", 2, 4096, 1000.0, socket=socket, fill_in_the_middle=True, usage_on_request=usage)
            for usage in (False,)
        ]

    def targets(self) -> list[Target]:
        return self.running

    def starting(self) -> tuple[str, ...]:
        return ()


def test_answers_end_and_slots_are_free() -> None:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _loop, _context: None)
    answer = [b""]
    active = {"e1": 0}

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer[0])
        writer.close()

    def publish(event: EventBase) -> None:
        """Every event can be sent."""
        type(event).model_validate_json(event.model_dump_json())

    async def asked(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> None:
        async with asyncio.timeout(10):
            try:
                got = await client.post(path, json={"model": "m", **body})
            except httpx.RemoteProtocolError:
                # A stream that broke off after it had begun.
                return
        assert got.status_code == 200 or 400 <= got.status_code < 600
        if got.status_code >= 400:
            error = got.json()["error"]
            assert error["message"]
            assert error["code"] != "internal_error", error

    with tempfile.TemporaryDirectory() as folder:
        socket = str(Path(folder) / "e.sock")
        engine = loop.run_until_complete(asyncio.start_unix_server(handle, socket))

        async def begin() -> tuple[Gateway, HttpServer, httpx.AsyncClient]:
            gateway = Gateway(
                Directory(socket),
                publish,
                allowed_hosts=frozenset,
                on_activity=lambda engine_id, count: active.update({engine_id: count}),
            )
            bound = bind_endpoint("127.0.0.1", 0)
            server = HttpServer(gateway.app, bound.socket, name="endpoint")
            await server.started()
            return gateway, server, httpx.AsyncClient(base_url=f"http://127.0.0.1:{bound.port}")

        gateway, server, client = loop.run_until_complete(begin())

        def check(made: tuple[int, bytes]) -> None:
            answer[0] = made[1]
            loop.run_until_complete(asked(client, *ASKED[made[0]]))
            assert active["e1"] == 0
            assert all(request.ended_at for request in gateway.request_log.requests())

        body = st.one_of(http.streams, http.chunks, http.bodies)
        try:
            fuzz(
                "a hostile engine behind the endpoint",
                st.tuples(st.integers(0, 6), http.answers_with(body)),
                check,
            )
        finally:
            loop.run_until_complete(client.aclose())
            loop.run_until_complete(gateway.aclose())
            loop.run_until_complete(server.close())
            engine.close()
            loop.run_until_complete(asyncio.sleep(0.05))
            loop.close()
