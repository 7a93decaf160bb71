"""The requests that try a target: each failure is told by the request that met it."""

import asyncio
import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from engine_host.gateway.directory import Target
from engine_host.operations.routes import trial
from engine_host.operations.routes.trial import Trial, carry_out
from engine_host.protocol.endpoint.routes import RouteCheck

MODELS = b'{"data": [{"id": "m"}]}'
TOOL_CALLS = [{"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}]


def whole(writer: asyncio.StreamWriter, value: object, status: int = 200) -> None:
    body = json.dumps(value).encode()
    writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


def chat(message: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 40, "completion_tokens": 2}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


def scripted(scripts: Any, spoilt: str) -> Any:
    """An engine that does everything right but for one thing."""

    async def script(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if not body:
            whole(writer, {"data": [{"id": "other" if spoilt == "models" else "m"}]})
        elif body.get("stream") and "stream_options" not in body:
            # With its figures it is asked for where the client is to get a whole answer.
            writer.write(scripts.stream_head + scripts.chunk("a "))
            if spoilt != "stream":
                writer.write(scripts.http_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        elif body.get("tools"):
            whole(writer, chat({"content": "no"} if spoilt == "tool call" else {"tool_calls": TOOL_CALLS}))
        elif len(json.dumps(body)) > 2000 and spoilt == "long prompt":
            whole(writer, {"error": {"message": "too long", "type": "exceed_context_size_error"}}, 400)
        elif engine.active > 1 and spoilt == "three at once":
            whole(writer, {"error": {"message": "one at a time"}}, 503)
        else:
            await asyncio.sleep(0.01)
            whole(writer, chat({"content": "" if spoilt == "chat" else "hello"}))

    return script


def tried(world: Any, script: Any, **facts: Any) -> list[RouteCheck]:
    """Carry out the checks of the FAKE engine, up to the first that fails."""

    async def go() -> list[RouteCheck]:
        async with world(script, slots=4) as served:
            target: Target = replace(served.running[0], tools=True, **facts)
            served.running = [target]
            done: list[RouteCheck] = []
            for name, check in Trial(served.gateway.trusted_app, target, "m").checks():
                done.append(await carry_out("m", name, check))
                if not done[-1].passed:
                    break
            return done

    return asyncio.run(go())


def test_an_engine_that_does_everything(world: Any, scripts: Any) -> None:
    done = tried(world, scripted(scripts, ""))
    assert [check.name for check in done if check.passed] == [
        "models", "chat", "stream", "tool call", "long prompt", "three at once",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spoilt", "told"),
    [
        ("models", "it lists other"),
        ("chat", "empty"),
        ("stream", ""),
        ("tool call", "called no tool"),
        ("long prompt", "too long"),
        ("three at once", "one at a time"),
    ],
)
def test_the_request_that_failed_is_named(world: Any, scripts: Any, spoilt: str, told: str) -> None:
    last = tried(world, scripted(scripts, spoilt))[-1]
    assert (last.name, last.passed) == (spoilt, False)
    assert told in last.detail
    assert last.detail


@pytest.mark.parametrize("junk", [b"", b"[]", b'{"choices": 7}', b'{"choices": [7]}', b"\xff\xfe", b"null"])
def test_junk_fails_and_breaks_nothing(world: Any, junk: bytes) -> None:
    async def script(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        answer = junk if body else MODELS
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\n\r\n".encode() + answer)

    last = tried(world, script)[-1]
    assert (last.name, last.passed) == ("chat", False)


ODD = [None, 7, True, "x", [], [None], ["x"], {}, {"x": 1}, 10**400]


def hostile(place: tuple[str, ...], value: object) -> bytes:
    """An answer that is right but for what stands at one place."""
    made: dict[str, Any] = chat({"content": "hello", "tool_calls": deepcopy(TOOL_CALLS)})
    made["data"], made["results"] = [{"embedding": [0.5]}], [{"index": 0}]
    made["choices"][0]["delta"] = {"content": "a"}
    at: Any = made
    for step in place[:-1]:
        at = at[int(step)] if isinstance(at, list) else at[step]
    at[int(place[-1]) if isinstance(at, list) else place[-1]] = value
    return json.dumps(made).encode()


async def each_check(answer: bytes, **facts: Any) -> list[RouteCheck]:
    """Carry out all checks of requests against an endpoint, a FAKE one, that always answers the same."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = json.loads((await receive())["body"])
        told = b"data: " + answer + b"\n\ndata: [DONE]\n\n" if body.get("stream") else answer
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": told})

    target = replace(Target("e", "m", 1, 4096, 1.0, socket="/nowhere"), tools=True, **facts)
    return [await carry_out("m", name, check) for name, check in Trial(app, target, "m").checks()[1:]]


@pytest.mark.parametrize(
    "place",
    [
        "choices", "choices.0", "choices.0.message", "choices.0.message.content", "choices.0.delta",
        "choices.0.message.tool_calls", "choices.0.message.tool_calls.0",
        "choices.0.message.tool_calls.0.function", "choices.0.message.tool_calls.0.function.name",
        "choices.0.message.tool_calls.0.function.arguments", "usage", "usage.completion_tokens",
        "usage.prompt_tokens", "error", "data", "data.0", "data.0.embedding", "results", "results.0",
    ],
)  # fmt: skip
def test_no_shape_of_an_answer_breaks_a_check(place: str) -> None:
    for value in ODD:
        answer = hostile(tuple(place.split(".")), value)
        for facts in ({}, {"embeddings": True}, {"reranking": True}, {"tokens_only": True}):
            for check in asyncio.run(each_check(answer, **facts)):
                assert check.passed or check.detail, (value, check)


@pytest.mark.parametrize(
    ("place", "value", "failed"),
    [
        (("choices", "0", "message"), None, {"chat", "tool call", "three at once"}),
        (("choices", "0", "message"), "hello", {"chat", "tool call", "three at once"}),
        (("choices", "0", "delta"), "hello", {"stream"}),
        (("choices", "0", "message", "tool_calls", "0", "function"), {"arguments": "{}"}, {"tool call"}),
        (("usage",), [1], set()),
    ],
)
def test_an_odd_answer_fails_where_it_matters(
    place: tuple[str, ...], value: object, failed: set[str]
) -> None:
    done = asyncio.run(each_check(hostile(place, value)))
    assert {check.name for check in done if not check.passed} == failed


@pytest.mark.parametrize("value", [None, "abc", 7, {"0": 1}, []])
def test_what_is_no_vector_is_none(value: object) -> None:
    done = asyncio.run(each_check(hostile(("data", "0", "embedding"), value), embeddings=True))
    assert "no vector" in done[0].detail


def test_an_engine_that_says_nothing_fails_its_check(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_PATIENCE", 0.3)

    async def silent(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if body:
            await engine.go.wait()
        whole(writer, json.loads(MODELS))

    last = tried(world, silent)[-1]
    assert (last.name, last.passed) == ("chat", False)
    assert "no whole answer" in last.detail


def test_an_engine_for_vectors_is_asked_for_vectors(world: Any) -> None:
    async def script(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        vector = {"data": [{"embedding": [0.0, 1.0], "index": 0}]}
        whole(writer, vector if body else json.loads(MODELS))

    done = tried(world, script, embeddings=True)
    assert [(check.name, check.passed) for check in done] == [
        ("models", True), ("embeddings", True), ("three at once", True),
    ]  # fmt: skip
    assert done[1].detail == "a vector of 2"
