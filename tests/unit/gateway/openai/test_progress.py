"""Progress with a long prompt is asked for, told of, and kept from a client that did not ask for it."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from engine_host.gateway.openai.progress import ProgressFilter, is_long, with_progress
from engine_host.protocol.engines import RequestState

CHAT = "/v1/chat/completions"
LONG: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": 'word "prompt_progress": ' * 2000}],
    "stream": True,
}
ROLE = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None}]}


def frame(**more: Any) -> bytes:
    return b"data: " + json.dumps({**ROLE, **more}, separators=(",", ":")).encode() + b"\n\n"


def told(done: int) -> bytes:
    return frame(prompt_progress={"total": 4000, "cache": 0, "processed": done, "time_ms": 5})


def test_a_long_prompt_tells_its_progress_and_the_client_sees_nothing_of_it(world: Any, scripts: Any) -> None:
    async def script(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        assert body["return_progress"] is True
        writer.write(scripts.stream_head + scripts.http_chunk(told(0)) + scripts.http_chunk(told(1000)))
        await writer.drain()
        await engine.go.wait()
        writer.write(scripts.http_chunk(frame()) + scripts.chunk('a "prompt_progress": 5'))
        writer.write(scripts.http_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    async def go() -> None:
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            asked = asyncio.create_task(client.post(CHAT, json=LONG))
            async with asyncio.timeout(5):
                while True:
                    requests = served.gateway.request_log.requests()
                    if requests and requests[0].prefill_tokens == 1000:
                        break
                    await asyncio.sleep(0.005)
            assert (requests[0].state, requests[0].prefill_of) == (RequestState.PREFILL, 4000)
            served.engine.go.set()
            answer = await asked
            frames = answer.text.removesuffix("\n\n").split("\n\n")
            assert len(frames) == 3
            assert json.loads(frames[0][6:]) == ROLE
            assert "prompt_progress" in json.loads(frames[1][6:])["choices"][0]["delta"]["content"]

    asyncio.run(go())


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages", "/api/chat"])
def test_other_forms_tell_it_too(world: Any, scripts: Any, path: str) -> None:
    def event(kind: str, **more: Any) -> Any:
        value = {"type": kind, "response": {"id": "r", "object": "response"}, **more}
        return scripts.http_chunk(f"event: {kind}\ndata: {json.dumps(value)}\n\n".encode())

    is_response = path == "/v1/responses"

    async def script(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        assert body["return_progress"] is True
        writer.write(scripts.stream_head)
        progress = {"total": 4000, "cache": 0, "processed": 1000, "time_ms": 5}
        if is_response:
            writer.write(event("response.created") + event("response.in_progress", prompt_progress=progress))
        else:
            writer.write(scripts.http_chunk(told(1000)))
        await writer.drain()
        await engine.go.wait()
        end = event("response.completed") if is_response else scripts.http_chunk(b"data: [DONE]\n\n")
        writer.write(end + b"0\r\n\r\n")

    async def go() -> None:
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            asked = asyncio.create_task(
                client.post(path, json={**LONG, "max_tokens": 9, "input": "word " * 6000})
            )
            async with asyncio.timeout(5):
                while not any(one.prefill_tokens for one in served.gateway.request_log.requests()):  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
            (request,) = served.gateway.request_log.requests()
            assert (request.prefill_tokens, request.prefill_of) == (1000, 4000)
            served.engine.go.set()
            answer = await asked
            assert "prompt_progress" not in answer.text
            if path == "/v1/messages":
                first, *_, last = answer.text.removesuffix("\n\n").split("\n\n")
                assert '"usage":{"input_tokens":4000,"output_tokens":0' in first
                assert last.startswith("event: message_stop")
                assert served.engine.received[0][0] == CHAT

    asyncio.run(go())


def test_only_long_streams_are_asked_so() -> None:
    raw = json.dumps(LONG).encode()
    assert is_long(raw, LONG)
    assert json.loads(with_progress(b" " + raw)) == {**LONG, "return_progress": True}
    assert not is_long(b"{}", LONG)
    assert not is_long(raw, {**LONG, "stream": False})
    assert not is_long(raw, {**LONG, "return_progress": False})


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_frames_come_in_any_pieces(size: int) -> None:
    rest = frame() + b": ping\n\n" + b"data: [DONE]\n\n" + b"rest"
    stream = told(0) + b": ping\n\n" + told(2000) + told(4000) + rest
    passage = ProgressFilter()
    pieces = [passage.feed(stream[place : place + size]) for place in range(0, len(stream), size)]
    assert b"".join([*pieces, passage.end()]) == b": ping\n\n" + rest
