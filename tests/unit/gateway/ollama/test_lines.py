"""Ollama's answers: live lines, whole calls, figures, errors in the middle; and hostile engines."""

import asyncio
import contextlib
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.ollama.lines import OllamaLines
from tests.unit.gateway.asking import ask

CHAT = {"model": "m:latest", "messages": [{"role": "user", "content": "hi"}]}


def frame(value: Any) -> bytes:
    """One frame of an engine's stream."""
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def delta(finish: str | None = None, **said: Any) -> bytes:
    """One frame of a chat."""
    return frame({"choices": [{"index": 0, "delta": said, "finish_reason": finish}]})


def lines(*frames: bytes, is_chat: bool = True, size: int = 7) -> list[dict[str, Any]]:
    """What a client gets for these frames, which come in pieces of some bytes."""
    passage = OllamaLines("m", is_chat=is_chat)
    stream = b"".join(frames)
    told = b"".join(passage.feed(stream[at : at + size]) for at in range(0, len(stream), size))
    return [json.loads(line) for line in (told + passage.end()).splitlines()]


def test_each_word_is_a_line_as_it_comes(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            async with client.stream("POST", "/api/chat", json=CHAT) as answer:
                assert answer.headers["content-type"] == "application/x-ndjson"
                told = answer.aiter_lines()
                first = json.loads(await anext(told))
                assert (first["message"]["content"], first["done"]) == ("a ", False)
                served.engine.go.set()
                rest = [json.loads(line) async for line in told]
            assert [one["message"]["content"] for one in rest] == ["b", ""]
            last = rest[-1]
            assert (last["done"], last["done_reason"]) == (True, "stop")
            assert (last["prompt_eval_count"], last["eval_count"]) == (7, 2)
            assert last["total_duration"] > 0
            path, sent = served.engine.received[0]
            assert (path, sent["model"]) == ("/v1/chat/completions", "m")
            (request,) = served.gateway.request_log.requests()
            assert (request.route, request.generated_tokens) == ("/api/chat", 2)

    asyncio.run(go())


def test_likelihoods_come_with_their_words() -> None:
    told = {"content": [{"token": "a", "logprob": -0.5, "top_logprobs": []}]}
    choice = {"index": 0, "finish_reason": None, "logprobs": told}
    first, last = lines(frame({"choices": [{**choice, "delta": {"content": "a"}}]}), delta("stop"))
    assert first["logprobs"] == told["content"]
    assert "logprobs" not in last
    whole = {"choices": [{**choice, "message": {"content": "a"}}]}
    answer = json.loads(OllamaLines("m", is_chat=True).convert(json.dumps(whole).encode()))
    assert answer["logprobs"] == told["content"]


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
def test_a_whole_answer(world: Any, path: str) -> None:
    body = {**CHAT, "prompt": "hi", "stream": False, "keep_alive": "5m"}
    answer = ask(world, "POST", path, json=body).json()
    text = answer["message"]["content"] if path == "/api/chat" else answer["response"]
    assert (text, answer["done"], answer["eval_count"]) == ("a b", True, 2)


@pytest.mark.parametrize(("keep", "reason"), [("5m", "load"), (0, "unload")])
def test_a_request_that_asks_nothing_is_answered_and_changes_nothing(
    world: Any, keep: Any, reason: str
) -> None:
    seen: list[Any] = []
    for path in ("/api/chat", "/api/generate"):
        body = {"model": "m", "keep_alive": keep}
        answer = ask(world, "POST", path, lambda served: seen.append(served.engine), json=body)
        assert answer.json()["done_reason"] == reason
    assert [engine.received for engine in seen] == [[], []]


def test_calls_come_whole() -> None:
    told = lines(
        delta(content="so"),
        delta(tool_calls=[{"index": 0, "id": "x", "function": {"name": "rain", "arguments": '{"ci'}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": 'ty": "Ústí"}'}}]),
        delta(tool_calls=[{"index": 1, "id": "y", "function": {"name": "sun", "arguments": ""}}]),
        delta(finish="tool_calls"),
        frame(b"[DONE]"),
    )
    assert [one["done"] for one in told] == [False, False, True]
    assert told[1]["message"]["tool_calls"] == [
        {"function": {"name": "rain", "arguments": {"city": "Ústí"}}},
        {"function": {"name": "sun", "arguments": {}}},
    ]


def test_a_call_that_was_cut_off_is_none() -> None:
    call = {"index": 0, "function": {"name": "rain", "arguments": '{"ci'}}
    told = lines(delta(tool_calls=[call]), delta(finish="length"), frame(b"[DONE]"))
    assert told[-1]["done_reason"] == "length"
    assert all("tool_calls" not in one["message"] for one in told)


def test_thoughts_stand_apart_and_texts_are_responses() -> None:
    told = lines(delta(reasoning_content="hm"), delta(content="a"), delta(finish="stop"))
    assert [one["message"].get("thinking") for one in told] == ["hm", None, None]
    text = frame({"choices": [{"text": "é", "finish_reason": None}]})
    assert [one["response"] for one in lines(text, frame(b"[DONE]"), is_chat=False)] == ["é", ""]


def test_an_error_in_the_middle_is_the_last_line() -> None:
    told = lines(delta(content="a"), frame({"error": {"message": "broken", "code": 500}}), frame(b"[DONE]"))
    assert [one.get("error") for one in told] == [None, "broken"]


def test_an_engine_that_dies_in_the_middle(world: Any, scripts: Any) -> None:
    async def dies(engine: Any, body: Any, writer: Any) -> None:
        writer.write(scripts.stream_head + scripts.chunk("a "))
        await writer.drain()
        writer.close()

    answer = ask(lambda: world(dies), "POST", "/api/chat", json=CHAT)
    told = [json.loads(line) for line in answer.text.splitlines()]
    assert told[0]["message"]["content"] == "a "
    assert "ended before" in told[-1]["error"]


def test_an_engine_that_refuses(world: Any, scripts: Any) -> None:
    body = json.dumps({"error": {"message": "no", "type": "invalid_request_error", "code": 400}}).encode()
    answer = ask(lambda: world(scripts.answers(400, body)), "POST", "/api/chat", json=CHAT)
    assert (answer.status_code, answer.json()["error"]) == (400, "no")


@pytest.mark.parametrize(
    "hostile",
    [
        b"{", b"[]", b"7", b'"x"', b"null", b"\xff", b'{"choices": {}}', b'{"choices": [1]}', b"[" * 90_000,
        b'{"choices": [{"delta": 5, "text": 5, "finish_reason": 5}]}',
        b'{"choices": [{"delta": {"content": {}, "reasoning": [], "tool_calls": 1}}]}',
        b'{"choices": [{"delta": {"tool_calls": [1]}}]}',
        b'{"choices": [{"delta": {"tool_calls": [{"index": -1, "function": {}}]}}]}',
        b'{"choices": [{"delta": {"tool_calls": [{"index": 1e9, "function": {}}]}}]}',
        b'{"usage": {"prompt_tokens": "x", "completion_tokens": -4}, "timings": {"prompt_ms": true}}',
        b'{"choices": [{"delta": {"content": "\\ud800"}}]}',
        b'{"error": 5}',
    ],
)  # fmt: skip
def test_hostile_frames_end_in_lines_of_json_or_an_error(hostile: bytes) -> None:
    def told() -> list[dict[str, Any]]:
        return lines(frame(hostile), frame(b"[DONE]"), size=1000)

    def whole() -> list[dict[str, Any]]:
        return [json.loads(OllamaLines("m", is_chat=True).convert(hostile))]

    for answer in (told, whole):
        with contextlib.suppress(EndpointError):
            last = answer()[-1]
            assert last.get("done") or last["error"]


def test_arguments_without_end_are_refused() -> None:
    passage = OllamaLines("m", is_chat=True)
    call = {"index": 0, "function": {"name": "", "arguments": "x" * 100_000}}
    for _ in range(41):
        passage.feed(delta(tool_calls=[call]))
    with pytest.raises(EndpointError):
        passage.feed(delta(tool_calls=[call]))


def test_vectors_in_both_forms(world: Any, scripts: Any) -> None:
    def embeds(served: Any) -> None:
        served.running[0] = replace(served.running[0], embeddings=True)

    body = json.dumps(
        {"data": [{"embedding": [1.5, 2]}, {"embedding": [3, 4]}], "usage": {"prompt_tokens": 3}}
    ).encode()

    def asked(path: str, body_of_client: Any, answer: bytes = body) -> Any:
        return ask(lambda: world(scripts.answers(200, answer)), "POST", path, embeds, json=body_of_client)

    newer = asked("/api/embed", {"model": "m", "input": ["a", "b"]}).json()
    assert (newer["embeddings"], newer["prompt_eval_count"]) == ([[1.5, 2], [3, 4]], 3)
    assert asked("/api/embeddings", {"model": "m", "prompt": "a"}).json() == {"embedding": [1.5, 2]}
    for odd in (b"[]", b'{"data": 1}', b'{"data": [1]}', b'{"data": [], "usage": 1}'):
        assert asked("/api/embed", {"input": "a"}, odd).status_code == 502


def test_tools_with_a_format_that_the_engine_refuses_together(world: Any, scripts: Any) -> None:
    """The engine refuses both at once, then writes instead of calling: the format alone is asked for."""

    async def either(engine: Any, body: dict[str, Any], writer: Any) -> None:
        if body.get("tools") and body.get("response_format") and body.get("tool_choice") != "none":
            refused = json.dumps({"error": {"message": "no grammar", "type": "invalid_request_error"}})
            await scripts.answers(400, refused.encode())(engine, body, writer)
            return
        await scripts.two_words(engine, body, writer)

    tool = {"type": "function", "function": {"name": "rain", "parameters": {"type": "object"}}}
    answer = ask(lambda: world(either), "POST", "/api/chat", json={**CHAT, "tools": [tool], "format": "json"})
    told = [json.loads(line) for line in answer.text.splitlines()]
    assert "".join(one["message"]["content"] for one in told) == "a b"
    assert told[-1]["done"] is True
