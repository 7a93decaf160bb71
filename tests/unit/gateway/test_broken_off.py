"""Whatever ends an engine, each client gets an error in its own form that says what to do; no silent end.

The engine is a FAKE; what it writes was recorded from a real one.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine_host.gateway import Limits
from tests.unit.gateway.test_endings import PATIENCE, until

USER = {"role": "user", "content": "hi"}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [USER], "stream": True},
    "/v1/completions": {"prompt": "a", "stream": True},
    "/v1/responses": {"input": "a", "stream": True},
    "/v1/messages": {"messages": [USER], "max_tokens": 9, "stream": True},
    "/api/chat": {"messages": [USER]},
    "/api/generate": {"prompt": "a"},
}
RECORDED = Path(__file__).parent / "recorded"
BEGUN = {"/v1/responses": "responses-text.sse", "/v1/messages": "messages-text.sse"}


def last_of(path: str, answer: httpx.Response) -> dict[str, Any]:
    """Return the error that an answer ends with, as a client of that path reads it."""
    if answer.status_code != 200:
        told = answer.json()
    elif path.startswith("/api/"):
        told = json.loads(answer.text.strip().splitlines()[-1])
    else:
        *events, data = answer.text.rstrip().rpartition("\n\n")[2].split("\n")
        told = json.loads(data.removeprefix("data: "))
        if path == "/v1/responses":
            assert events == ["event: response.failed"]
            told = told["response"]
        if path == "/v1/messages":
            assert (events, told["type"]) == (["event: error"], "error")
    if path.startswith("/api/"):
        return {**told, "message": told["error"]}
    error: dict[str, Any] = told["error"]
    return error


def check(told: dict[str, Any], code: str, command: str) -> None:
    assert (told["code"], told["src"]) == (code, "sndr"), told
    assert told["message"].endswith(command), told


@pytest.mark.parametrize("path", BODIES)
def test_an_engine_that_dies_while_pings_go_out_or_in_mid_stream(world: Any, scripts: Any, path: str) -> None:
    """A silent one is killed before its answer, another one in the middle of a frame."""

    async def dies(engine: Any, body: Any, writer: asyncio.StreamWriter) -> None:
        if len(engine.received) > 1:
            begun = (RECORDED / BEGUN[path]).read_bytes()[:-200] if path in BEGUN else b""
            writer.write(scripts.stream_head + (scripts.http_chunk(begun) if begun else scripts.chunk("a ")))
            await writer.drain()
        await engine.go.wait()
        writer.transport.abort()

    async def go() -> None:
        async with (
            world(dies, limits=Limits(ping=0.03)) as served,
            httpx.AsyncClient(base_url=served.url, timeout=PATIENCE) as client,
        ):
            for begun in (1, 2):
                served.engine.go.clear()
                task = asyncio.create_task(client.post(path, json=BODIES[path]))
                await until(lambda begun=begun: len(served.engine.received) == begun)
                await asyncio.sleep(0.1)
                served.engine.go.set()
                check(last_of(path, await task), "engine_crashed", "sndr logs m")

    asyncio.run(go())


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    ("end", "code", "command"),
    [
        # Killed; stopped, as a start in its place does; and the whole program closed.
        (lambda gateway: gateway.forget("e1"), "engine_unreachable", "sndr logs m"),
        (lambda gateway: asyncio.ensure_future(gateway.drain("e1", PATIENCE)), "draining", "sndr status"),
        (lambda gateway: asyncio.ensure_future(gateway.aclose()), "engine_stopped", "sndr serve"),
    ],
    ids=["killed", "stopped", "closed"],
)
def test_who_waits_is_told_why_the_engine_is_gone(
    world: Any, path: str, end: Any, code: str, command: str
) -> None:
    async def go() -> None:
        async with (
            world(slots=1) as served,
            httpx.AsyncClient(base_url=served.url, timeout=PATIENCE) as client,
        ):
            chat = {"messages": [USER], "stream": False}
            works = asyncio.create_task(client.post("/v1/chat/completions", json=chat))
            await until(lambda: served.gateway.request_log.active("e1") == 1)
            waits = asyncio.create_task(client.post(path, json=BODIES[path]))
            await until(lambda: served.gateway.request_log.waiting("e1") == 1)
            ended = end(served.gateway)
            check(last_of(path, await waits), code, command)
            served.engine.go.set()
            await works
            if ended is not None:
                await ended
            assert len(served.engine.received) == 1, "who waited reached no engine"

    asyncio.run(go())


def test_an_engine_that_is_stopped_while_it_answers_says_so(world: Any, scripts: Any) -> None:
    async def ends(engine: Any, body: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(scripts.stream_head + scripts.chunk("a "))
        await writer.drain()
        await engine.go.wait()
        writer.transport.abort()

    async def go() -> None:
        path = "/v1/chat/completions"
        async with world(ends) as served, httpx.AsyncClient(base_url=served.url, timeout=PATIENCE) as client:
            task = asyncio.create_task(client.post(path, json=BODIES[path]))
            await until(lambda: served.engine.active == 1)
            draining = asyncio.create_task(served.gateway.drain("e1", PATIENCE))
            await asyncio.sleep(0)
            served.engine.go.set()
            check(last_of(path, await task), "engine_stopped", "sndr status")
            assert await draining

    asyncio.run(go())


def test_a_clients_connection_outlives_an_engine(world: Any, scripts: Any) -> None:
    """One dies before its answer, and another one of the same name takes its place: nobody is reset."""

    async def dies(engine: Any, body: Any, writer: asyncio.StreamWriter) -> None:
        if len(engine.received) == 2:
            writer.transport.abort()
            return
        await scripts.two_words(engine, body, writer)

    async def go() -> None:
        path, body = "/v1/chat/completions", {"messages": [USER]}
        async with world(dies) as served, httpx.AsyncClient(base_url=served.url, timeout=PATIENCE) as client:
            served.engine.go.set()
            ends = set()
            for status in (200, 502, 503, 200):
                engines, served.running = served.running, [] if status == 503 else served.running
                answer = await client.post(path, json=body)
                served.running = engines
                assert answer.status_code == status
                ends.add(answer.extensions["network_stream"].get_extra_info("client_addr"))
            assert len(ends) == 1

    asyncio.run(go())
