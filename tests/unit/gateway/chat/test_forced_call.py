"""A call of a tool where one has to be made, of an engine that writes instead."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as some

from engine_host.core import sse
from engine_host.gateway.chat.forced_call import CallsOfText, as_format, has_to_call
from engine_host.gateway.error_answers import EndpointError
from engine_host.protocol.engines import RequestState

CITY = {
    "type": "object",
    "properties": {"city": {"$ref": "#/$defs/City"}, "inner": {"$ref": "#"}},
    "$defs": {"City": {"type": "string"}},
}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "weather", "parameters": CITY}},
    {"type": "function", "function": {"name": "stop"}},
    {"type": "odd"},
    7,
]
ASKED: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi"}],
    "max_tokens": 9,
    "tools": TOOLS[:2],
    "tool_choice": "required",
}
ARGUMENTS = '{"city": "Par}[\\"is", "deep": [{"a": {}}]}'
LIST = f'[ {{"name" : "weather", "arguments" :{ARGUMENTS}}},\n{{"name":"stop","arguments":{{}} }} ]'


def frame(delta: dict[str, Any], finish: str | None = None, index: int = 0) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}, separators=(",", ":")).encode() + b"\n\n"


def test_the_schema_allows_calls_of_these_tools_alone() -> None:
    body = as_format({**ASKED, "tools": TOOLS, "parallel_tool_calls": False})
    schema = body["response_format"]["json_schema"]["schema"]
    kinds = schema["items"]["anyOf"]
    assert [kind["properties"]["name"]["const"] for kind in kinds] == ["weather", "stop"]
    assert (schema["minItems"], schema["maxItems"]) == (1, 1)
    moved = schema["$defs"]["0"]
    assert moved["properties"]["city"]["$ref"] == "#/$defs/0/$defs/City"
    assert moved["properties"]["inner"]["$ref"] == "#/$defs/0"
    assert schema["$defs"]["1"] == {"type": "object"}
    assert (body["tool_choice"], body["tools"]) == ("none", TOOLS), "the prompt still has them"
    assert "maxItems" not in as_format(ASKED)["response_format"]["json_schema"]["schema"]
    assert CITY["properties"]["city"] == {"$ref": "#/$defs/City"}  # type: ignore[index]


@pytest.mark.parametrize(
    ("more", "has"),
    [
        ({}, True),
        ({"tool_choice": "auto"}, False),
        ({"tools": []}, False),
        ({"tools": "x"}, False),
        ({"tool_choice": {"a": 1}}, False),
    ],
)
def test_which_requests_have_to_call(more: dict[str, Any], has: bool) -> None:
    assert has_to_call({**ASKED, **more}) is has


def put_together(told: bytes) -> tuple[list[tuple[str, str]], str | None]:
    """The calls of a stream, and why it ended."""
    calls: dict[int, list[str]] = {}
    finish = None
    for payload in sse.payloads(told):
        if payload == b"[DONE]":
            continue
        (choice,) = json.loads(payload)["choices"]
        finish = choice["finish_reason"] or finish
        assert choice["delta"].get("content") is None
        for part in choice["delta"].get("tool_calls") or ():
            call = calls.setdefault(part["index"], ["", ""])
            if "id" in part:
                assert len(part["id"]) == 9
                assert part["id"].isalnum()
                call[0] = part["function"]["name"]
            call[1] += part["function"]["arguments"]
    return [(name, arguments) for name, arguments in calls.values()], finish


@given(cuts=some.lists(some.integers(0, len(LIST)), max_size=30), wire=some.integers(1, 200))
def test_a_stream_of_a_list_is_a_stream_of_calls_however_it_is_cut(cuts: list[int], wire: int) -> None:
    edges = sorted({0, *cuts, len(LIST)})
    parts = [LIST[start:end] for start, end in pairwise(edges)]
    sent = frame({"role": "assistant", "content": None}) + frame({"reasoning_content": "hm"})
    sent += b": ping\n\n" + b"".join(frame({"content": part}) for part in parts)
    sent += frame({}, "stop") + b"data: [DONE]\n\n"
    passage = CallsOfText()
    told = b"".join(passage.feed(sent[at : at + wire]) for at in range(0, len(sent), wire)) + passage.end()
    calls, finish = put_together(told)
    assert calls == [("weather", ARGUMENTS), ("stop", "{}")]
    assert finish == "tool_calls"
    assert b'"reasoning_content":"hm"' in told


def test_arguments_are_told_before_they_are_whole() -> None:
    passage = CallsOfText()
    assert b'"name":"stop","arguments":"{\\"a\\": 1"' in passage.feed(
        frame({"content": '[{"name":"stop","arguments":{"a": 1'})
    )
    assert passage.feed(frame({"content": "2}"})) != b""
    assert passage.feed(frame({"content": " \n"})) == b"", "nothing to tell is nothing"


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_a_whole_answer_has_calls(finish: str) -> None:
    text = LIST if finish == "stop" else LIST[:-20]
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    told = json.loads(CallsOfText().convert(json.dumps({"choices": [choice], "usage": {}}).encode()))
    message = told["choices"][0]["message"]
    assert message["content"] is None
    names = [call["function"]["name"] for call in message["tool_calls"]]
    assert names == (["weather", "stop"] if finish == "stop" else ["weather"])
    assert all(set(call) == {"id", "type", "function"} for call in message["tool_calls"])
    assert told["choices"][0]["finish_reason"] == ("tool_calls" if finish == "stop" else "length")


@pytest.mark.parametrize(
    "text", ['[{"x":1,"arguments":{}}]', "[{7:{", '[{"' + "n" * 5000, '[{"name":"a" {', "[" * 5 + "{"]
)
def test_what_is_no_list_of_calls_is_the_engines_fault(text: str) -> None:
    with pytest.raises(EndpointError):
        CallsOfText().feed(frame({"content": text}))
    choice = {"index": 0, "message": {"content": text}}
    with pytest.raises(EndpointError):
        CallsOfText().convert(json.dumps({"choices": [choice]}).encode())


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"{}", b'{"choices": 7}', b'{"choices": [7]}', b'{"choices": [{}]}']
)
def test_odd_answers_are_the_engines_fault(body: bytes) -> None:
    with pytest.raises(EndpointError):
        CallsOfText().convert(body)


def chats(scripts: Any, first: list[bytes], whole: dict[str, Any], finish: str) -> Any:
    """A FAKE llama.cpp: what it does first, and a list of calls where it is asked for one."""

    async def script(engine: Any, sent: dict[str, Any], writer: Any) -> None:
        asked_again = sent.get("tool_choice") == "none"
        parts = [frame({"content": LIST[:30]}), frame({"content": LIST[30:]})] if asked_again else first
        message = {"content": LIST} if asked_again else whole
        ended = "stop" if asked_again else finish
        if not sent.get("stream"):
            answer = {"choices": [{"index": 0, "message": message, "finish_reason": ended}]}
            await scripts.answers(200, json.dumps(answer).encode())(engine, sent, writer)
            return
        writer.write(scripts.stream_head)
        begin = frame({"role": "assistant", "content": None})
        for part in (begin, *parts, frame({}, ended), b"data: [DONE]\n\n"):
            writer.write(scripts.http_chunk(part))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    return script


def asked(world: Any, script: Any, path: str, body: dict[str, Any]) -> tuple[httpx.Response, list[Any], Any]:
    async def go() -> tuple[httpx.Response, list[Any], Any]:
        async with world(script, slots=1) as served, httpx.AsyncClient(base_url=served.url) as client:
            answer = await client.post(path, json=body)
            assert answer.status_code == 200, answer.text
            (request,) = served.gateway.request_log.requests()
            assert request.state is RequestState.DONE
            return answer, [sent for _, sent in served.engine.received], request

    return asyncio.run(go())


NATIVE = {"index": 0, "id": "1", "function": {"name": "stop", "arguments": "{}"}}
CALLED = frame({"tool_calls": [NATIVE]})
THOUGHT = [frame({"reasoning_content": "hm"})] * 60


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("first", "whole", "finish", "requests"),
    [
        ([frame({"content": "I call. "}), CALLED], {"tool_calls": [NATIVE]}, "tool_calls", 1),
        ([frame({"content": f"word {one}"}) for one in range(60)], {"content": "word"}, "length", 2),
        ([frame({"content": "no"})], {"content": "no"}, "stop", 2),
        (THOUGHT, {"reasoning_content": "hm", "content": None}, "length", 1),
        ([*THOUGHT, CALLED], {"tool_calls": [NATIVE]}, "tool_calls", 1),
    ],
)  # fmt: skip
def test_a_call_comes_whatever_the_model_does_first(
    world: Any, scripts: Any, first: list[bytes], whole: Any, finish: str, requests: int, stream: bool
) -> None:
    script = chats(scripts, first, whole, finish)
    answer, sent, _ = asked(world, script, "/v1/chat/completions", {**ASKED, "stream": stream})
    assert len(sent) == requests
    if requests == 2:
        assert sent[1]["response_format"]["type"] == "json_schema"
        assert "word" not in answer.text
    if finish == "length" and requests == 1:
        assert "tool_calls" not in answer.text, "it thought until its limit, and would again"
    elif stream and requests == 2:
        assert put_together(answer.content) == ([("weather", ARGUMENTS), ("stop", "{}")], "tool_calls")
    else:
        assert '"name"' in answer.text


CALLS = {"tool_calls": [NATIVE], "content": None}


@pytest.mark.parametrize(
    ("limit", "tried", "tokens", "asked_for"),
    [
        ({}, {"content": "a story"}, 256, [256, None]),
        ({"max_tokens": 2000}, CALLS, 40, [256]),
        ({"max_completion_tokens": 2000}, CALLS, 256, [256, None]),
        ({}, {"content": None, "reasoning_content": "hm"}, 256, [256, None]),
        ({}, None, 0, [256, None]),
        ({"max_tokens": 100}, {"content": "no"}, 100, [100, 100]),
    ],
)
def test_a_whole_answer_is_tried_with_few_tokens(
    world: Any, scripts: Any, limit: dict[str, Any], tried: Any, tokens: int, asked_for: list[Any]
) -> None:
    async def script(engine: Any, sent: dict[str, Any], writer: Any) -> None:
        first = len(engine.received) == 1
        if first and tried is None:
            refused = {"error": {"code": 500, "message": "Failed to parse input", "type": "server_error"}}
            await scripts.answers(500, json.dumps(refused).encode())(engine, sent, writer)
            return
        is_list = sent["tool_choice"] == "none"
        message = {"content": LIST} if is_list else tried if first else CALLS
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"choices": [choice], "usage": {"completion_tokens": tokens if first else 700}}
        await scripts.answers(200, json.dumps(answer).encode())(engine, sent, writer)

    body = {name: value for name, value in ASKED.items() if name != "max_tokens"} | limit
    answer, sent, request = asked(world, script, "/v1/chat/completions", body)
    assert answer.json()["choices"][0]["message"]["tool_calls"]
    assert [one.get("max_tokens") for one in sent] == asked_for
    if len(sent) == 2 and sent[1]["tool_choice"] == "required":
        assert sent[1].get("max_completion_tokens") == limit.get("max_completion_tokens"), "as it was asked"
        assert request.generated_tokens == 700


RECORDED = Path(__file__).parent.parent / "recorded"
FORMS: list[tuple[str, dict[str, Any], str]] = [
    (
        "/v1/messages",
        {
            "messages": ASKED["messages"], "max_tokens": 9, "tool_choice": {"type": "any"},
            "tools": [{"name": "stop", "input_schema": {"type": "object"}}],
        },
        "messages-text.sse",
    ),
    (
        "/v1/responses",
        {
            "input": "hi", "tool_choice": "required",
            "tools": [{"type": "function", "name": "stop", "parameters": {"type": "object"}}],
        },
        "responses-text.sse",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "recorded"), FORMS)
def test_a_call_comes_in_the_forms_of_agents_too(
    world: Any, scripts: Any, path: str, body: dict[str, Any], recorded: str
) -> None:
    first = (RECORDED / recorded).read_bytes()
    again = chats(scripts, [], {}, "stop")

    async def script(engine: Any, sent: dict[str, Any], writer: Any) -> None:
        if "response_format" in sent:
            await again(engine, sent, writer)
        else:
            writer.write(scripts.stream_head + scripts.http_chunk(first) + b"0\r\n\r\n")

    answer, sent, _ = asked(world, script, path, {"model": "m", **body, "stream": True})
    assert len(sent) == 2
    assert sent[1]["tools"][0]["function"]["name"] == "stop"
    events = [json.loads(payload) for payload in sse.payloads(answer.content)]
    if path == "/v1/messages":
        begun = [one["content_block"]["name"] for one in events if one["type"] == "content_block_start"]
        assert (begun, events[-2]["delta"]["stop_reason"]) == (["weather", "stop"], "tool_use")
        told = [one["delta"]["partial_json"] for one in events if one["type"] == "content_block_delta"]
        assert "".join(told) == ARGUMENTS + "{}"
    else:
        items = events[-1]["response"]["output"]
        assert [(item["type"], item["name"]) for item in items] == [
            ("function_call", "weather"),
            ("function_call", "stop"),
        ]
        assert items[0]["arguments"] == ARGUMENTS
