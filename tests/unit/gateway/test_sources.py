"""Who an error in the middle of a stream is of, in each form: the gateway says so of its own."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from engine_host.protocol.endpoint.routes import Provider, RouteTargets
from engine_host.protocol.errors import Reason

SAID = b'data: {"error":{"message":"EngineCore is gone","type":"server_error","code":500}}\n\n'
MESSAGE = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
FORMS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": MESSAGE,
    "/v1/completions": {"model": "m", "prompt": "x", "stream": True},
    "/v1/responses": {"model": "m", "input": "x", "stream": True},
    "/v1/messages": {**MESSAGE, "max_tokens": 9},
    "/api/chat": MESSAGE,
    "/api/generate": {"model": "m", "prompt": "x", "stream": True},
}


def sources(text: str) -> list[str]:
    """Return who each error of an answer is of, wherever the form has it."""

    def within(value: Any) -> list[str]:
        if isinstance(value, list):
            return [one for part in value for one in within(part)]
        if not isinstance(value, dict):
            return []
        own = [value["src"]] if "src" in value else []
        return own + [one for part in value.values() for one in within(part)]

    lines = [line.removeprefix("data: ") for line in text.split("\n")]
    return [one for line in lines if line.startswith("{") for one in within(json.loads(line))]


@pytest.mark.parametrize("llamacpp", [True, False])
@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize(("health", "source"), [(503, "sndr"), (200, "engine")])
def test_a_crash_is_told_by_the_gateway_and_a_failure_by_the_engine(
    world: Any, scripts: Any, path: str, llamacpp: bool, health: int, source: str
) -> None:
    async def breaks(engine: Any, body: dict[str, Any], writer: Any) -> None:
        if engine.received[-1][0] == "/health":
            await scripts.answers(health, b"")(engine, body, writer)
            return
        writer.write(scripts.stream_head + scripts.http_chunk(SAID) + b"0\r\n\r\n")

    async def go() -> None:
        async with world(breaks) as served, httpx.AsyncClient(base_url=served.url) as client:
            kind = {"usage_on_request": not llamacpp, "native_infill": llamacpp}
            served.running[:] = [replace(served.running[0], **kind)]
            told = sources((await client.post(path, json=FORMS[path])).text)
            assert told == [source]

    asyncio.run(go())


CUT = SAID.index(b"EngineCore")
OPENROUTER = (
    b'data: {"id":"g","choices":[{"delta":{},"finish_reason":"error"}],'
    b'"error":{"message":"EngineCore is gone","code":502}}\n\n'
)


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize(
    "pieces",
    [
        (SAID,),
        (SAID[:9], SAID[9:CUT], SAID[CUT:]),
        (SAID.replace(b"\n", b"\r\n"),),
        (SAID[:-2],),
        (OPENROUTER,),
    ],
    ids=["whole", "in pieces", "lines of HTTP", "without an end", "beside a choice"],
)
def test_a_providers_error_in_mid_stream_is_its_own(
    world: Any, scripts: Any, path: str, pieces: tuple[bytes, ...]
) -> None:
    async def breaks(engine: Any, body: dict[str, Any], writer: Any) -> None:
        if path == "/v1/responses" and engine.received[-1][0] == path:
            await scripts.answers(404, b"")(engine, body, writer)
            return
        writer.write(scripts.stream_head + scripts.chunk("a ", error=None))
        for piece in pieces:
            writer.write(scripts.http_chunk(piece))
            await writer.drain()
            await asyncio.sleep(0.02)
        writer.write(b"0\r\n\r\n")

    async def go() -> None:
        async with world(breaks) as served, httpx.AsyncClient(base_url=served.url) as client:
            lead_out(served)
            text = (await client.post(path, json=FORMS[path])).text
            assert sources(text) == ["provider"], text
            assert f"{served.engine.socket} broke off its answer for m: EngineCore is gone" in text
            problem = served.events[-1].request.problem
            assert problem is not None
            assert problem.reason is Reason.PROVIDER_FAILED

    asyncio.run(go())


@pytest.mark.parametrize("provider", [True, False])
def test_an_answer_of_responses_that_failed_says_whose_failure_it_is(
    world: Any, scripts: Any, provider: bool
) -> None:
    """Another program of this name may answer, and speak of itself as this one does."""
    failed = {"id": "r", "status": "failed", "error": {"code": "gone", "message": "is gone", "src": "sndr"}}
    event = {"type": "response.failed", "sequence_number": 3, "response": failed}

    async def fails(engine: Any, body: dict[str, Any], writer: Any) -> None:
        frame = f"event: response.failed\ndata: {json.dumps(event)}\n\n".encode()
        writer.write(scripts.stream_head + scripts.http_chunk(frame) + b"0\r\n\r\n")

    async def go() -> None:
        async with world(fails) as served, httpx.AsyncClient(base_url=served.url) as client:
            if provider:
                lead_out(served)
            text = (await client.post("/v1/responses", json=FORMS["/v1/responses"])).text
            assert sources(text)[-1] == ("provider" if provider else "sndr")
            assert "event: response.failed" in text
            assert '"code":"gone"' in text
            assert "is gone" in text

    asyncio.run(go())


def lead_out(served: Any) -> None:
    """Lead the id `m` to the FAKE engine as a provider."""
    provider = Provider(url=f"unix:{served.engine.socket}", model="large", context=4096)
    served.routes.put("m", RouteTargets(provider=provider, allow_remote=True))
    served.running.clear()


NO_CREDITS = b'{"error":{"message":"no credits","code":402}}'
IS_GONE = b'{"error":{"message":"EngineCore is gone","code":"down"}}'


@pytest.mark.parametrize(
    ("path", "told", "status", "code"),
    [
        *((path, NO_CREDITS, 402, "402") for path in FORMS),
        *((path, IS_GONE, 502, "down") for path in FORMS),
        ("/v1/messages", b'{"choices": 7}', 502, "provider_unreadable"),
    ],
)
def test_an_error_in_the_place_of_a_whole_answer_is_the_providers(
    world: Any, scripts: Any, path: str, told: bytes, status: int, code: str
) -> None:
    async def go() -> None:
        async with (
            world(scripts.answers(200, told)) as served,
            httpx.AsyncClient(base_url=served.url) as client,
        ):
            lead_out(served)
            answer = await client.post(path, json={**FORMS[path], "stream": False})
            assert (answer.status_code, sources(answer.text)) == (status, ["provider"]), answer.text
            assert code in answer.text

    asyncio.run(go())


def test_a_stream_with_lines_of_http_goes_on_as_it_comes(world: Any, scripts: Any) -> None:
    """What the client has read is told before the provider writes on."""

    async def writes(engine: Any, body: dict[str, Any], writer: Any) -> None:
        writer.write(scripts.stream_head)
        for word in ("a ", "b "):
            frame = b"data: " + json.dumps({"choices": [{"delta": {"content": word}}]}).encode() + b"\r\n\r\n"
            writer.write(scripts.http_chunk(frame[:-1]) + scripts.http_chunk(frame[-1:]))
            await writer.drain()
            await engine.go.wait()
        writer.write(scripts.http_chunk(b"data: [DONE]\r\n\r\n") + b"0\r\n\r\n")

    async def go() -> None:
        async with world(writes) as served, httpx.AsyncClient(base_url=served.url) as client:
            lead_out(served)
            text = ""
            async with client.stream("POST", "/v1/messages", json=FORMS["/v1/messages"]) as answer:
                async for line in answer.aiter_lines():
                    text += line
                    if '"a "' in line:
                        served.engine.go.set()
            assert served.engine.go.is_set()
            assert '"b "' in text
            assert "message_stop" in text

    asyncio.run(go())


@pytest.mark.parametrize("status", [500, 400])
def test_a_schema_that_an_engine_cannot_keep_is_refused_before_a_completion(
    world: Any, scripts: Any, status: int
) -> None:
    async def engine(engine: Any, body: dict[str, Any], writer: Any) -> None:
        said = b'{"error":{"code":500,"message":"unrecognized type foo","type":"server_error"}}'
        if engine.received[-1][0] == "/apply-template":
            await scripts.answers(status, said)(engine, body, writer)
            return
        await scripts.answers(200, b"{}")(engine, body, writer)

    async def go() -> None:
        async with world(engine) as served, httpx.AsyncClient(base_url=served.url) as client:
            served.running[:] = [replace(served.running[0], native_infill=True)]
            asked = {"model": "m", "prompt": "x", "json_schema": {"type": "foo"}}
            answer = await client.post("/v1/completions", json=asked)
            assert answer.status_code == 400
            assert answer.json()["error"]["message"] == "unrecognized type foo"
            assert [path for path, _ in served.engine.received] == ["/apply-template"]
            assert served.activity[-1] == ("e1", 0)
            plain = {"model": "m", "prompt": "x"}
            assert (await client.post("/v1/completions", json=plain)).status_code == 200

    asyncio.run(go())
