"""Server-sent events over a real socket: resumed, reset, missed, with heartbeats."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.stream import event_stream
from engine_host.core.event_log import EventLog
from engine_host.core.paths import Folders
from engine_host.daemon.http_server import HttpServer
from engine_host.daemon.run_lock import RunLock
from engine_host.protocol.events import EVENT, ModelsChangedEvent
from tests.unit.asynchronous import run, until


@asynccontextmanager
async def served(events: EventLog) -> AsyncIterator[httpx.AsyncClient]:
    """The stream on the control socket."""
    folders = Folders.resolve()
    folders.make_run_folder()
    instance = RunLock(folders)
    instance.claim()

    async def stream(request: Request) -> Response:
        return event_stream(events, request)

    server = HttpServer(Starlette(routes=[Route("/events", stream)]), instance.bind(), name="test")
    try:
        await server.started()
        transport = httpx.AsyncHTTPTransport(uds=str(folders.socket))
        async with httpx.AsyncClient(transport=transport, base_url="http://host", timeout=20) as client:
            yield client
    finally:
        events.close()
        await server.close()
        instance.release()


def filled(count: int, size: int = 100, heartbeat: float = 10.0) -> EventLog:
    events = EventLog(size, heartbeat)
    for _ in range(count):
        events.publish(ModelsChangedEvent())
    return events


async def read(client: httpx.AsyncClient, count: int, **asked: Any) -> list[tuple[str, dict[str, Any]]]:
    """The first events of a stream: their ids and contents."""
    found: list[tuple[str, dict[str, Any]]] = []
    identifier = ""
    async with client.stream("GET", "/events", **asked) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                identifier = line[4:]
            elif line.startswith("data: "):
                EVENT.validate_json(line[6:])
                found.append((identifier, json.loads(line[6:])))
                identifier = ""
                if len(found) == count:
                    break
    return found


def test_resumes_after_a_number_by_query_or_header(home: Path) -> None:
    async def work() -> None:
        async with served(filled(5)) as client:
            for asked in ({"params": {"after": 3}}, {"headers": {"last-event-id": "3"}}):
                assert [(name, one["seq"]) for name, one in await read(client, 2, **asked)] == [
                    ("4", 4),
                    ("5", 5),
                ]
            both = await read(client, 1, params={"after": 0}, headers={"last-event-id": "4"})
            assert both[0][1]["seq"] == 5, "what the client has seen last wins"

    run(work())


@pytest.mark.parametrize(
    "asked",
    [
        {"params": {"after": 99}},
        {"params": {"after": 2}},
        {"params": {"after": -1}},
        {"params": {"after": 19, "run": "another"}},
        {"headers": {"last-event-id": "9" * 500}},
    ],
)
def test_resets_what_cannot_be_resumed(home: Path, asked: dict[str, Any]) -> None:
    async def work() -> None:
        events = filled(20, size=5)
        async with served(events) as client:
            ((name, event),) = await read(client, 1, **asked)
            assert name == "", "an event without a number is none to resume from"
            assert (event["kind"], event["run_id"], event["latest"]) == ("reset", events.run_id, 20)

    run(work())


def test_without_a_number_hears_all_from_its_request_on(home: Path) -> None:
    async def work() -> None:
        events = filled(3)
        async with served(events) as client, client.stream("GET", "/events") as answer:
            # The answer's head is here, so whatever happens now must be told.
            events.publish(ModelsChangedEvent())
            async for line in answer.aiter_lines():
                if line.startswith("id: "):
                    assert line == "id: 4"
                    break

    run(work())


def test_a_header_that_is_no_number_is_ignored(home: Path) -> None:
    async def work() -> None:
        events = filled(3, heartbeat=0.02)
        async with served(events) as client:
            for header in (b"\xb2", b"abc", b""):
                ((_, event),) = await read(client, 1, headers={"last-event-id": header})
                assert event["kind"] == "heartbeat"

    run(work())


def test_beats_while_nothing_happens(home: Path) -> None:
    async def work() -> None:
        async with served(filled(2, heartbeat=0.02)) as client:
            beats = await read(client, 3)
            assert {(name, one["kind"], one["latest"]) for name, one in beats} == {("", "heartbeat", 2)}

    run(work())


def test_who_does_not_keep_up_is_told_what_was_missed(home: Path) -> None:
    async def work() -> None:
        events = filled(1, size=10)
        async with served(events) as client, client.stream("GET", "/events?after=0") as answer:
            # Nobody reads meanwhile: more than the buffers of a socket hold.
            for _ in range(300):
                for _ in range(100):
                    events.publish(ModelsChangedEvent())
                await asyncio.sleep(0)
            events.close()
            place = 0
            missed = 0
            async for line in answer.aiter_lines():
                if not line.startswith("data: "):
                    continue
                event = json.loads(line[6:])
                if event["kind"] == "missed":
                    assert event["first"] == place + 1
                    place = event["last"]
                    missed += 1
                else:
                    assert event["seq"] == place + 1
                    place = event["seq"]
            assert place == events.seq == 30_001
            assert missed

    run(work())


def test_a_client_that_goes_away_leaves_nothing_waiting(home: Path) -> None:
    async def work() -> None:
        events = filled(1)
        async with served(events) as client:
            before = len(asyncio.all_tasks())
            await read(client, 1, params={"after": 0})
            events.publish(ModelsChangedEvent())
            await until(lambda: len(asyncio.all_tasks()) <= before)

    run(work())
