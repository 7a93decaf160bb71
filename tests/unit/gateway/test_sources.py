"""Who an error in the middle of a stream is of, in each form: the gateway says so of its own."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

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
            plain = path in ("/v1/chat/completions", "/v1/completions")
            # Where its form is the client's, an engine's own frame is passed on as it wrote it.
            assert told == ([] if plain and source == "engine" else [source])

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
