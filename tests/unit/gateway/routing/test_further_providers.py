"""A provider that fails gives way to the next, before its answer has begun; and who may ask them at all."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from engine_host.protocol.endpoint.routes import NextProvider, Provider, RouteTargets
from engine_host.protocol.engines import RequestState
from tests.unit.asynchronous import until
from tests.unit.gateway.asking import CHAT, ask, code_of

HELLO = {"model": "out", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}
GONE = "unix:/nowhere/at/all.sock"
PATHS = [CHAT, "/v1/messages", "/api/chat", "/v1/responses"]


def two(script: Any = None, *, first: str = "", second: bool = True, allowed: bool = True) -> Any:
    """Lead `out` to `large` and then to `small`, both the FAKE engine unless `first` is elsewhere."""

    def prepare(served: Any) -> None:
        here = f"unix:{served.engine.socket}"
        large = Provider(url=first or here, model="large", context=4096)
        small = Provider(url=here, model="small", context=4096)
        further = (NextProvider(provider=small, allow_remote=second),)
        served.routes.put("out", RouteTargets(provider=large, allow_remote=allowed, further=further))
        served.running = []
        if script is not None:
            served.engine.script = script

    return prepare


def refuses(scripts: Any, status: int) -> Any:
    """A FAKE provider that refuses `large` with a status, and answers `small`."""

    async def script(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        told = json.dumps({"error": {"message": "not now"}}).encode()
        chosen = scripts.answers(status, told) if body["model"] == "large" else scripts.two_words
        await chosen(engine, body, writer)

    return script


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_one_that_takes_no_connection_gives_way(world: Any, path: str, stream: bool) -> None:
    body = {**HELLO, "input": "hi", "stream": stream}
    answer = ask(world, "POST", path, two(first=GONE), json=body)
    assert answer.status_code == 200
    assert answer.headers["x-sndr-engine"].endswith(".sock"), "who answered is said"
    assert "a " in answer.text
    assert "small" not in answer.text, "a client sees the id that it asked for"


@pytest.mark.parametrize(
    ("status", "gives_way"), [(500, True), (503, True), (429, True), (401, True), (400, False), (404, False)]
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_no_fault_of_the_request_gives_way(
    world: Any, scripts: Any, status: int, gives_way: bool, stream: bool
) -> None:
    seen: list[Any] = []

    def prepare(served: Any) -> None:
        two(refuses(scripts, status))(served)
        seen.append(served)

    answer = ask(world, "POST", CHAT, prepare, json={**HELLO, "stream": stream})
    models = [body["model"] for _, body in seen[0].engine.received]
    assert models == (["large", "small"] if gives_way else ["large"])
    assert answer.status_code == (200 if gives_way else status)
    (request,) = seen[0].gateway.request_log.requests()
    assert request.state is (RequestState.DONE if gives_way else RequestState.FAILED)
    assert request.problem is None or not gives_way
    assert seen[0].activity[-1][1] == 0, "no slot is held"


def test_the_last_failure_is_told_where_all_fail(world: Any, scripts: Any) -> None:
    told = json.dumps({"error": {"message": "broken here"}}).encode()
    answer = ask(world, "POST", CHAT, two(scripts.answers(500, told), first=GONE), json=HELLO)
    assert answer.status_code == 500
    assert "broken here" in answer.text


def test_nothing_goes_on_elsewhere_once_words_have_come(world: Any, scripts: Any) -> None:
    async def breaks(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        writer.write(scripts.stream_head + scripts.chunk("a "))
        await writer.drain()
        writer.close()

    seen: list[Any] = []

    def prepare(served: Any) -> None:
        two(breaks)(served)
        seen.append(served)

    answer = ask(world, "POST", CHAT, prepare, json={**HELLO, "stream": True})
    assert "provider_ended" in answer.text
    assert len(seen[0].engine.received) == 1


def test_one_that_is_not_allowed_is_not_asked(world: Any) -> None:
    answer = ask(world, "POST", CHAT, two(first=GONE, second=False), json=HELLO)
    assert code_of(answer) == (502, "provider_unreachable")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("said", "status"), [("1", 200), ("true", 200), (None, 403), ("0", 403), ("maybe", 400)]
)
def test_a_request_allows_it_for_itself(world: Any, path: str, said: str | None, status: int) -> None:
    headers = {} if said is None else {"X-SNDR-Allow-Remote": said}
    prepare = two(second=False, allowed=False)
    answer = ask(world, "POST", path, prepare, json={**HELLO, "input": "hi"}, headers=headers)
    assert answer.status_code == status


def test_a_request_forbids_what_its_route_allows(world: Any) -> None:
    seen: list[Any] = []

    def prepare(served: Any) -> None:
        two()(served)
        seen.append(served)

    answer = ask(world, "POST", CHAT, prepare, json=HELLO, headers={"X-SNDR-Allow-Remote": "no"})
    assert code_of(answer) == (403, "remote_not_allowed")
    assert seen[0].engine.received == []


def test_a_client_that_leaves_is_asked_nowhere_else(world: Any, scripts: Any) -> None:
    async def slow(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await engine.go.wait()

    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            two(slow)(served)
            asked = asyncio.create_task(client.post(CHAT, json=HELLO))
            await until(lambda: served.engine.received)
            asked.cancel()
            await until(lambda: served.engine.hung_up == 1)
            await until(lambda: not served.gateway.request_log.live())
            assert len(served.engine.received) == 1

    asyncio.run(go())
