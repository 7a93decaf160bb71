"""A call of a tool or an answer in a form, of an engine that refuses both in one request."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from engine_host.protocol.engines import RequestState

TOOLS = [{"type": "function", "function": {"name": "f"}}]
ASKED: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi"}],
    "tools": TOOLS,
    "response_format": {"type": "json_object"},
}
REFUSED = {"error": {"code": 400, "message": "failed to parse grammar", "type": "invalid_request_error"}}
CALL = {"index": 0, "id": "1", "function": {"name": "f", "arguments": "{}"}}


def frame(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}, separators=(",", ":")).encode() + b"\n\n"


def engine(scripts: Any, both: bool, first: bytes, whole: dict[str, Any]) -> Any:
    """A FAKE llama.cpp: what it does with both, and how it begins with the tools alone."""

    async def script(engine: Any, sent: dict[str, Any], writer: Any) -> None:
        asks_both = "response_format" in sent and sent.get("tool_choice") != "none"
        if asks_both and not both:
            await scripts.answers(400, json.dumps(REFUSED).encode())(engine, sent, writer)
            return
        alone = sent.get("tool_choice") == "none"
        message = {"content": '{"a":1}'} if alone else whole
        is_whole = "return_progress" in sent
        told = frame(message) if alone or is_whole else first
        begin = frame({"role": "assistant", "content": None}) + told
        writer.write(scripts.stream_head)
        for part in (begin, frame({}, "stop"), b"data: [DONE]\n\n"):
            writer.write(scripts.http_chunk(part))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    return script


PROSE = b"".join(frame({"content": f'word {number} "tool_calls":[{{'}) for number in range(60))
CASES = [
    (True, PROSE, {"content": "x"}, "word 0", 1),
    (
        False,
        frame({"content": "I look. "}) + frame({"tool_calls": [CALL]}),
        {"tool_calls": [CALL]},
        '"name"',
        2,
    ),
    (False, PROSE, {"content": "x"}, "word 0", 3),
    (False, frame({"content": "x"}), {"content": None}, "", 3),
    (False, b"data: 7\n\ndata: {\n\n", {"content": 7}, "", 3),
]


@pytest.mark.parametrize(("both", "first", "whole", "words", "requests"), CASES)
@pytest.mark.parametrize("stream", [True, False])
def test_which_it_is_is_known_before_anything_is_sent(
    world: Any, scripts: Any, both: bool, first: bytes, whole: Any, words: str, requests: int, stream: bool
) -> None:
    async def go() -> None:
        async with (
            world(engine(scripts, both, first, whole), slots=1) as served,
            httpx.AsyncClient(base_url=served.url) as client,
        ):
            answer = await client.post("/v1/chat/completions", json={**ASKED, "stream": stream})
            assert answer.status_code == 200
            sent = [body for _, body in served.engine.received]
            assert len(sent) == requests
            assert [(one.get("tool_choice"), "response_format" in one) for one in sent] == [
                (None, True), (None, False), ("none", True),
            ][:requests]  # fmt: skip
            assert all(one["tools"] == TOOLS for one in sent)
            in_form = requests == 3
            assert ('{\\"a\\":1}' in answer.text) == in_form
            if stream:
                assert (words in answer.text) == (not in_form or not words)
                assert answer.text.count('"role":"assistant"') == 1
                assert answer.text.endswith("data: [DONE]\n\n")
            (request,) = served.gateway.request_log.requests()
            assert request.state is RequestState.DONE
            assert served.gateway.request_log.active("e1") == 0

    asyncio.run(go())


@pytest.mark.parametrize("asked", [{"tool_choice": "required"}, {"tool_choice": "none"}, {"tools": []}])
def test_what_asks_for_one_of_both_is_asked_once(world: Any, scripts: Any, asked: dict[str, Any]) -> None:
    async def go() -> None:
        script = scripts.answers(400, json.dumps(REFUSED).encode())
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            answer = await client.post("/v1/chat/completions", json={**ASKED, **asked})
            assert answer.status_code == 400
            assert len(served.engine.received) == 1

    asyncio.run(go())


def test_a_request_that_is_wrong_in_itself_is_refused_once_and_for_all(world: Any, scripts: Any) -> None:
    async def go() -> None:
        script = scripts.answers(400, json.dumps(REFUSED).encode())
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            answer = await client.post("/v1/chat/completions", json=ASKED)
            assert answer.json()["error"]["message"] == "failed to parse grammar"
            assert len(served.engine.received) == 2

    asyncio.run(go())


def test_a_client_that_leaves_while_nothing_is_sent_ends_the_work(world: Any, scripts: Any) -> None:
    async def holds(engine: Any, sent: dict[str, Any], writer: Any) -> None:
        if "response_format" in sent:
            await scripts.answers(400, json.dumps(REFUSED).encode())(engine, sent, writer)
            return
        writer.write(scripts.stream_head + scripts.http_chunk(frame({"role": "assistant"})))
        await writer.drain()
        await engine.go.wait()

    async def go() -> None:
        async with world(holds) as served, httpx.AsyncClient(base_url=served.url) as client:
            with pytest.raises(httpx.ReadTimeout):
                await client.post("/v1/chat/completions", json={**ASKED, "stream": True}, timeout=0.5)
            async with asyncio.timeout(5):
                while not served.engine.hung_up:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert served.gateway.request_log.requests()[0].state is RequestState.CANCELLED

    asyncio.run(go())
