"""Tokens are counted in OpenAI's forms, on both engines."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

CHAT = {
    "model": "m",
    "messages": [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}],
    "n": 1,
}
ORDERED = [{"role": "user", "content": "a\n\nb"}]
PATH = "/v1/chat/completions/input_tokens"


@pytest.mark.parametrize(
    ("of_vllm", "answer", "expected"),
    [
        (
            False,
            {"input_tokens": 9, "object": "response.input_tokens"},
            (PATH, {**CHAT, "messages": ORDERED}),
        ),
        (True, {"count": 9, "tokens": []}, ("/tokenize", {"model": "m", "messages": ORDERED})),
    ],
)
def test_a_chats_tokens(world: Any, scripts: Any, of_vllm: bool, answer: Any, expected: Any) -> None:
    async def go() -> None:
        script = scripts.answers(200, json.dumps(answer).encode())
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            served.running[:] = [
                replace(served.running[0], usage_on_request=of_vllm, native_infill=not of_vllm)
            ]
            told = await client.post(PATH, json=CHAT)
            assert told.json() == {"input_tokens": 9, "object": "response.input_tokens"}
            assert served.engine.received == [expected]

    asyncio.run(go())


@pytest.mark.parametrize("body", [b"7", b"{}", b"{"])
def test_a_count_of_another_form_is_the_engines_fault(world: Any, scripts: Any, body: bytes) -> None:
    async def go() -> None:
        async with (
            world(scripts.answers(200, body)) as served,
            httpx.AsyncClient(base_url=served.url) as client,
        ):
            served.running[:] = [replace(served.running[0], usage_on_request=True, native_infill=False)]
            assert (await client.post(PATH, json=CHAT)).status_code == 502

    asyncio.run(go())


def test_vllm_counts_a_response_as_a_chat(world: Any, scripts: Any) -> None:
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    asked = {"model": "m", "input": "hi", "instructions": "b", "tools": [tool], "max_output_tokens": 9}

    async def go() -> None:
        script = scripts.answers(200, b'{"count": 9, "tokens": []}')
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            served.running[:] = [replace(served.running[0], usage_on_request=True, native_infill=False)]
            told = await client.post("/v1/responses/input_tokens", json=asked)
            assert told.json() == {"input_tokens": 9, "object": "response.input_tokens"}
            ((path, body),) = served.engine.received
            assert (path, set(body)) == ("/tokenize", {"model", "messages", "tools"})
            assert [one["role"] for one in body["messages"]] == ["system", "user"]
            assert body["tools"][0]["function"]["name"] == "f"

    asyncio.run(go())
