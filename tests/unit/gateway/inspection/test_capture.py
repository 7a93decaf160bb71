"""Texts of requests are kept only when asked for, in memory, bounded, and without secrets."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from engine_host.gateway.inspection import capture as captures_module
from engine_host.gateway.inspection.assembled import assembled
from engine_host.gateway.inspection.capture import Capture, Captures
from engine_host.gateway.inspection.inspected import inspected
from tests.unit.asynchronous import until

CHAT = "/v1/chat/completions"
KEY = "sk-proj-0123456789abcdefABCDEF"
HEADERS = {"authorization": "Bearer my-own-secret-key", "user-agent": "editor/1"}
BASE = "http://127.0.0.1:8020"


def body(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def test_nothing_is_kept_unless_it_is_switched_on(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            served.engine.go.set()
            captures = served.gateway.captures
            await client.post(CHAT, json=body("secret"))
            (request,) = served.gateway.request_log.requests()
            assert (request.captured, captures.of(request.id), captures.state().until) == (False, None, None)
            captures.start(60)
            await client.post(CHAT, json=body("hello"))
            kept = served.gateway.request_log.requests()[0]
            assert kept.captured
            assert captures.state().requests == 1
            assert captures.state().bytes > 0
            captures.stop()
            assert captures.of(kept.id) is None
            assert (captures.state().bytes, captures.state().requests, captures.on) == (0, 0, False)
            assert not served.gateway.request_log.requests()[0].captured
            assert "hello" not in repr(served.events)
            captures.start(-1)
            await client.post(CHAT, json=body("later"))
            assert captures.state().requests == 0, "its time is over"

    asyncio.run(go())


def test_what_was_kept_goes_when_its_time_ends(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            served.engine.go.set()
            captures = served.gateway.captures
            captures.start(0.001)
            captures.start(60)
            await client.post(CHAT, json=body("hello"))
            kept = captures.of(served.gateway.request_log.requests()[0].id)
            assert kept.asked.size > 0, "a new start takes the place of the one before"
            captures.start(0)
            await until(lambda: captures.state().bytes == 0)
            assert (captures.state().requests, kept.dropped, bytes(kept.asked.data)) == (0, True, b"")
            assert not served.gateway.request_log.requests()[0].captured

    asyncio.run(go())


def test_a_stream_is_shown_as_sent_and_put_together(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            served.engine.go.set()
            served.gateway.captures.start(60)
            sent = body(f"my-own-secret-key {KEY} \x1b[2J\u202e", stream=True)
            sent["messages"].insert(0, {"role": "system", "content": "one"})
            sent["messages"].insert(0, {"role": "system", "content": "two"})
            answer = await client.post(CHAT, json=sent, headers=HEADERS)
            (request,) = served.gateway.request_log.requests()
            kept = served.gateway.captures.of(request.id)
            shown = inspected(kept, BASE)
            assert shown.text == "a b"
            assert shown.answer.text == answer.text
            assert shown.engine_answer.text == answer.text
            assert (shown.status, shown.engine_status, shown.engine_path) == (200, 200, CHAT)
            assert json.loads(shown.asked.text)["stream"] is True
            assert shown.difference, "two messages of the system are one for the engine"
            assert dict(shown.headers)["user-agent"] == "editor/1"
            assert shown.curl is not None
            assert "\x1b" not in shown.curl
            told = shown.model_dump_json()
            for secret in ("my-own-secret-key", KEY):
                assert secret not in told

    asyncio.run(go())


def test_an_answer_that_is_an_error_is_kept_too(world: Any, scripts: Any) -> None:
    async def go() -> None:
        refuse = scripts.answers(400, b'{"error": {"message": "engine says no"}}')
        async with world(refuse) as served, httpx.AsyncClient(base_url=served.url) as client:
            served.gateway.captures.start(60)
            await client.post(CHAT, json=body("hi", stream=True))
            (request,) = served.gateway.request_log.requests()
            shown = inspected(served.gateway.captures.of(request.id), BASE)
            assert (shown.engine_status, shown.status) == (400, 400)
            assert "engine says no" in shown.engine_answer.text
            assert shown.text.startswith("[error]")
            assert shown.difference == "", "it was passed on byte for byte"

    asyncio.run(go())


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures_module, "MOST_OF_EACH", 100)
    monkeypatch.setattr(captures_module, "_MOST_BYTES", 350)
    monkeypatch.setattr(captures_module, "_MOST_REQUESTS", 4)
    asyncio.run(fill())


async def fill() -> None:
    """Capture more than there is room for."""
    captures = Captures()
    captures.start(60)
    first = captures.begin("r0", CHAT, {}, b"x" * 1000)
    assert first is not None
    assert (len(first.asked.data), first.asked.size, first.asked.whole) == (100, 1000, False)
    shown = inspected(first, BASE)
    assert (shown.asked.left_out, shown.curl) == (900, None)
    for number in range(1, 4):
        captures.begin(f"r{number}", CHAT, {}, b"x" * 100)
    assert captures.of("r0") is None
    assert (captures.state().requests, captures.state().bytes) == (3, 300)
    first.from_engine(b"more of a request that made room")
    assert captures.state().bytes == 300
    for number in range(4, 20):
        captures.begin(f"r{number}", CHAT, {}, b"x")
    assert captures.state().requests == 4
    assert captures.state().bytes <= 350


def test_a_clients_key_is_hidden_where_it_comes_in_parts() -> None:
    kept = Capture("r0", CHAT, HEADERS, lambda _one, _count: None)
    for word in ("my-own-", "secret-key"):
        kept.from_engine(word.encode())
        kept.add(kept.answer, f'data: {{"choices": [{{"delta": {{"content": "{word}"}}}}]}}\n\n'.encode())
    shown = inspected(kept, BASE)
    assert shown.engine_answer.text == shown.text == "[redacted]"


EVENTS = [
    (b'data: {"choices": [{"delta": {"reasoning_content": "hm"}}]}\n\n'
     b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'
     b'data: {"choices": [{"delta": {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}}]}\n\n'
     b"data: [DONE]\n\n", "[reasoning]\nhm\n\n[text]\na\n\n[call]\nf {}"),
    (b'event: content_block_delta\ndata: {"type": "content_block_delta", "delta": {"text": "hel"}}\n\n'
     b'data: {"type": "content_block_delta", "delta": {"text": "lo"}}\n\n', "hello"),
    (b'data: {"type": "response.output_text.delta", "delta": "hi"}\n\n'
     b'data: {"type": "response.completed", "response": {"output": []}}\n\n', "hi"),
    (b'{"message": {"content": "a", "thinking": "t"}}\n{"message": {"content": "b"}}\n',
     "[reasoning]\nt\n\n[text]\nab"),
    (b'{"choices": [{"message": {"content": "whole"}}]}', "whole"),
    (b'{"type": "message", "content": [{"type": "text", "text": "x"},'
     b' {"type": "tool_use", "name": "f", "input": {"a": 1}}]}', '[text]\nx\n\n[call]\nf {"a": 1}'),
    (b'{"object": "response", "output": [{"type": "message", "content": [{"text": "y"}]}]}', "y"),
    (b'data: {"error": {"message": "broke"}}\n\n', "[error]\nbroke"),
    (b'{"data": [{"embedding": [1]}]}', ""),
    (b"\xff\x00 no json", ""),
    (b'data: {"choices": [null, 3, {"delta": 5}], "type": []}\n\n', ""),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "text"), EVENTS)
def test_answers_of_every_form_are_put_together(answer: bytes, text: str) -> None:
    assert assembled(answer) == text
