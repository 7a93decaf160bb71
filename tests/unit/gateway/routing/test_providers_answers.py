"""Requests to a provider: what it gets, what comes back in each form, and what becomes of its failures."""

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from engine_host.gateway import Limits, upstream
from engine_host.gateway.directory import Target
from engine_host.gateway.inspection.assembled import assembled
from engine_host.gateway.inspection.inspected import inspected
from engine_host.protocol.endpoint.routes import Provider, RouteTargets
from engine_host.protocol.errors import Reason
from tests.unit.asynchronous import until
from tests.unit.gateway.asking import CHAT, ask

KEY = "sk-secret-of-a-person"
HELLO = {"model": "out", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}
REDIRECT = b"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:1/v1\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider's key in the environment."""
    monkeypatch.setenv("SNDR_TEST_KEY", KEY)


def lead_out(script: Any = None) -> Callable[[Any], None]:
    """Lead the id `out` to the FAKE engine as a provider."""

    def prepare(served: Any) -> None:
        provider = Provider(
            url=f"unix:{served.engine.socket}", model="large", key_variable="SNDR_TEST_KEY", context=4096
        )
        served.routes.put("out", RouteTargets(provider=provider, allow_remote=True))
        served.running = []
        if script is not None:
            served.engine.script = script

    return prepare


def test_it_gets_its_own_name_and_path_and_the_client_the_one_it_asked_for(world: Any) -> None:
    seen: list[Any] = []

    def prepare(served: Any) -> None:
        lead_out()(served)
        seen.append(served)

    answer = ask(world, "POST", CHAT, prepare, json=HELLO)
    served = seen[0]
    assert answer.status_code == 200
    assert answer.json()["model"] == "out"
    assert answer.headers["x-sndr-engine"] == served.engine.socket
    path, body = served.engine.received[0]
    assert (path, body["model"]) == ("/v1/chat/completions", "large")
    assert served.events[-1].request.provider == served.engine.socket
    assert served.events[-1].request.model == "out"
    assert KEY not in "".join(event.model_dump_json() for event in served.events)


def test_a_target_that_is_printed_shows_no_key() -> None:
    assert KEY not in repr(Target("engine", "name", 1, 4096, 0.0, url="http://127.0.0.1:1", key=KEY))


@pytest.mark.parametrize("path", ["/v1/messages", "/api/chat", CHAT])
@pytest.mark.parametrize("stream", [False, True])
def test_every_form_of_a_chat(world: Any, path: str, stream: bool) -> None:
    answer = ask(world, "POST", path, lead_out(), json={**HELLO, "stream": stream})
    assert answer.status_code == 200
    assert '"model": "out"' in answer.text or '"model":"out"' in answer.text
    assert "large" not in answer.text
    assert "a " in answer.text


@pytest.mark.parametrize("path", ["/v1/messages", "/api/chat", CHAT, "/v1/responses"])
def test_a_refused_key_is_no_fault_of_the_clients(world: Any, scripts: Any, path: str) -> None:
    told = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}", "code": "no"}}).encode()
    body = {**HELLO, "input": "hi"}
    answer = ask(world, "POST", path, lead_out(scripts.answers(401, told)), json=body)
    assert answer.status_code == 502
    assert "provider_refused_key" in answer.text
    assert KEY not in answer.text


@pytest.mark.parametrize(
    ("status", "given", "code"),
    [(429, 429, "rate_limit"), (500, 500, "rate_limit"), (400, 400, "rate_limit"), (600, 502, "rate_limit")],
)
def test_its_failures_keep_their_status_without_its_key(
    world: Any, scripts: Any, status: int, given: int, code: str
) -> None:
    told = json.dumps({"error": {"message": f"Slow down, {KEY}", "code": code}}).encode()
    answer = ask(world, "POST", CHAT, lead_out(scripts.answers(status, told)), json=HELLO)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["src"]) == (given, code, "provider")
    assert error["provider_status"] == status
    assert KEY not in answer.text


@pytest.mark.parametrize("path", ["/v1/messages", "/api/chat", CHAT])
def test_a_failure_in_mid_stream_shows_no_key(world: Any, scripts: Any, path: str) -> None:
    seen: list[Any] = []

    async def fails(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        told = json.dumps({"error": {"message": f"broke with {KEY}", "code": "x"}}).encode()
        writer.write(scripts.stream_head + scripts.chunk("a "))
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.write(scripts.http_chunk(b"data: " + told + b"\n\n") + b"0\r\n\r\n")

    def prepare(served: Any) -> None:
        lead_out(fails)(served)
        seen.append(served)

    answer = ask(world, "POST", path, prepare, json={**HELLO, "stream": True})
    assert "broke with" in answer.text
    assert KEY not in answer.text
    problem = seen[0].events[-1].request.problem
    assert problem is not None
    assert problem.reason is Reason.PROVIDER_FAILED
    assert KEY not in problem.model_dump_json()


@pytest.mark.parametrize("path", ["/v1/messages", "/api/chat", CHAT])
def test_an_answer_that_holds_an_error_shows_no_key(world: Any, scripts: Any, path: str) -> None:
    said = {"role": "assistant", "content": f"your key is {KEY}"}
    told = {"error": {"message": f"broke with {KEY}"}, "model": "large", "choices": [{"message": said}]}
    answer = ask(world, "POST", path, lead_out(scripts.answers(200, json.dumps(told).encode())), json=HELLO)
    assert answer.status_code == 200
    assert KEY not in answer.text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [200, 401])
def test_a_key_in_two_pieces_is_neither_passed_on_nor_captured(
    world: Any, scripts: Any, stream: bool, status: int
) -> None:
    async def in_two(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        head = scripts.stream_head.replace(b"200 OK", f"{status} X".encode())
        frame = scripts.chunk(f"a {KEY} b").split(b"\r\n", 1)[1].removesuffix(b"\r\n")
        if not stream:
            head = head.replace(b"text/event-stream", b"application/json")
            frame = frame.removeprefix(b"data: ")
        middle = frame.index(KEY.encode()) + 7
        writer.write(head + scripts.http_chunk(frame[:middle]))
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.write(scripts.http_chunk(frame[middle:]) + b"0\r\n\r\n")

    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            lead_out(in_two)(served)
            served.gateway.captures.start(60)
            hello = {**HELLO, "stream": stream, "user": KEY}
            answer = await client.post(CHAT, json=hello)
            shown = inspected(served.gateway.captures.of(answer.headers["x-request-id"]), served.url)
            assert "a *** b" in shown.engine_answer.text
            assert KEY not in answer.text + shown.model_dump_json()
            if status == 200:
                assert "a *** b" in answer.text

    asyncio.run(go())


@pytest.mark.parametrize("path", ["/v1/messages", "/api/chat", CHAT, "/v1/responses"])
@pytest.mark.parametrize("size", [1, 3, 8])
def test_a_key_that_comes_word_by_word_is_hidden(world: Any, scripts: Any, path: str, size: int) -> None:
    words = f"s {KEY} and sk-"

    async def by_words(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        writer.write(scripts.stream_head)
        for at in range(0, len(words), size):
            writer.write(scripts.chunk(words[at : at + size]))
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        writer.write(scripts.chunk("", **end) + scripts.http_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            lead_out(by_words)(served)
            served.gateway.captures.start(60)
            answer = await client.post(path, json={**HELLO, "input": "hi", "stream": True})
            assert assembled(answer.content).split("\n")[-1] == "s *** and sk-"
            (request,) = served.gateway.request_log.requests()
            shown = inspected(served.gateway.captures.of(request.id), served.url)
            said = assembled(shown.engine_answer.text.encode())
            assert said == "s *** and sk-"

    asyncio.run(go())


def test_a_key_that_is_written_with_escapes_is_hidden(world: Any, scripts: Any) -> None:
    written = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    told = json.dumps({"choices": [{"message": {"role": "assistant", "content": "a KEY b"}}]})
    script = scripts.answers(200, told.replace("KEY", written).encode())
    answer = ask(world, "POST", CHAT, lead_out(script), json=HELLO)
    assert answer.json()["choices"][0]["message"]["content"] == "a *** b"


def test_it_cannot_send_requests_and_the_key_elsewhere(world: Any) -> None:
    async def elsewhere(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        writer.write(REDIRECT)

    answer = ask(world, "POST", CHAT, lead_out(elsewhere), json=HELLO)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "provider_redirected")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider is given up soon; the pings to the client come more often than that."""
    monkeypatch.setattr(upstream, "_LONGEST_SILENCE", 0.2)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("path", ["/v1/messages", "/api/chat", CHAT, "/v1/responses"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("begins", [False, True])
def test_one_that_falls_silent_is_given_up(
    world: Any, scripts: Any, path: str, stream: bool, begins: bool
) -> None:
    async def falls_silent(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if begins:
            writer.write(scripts.stream_head + scripts.chunk("a "))
        await engine.go.wait()

    async def go() -> tuple[httpx.Response, Any]:
        async with world(limits=Limits(ping=0.02)) as served:
            lead_out(falls_silent)(served)
            async with httpx.AsyncClient(base_url=served.url, timeout=10) as client:
                answer = await client.post(path, json={**HELLO, "input": "hi", "stream": stream})
            await until(lambda: served.engine.hung_up == 1)
            assert served.activity[-1] == ("route:out", 0), "its slot is free"
            return answer, served.events[-1].request

    answer, request = asyncio.run(go())
    begun = stream and (begins or path != "/api/chat")
    assert answer.status_code == (200 if begun else 504)
    assert "has sent nothing for out" in answer.text
    assert request.problem.reason is Reason.PROVIDER_FAILED


@pytest.mark.usefixtures("impatient")
def test_one_that_is_slow_and_an_engine_here_are_waited_for(world: Any, scripts: Any) -> None:
    async def slow(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        writer.write(scripts.stream_head)
        for _ in range(6):
            await asyncio.sleep(0.08)
            writer.write(scripts.chunk("a "))
        if body["model"] == "m":
            await asyncio.sleep(0.5)
        writer.write(scripts.http_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    def run_both(served: Any) -> None:
        running = served.running
        lead_out(slow)(served)
        served.running = running

    for model in ("out", "m"):
        answer = ask(world, "POST", CHAT, run_both, json={**HELLO, "model": model, "stream": True})
        assert answer.text.count("a ") == 6
        assert "[DONE]" in answer.text


@pytest.mark.parametrize("provider", ["there", None])
def test_the_system_probes_connections_to_providers(provider: str | None) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await reader.read()
        writer.close()

    async def go() -> list[int]:
        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        target = Target("e", "m", 1, 4096, 1.0, url=f"http://127.0.0.1:{port}/v1", provider=provider)
        async with await upstream.Upstream.open(target, "GET", "/v1/models") as opened:
            await opened.head()
            assert opened._transport is not None
            found = opened._transport.get_extra_info("socket")
            told = [found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)]
            told.append(found.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT))
        server.close()
        await asyncio.sleep(0.02)
        return told

    probes, count = asyncio.run(go())
    assert bool(probes) is (provider is not None)
    assert provider is None or count == 3


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}/\u4e2d", "http://exa..mple.com:{port}"])
def test_what_cannot_be_written_makes_no_connection(url: str) -> None:
    async def go() -> None:
        made: list[asyncio.StreamWriter] = []

        async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            made.append(writer)
            writer.close()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        target = Target("e", "m", 1, 4096, 1.0, url=url.format(port=port), provider="there")
        with pytest.raises(upstream.UpstreamLostError):
            await upstream.Upstream.open(target, "POST", CHAT, b"{}")
        _, witness = await asyncio.open_connection("127.0.0.1", port)
        await until(lambda: made)
        assert len(made) == 1, "the witness alone"
        witness.close()
        server.close()

    asyncio.run(go())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("junk", "code"),
    [
        (b"", "provider_ended"),
        (b"HTTP/1.1 200 OK\r\n", "provider_ended"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "provider_ended"),
        (b"\x00\xff nothing\r\n\r\n", "provider_unreadable"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "provider_unreadable"),
    ],
)
def test_what_is_no_answer_is_an_error(world: Any, junk: bytes, code: str, stream: bool) -> None:
    async def odd(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        writer.write(junk)

    answer = ask(world, "POST", CHAT, lead_out(odd), json={**HELLO, "stream": stream})
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, code)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provided", [False, True])
def test_what_comes_before_an_answer_is_left_out(
    world: Any, scripts: Any, provided: bool, stream: bool
) -> None:
    async def hints(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.02)
        engine.go.set()
        await scripts.two_words(engine, body, writer)

    def prepare(served: Any) -> None:
        if provided:
            lead_out(hints)(served)
        served.engine.script = hints

    body = {**HELLO, "model": "out" if provided else "m", "stream": stream}
    answer = ask(world, "POST", CHAT, prepare, json=body)
    assert answer.status_code == 200
    assert "a " in answer.text
    assert "[DONE]" in answer.text or not stream


def test_no_connection_is_an_error(world: Any) -> None:
    def prepare(served: Any) -> None:
        provider = Provider(url="http://127.0.0.1:1/v1", model="large", context=4096)
        served.routes.put("out", RouteTargets(provider=provider, allow_remote=True))

    answer = ask(world, "POST", CHAT, prepare, json=HELLO)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "provider_unreachable")


def test_what_no_provider_has_is_said(world: Any) -> None:
    for path, body in (("/tokenize", {"content": "a"}), ("/v1/messages/count_tokens", HELLO)):
        answer = ask(world, "POST", path, lead_out(), json={"model": "out", **body})
        assert answer.status_code == 404
        assert "route_unsupported" in answer.text


def test_a_client_that_leaves_ends_the_providers_work(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            lead_out()(served)
            async with client.stream("POST", CHAT, json={**HELLO, "stream": True}) as answer:
                async for _ in answer.aiter_bytes():
                    break
            await until(lambda: served.engine.hung_up == 1)

    asyncio.run(go())
