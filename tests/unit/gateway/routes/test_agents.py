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
