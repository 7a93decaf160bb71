"""Responses to a provider: passed on where it has them, else a chat; clients see the same events."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from engine_host.core import sse
from engine_host.protocol.endpoint.routes import Provider, RouteTargets

LATER = "not here"
ASKED: dict[str, Any] = {"model": "out", "input": "hi", "max_output_tokens": 5}
NATIVE = {
    "id": "resp_theirs", "object": "response", "created_at": 1, "status": "completed", "model": "large",
    "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "native", "annotations": []}]}],
    "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
}  # fmt: skip


def text_of(answer: dict[str, Any]) -> str:
    """Return what an answer says."""
    return "".join(part["text"] for item in answer["output"] for part in item["content"])


def led_out(served: Any, script: Any) -> None:
    """Lead `out` to the FAKE engine as a provider."""
    provider = Provider(url=f"unix:{served.engine.socket}", model="large", context=4096)
    served.routes.put("out", RouteTargets(provider=provider, allow_remote=True))
    served.running, served.engine.script = [], script
    served.engine.go.set()


def chats_alone(scripts: Any, status: int) -> Any:
    """A FAKE provider that has chats, and no Responses."""

    async def script(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        told = json.dumps({"error": {"message": LATER}}).encode()
        chosen = scripts.answers(status, told) if "input" in body else scripts.two_words
        await chosen(engine, body, writer)

    return script


@pytest.mark.parametrize("status", [404, 405, 501])
def test_one_without_responses_is_asked_for_a_chat(world: Any, scripts: Any, status: int) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            led_out(served, chats_alone(scripts, status))
            whole = (await client.post("/v1/responses", json=ASKED)).json()
            assert (text_of(whole), whole["model"], whole["status"]) == ("a b", "out", "completed")
            stream = await client.post("/v1/responses", json={**ASKED, "stream": True})
            told = [json.loads(one.data) for one in sse.messages([stream.content]) if one.data]
            assert (told[0]["type"], told[-1]["type"]) == ("response.created", "response.completed")
            assert [event["sequence_number"] for event in told] == list(range(len(told)))
            answer = told[-1]["response"]
            assert (text_of(answer), answer["usage"]["input_tokens"]) == ("a b", 7)
            asked = [(path, body.get("model")) for path, body in served.engine.received]
            assert asked == [("/v1/responses", "large"), ("/v1/chat/completions", "large")] * 2

    asyncio.run(go())


def test_one_that_has_them_is_asked_for_them_alone(world: Any, scripts: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            led_out(served, scripts.answers(200, json.dumps(NATIVE).encode()))
            answer = (await client.post("/v1/responses", json=ASKED)).json()
            assert (text_of(answer), answer["model"]) == ("native", "out")
            assert len(served.engine.received) == 1

    asyncio.run(go())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("status", "given"), [(400, 400), (401, 502), (500, 500)])
def test_another_refusal_is_told_as_it_is(
    world: Any, scripts: Any, status: int, given: int, stream: bool
) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            led_out(served, chats_alone(scripts, status))
            answer = await client.post("/v1/responses", json={**ASKED, "stream": stream})
            assert answer.status_code == given
            assert len(served.engine.received) == 1

    asyncio.run(go())


def test_a_model_that_is_not_there_is_told_by_the_chat(world: Any, scripts: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            led_out(served, scripts.answers(404, b'{"error": {"message": "no model large"}}'))
            answer = await client.post("/v1/responses", json=ASKED)
            assert answer.status_code == 404
            assert "no model large" in answer.text

    asyncio.run(go())
