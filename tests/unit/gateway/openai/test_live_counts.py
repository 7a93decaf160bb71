"""Tokens of a stream while it is written: told in the list of requests, and no byte of them to the client."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import httpx
import pytest

from engine_host.gateway import request_log
from engine_host.gateway.openai.live_counts import (
    WithoutTimings,
    with_timings,
    with_usage_of_each,
    without_usage,
)
from engine_host.protocol.engines import Request, RequestState

CHAT = "/v1/chat/completions"
HOSTILE = '","timings":{"predicted_n":9}},"usage":{"completion_tokens":9},"finish_reason":"x"'
BODY: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "stream_options"}],
    "stream": True,
}
USAGE = {"prompt_tokens": 5, "total_tokens": 9, "completion_tokens": 4}
NESTED = {**USAGE, "completion_tokens_details": {"reasoning_tokens": 1}, "prompt_tokens_details": None}


def frame(delta: dict[str, Any], finish: str | None = None, *, llamacpp: bool = False, **more: Any) -> bytes:
    """A frame as vLLM writes them, or with `llamacpp` in its order."""
    fields = {"index": 0, "delta": delta, "finish_reason": finish}
    choice = dict(reversed(fields.items())) if llamacpp else fields
    value = {"choices": [choice], "created": 1, **more}
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def timings(count: int) -> dict[str, Any]:
    """What llama.cpp tells with a frame."""
    told = {"cache_n": 3, "prompt_n": 4, "predicted_n": count, "predicted_per_second": 12.5}
    return {"timings": told}


@pytest.mark.parametrize("lumps", [1, 2, 5])
@pytest.mark.parametrize("llamacpp", [True, False])
def test_timings_are_taken_out_of_all_frames_but_the_last(lumps: int, llamacpp: bool) -> None:
    made = partial(frame, llamacpp=llamacpp)
    texts = ["a", HOSTILE, "", "\\"]
    end = made({}, "stop", **timings(4)) + b"data: [DONE]\n\n"
    told = [made({"content": text}, **timings(n)) for n, text in enumerate(texts)]
    told += [made({"content": "without"}), end]
    plain = b"".join(made({"content": text}) for text in [*texts, "without"]) + end
    got = [b"".join(told[at : at + lumps]) for at in range(0, len(told), lumps)]
    assert b"".join(map(WithoutTimings().feed, got)) == plain
    progress = made({"content": None}, **timings(0), prompt_progress={"total": 5})
    assert WithoutTimings().feed(progress) == made({"content": None}, prompt_progress={"total": 5})


@pytest.mark.parametrize("usage", [USAGE, NESTED], ids=["plain", "nested"])
def test_usage_is_taken_out_of_all_frames_but_the_last(usage: dict[str, Any]) -> None:
    end = b"data: " + json.dumps({"choices": [], "usage": usage}, separators=(",", ":")).encode() + b"\n\n"
    told = frame({"content": HOSTILE}, usage=usage, x=1) + frame({}, "stop", usage=usage) + end
    assert without_usage(told) == frame({"content": HOSTILE}, x=1) + frame({}, "stop") + end
    one = frame({"content": HOSTILE}, usage=usage)
    assert [without_usage(piece) for piece in (one, end)] == [frame({"content": HOSTILE}), end]
    assert without_usage(frame({"content": HOSTILE})) == frame({"content": HOSTILE})


def test_an_engine_is_asked_with_all_else_of_a_request_as_it_was() -> None:
    raw = json.dumps(BODY).encode()
    assert (with_timings(raw, BODY) or b"").replace(b'"timings_per_token":true,', b"") == raw
    assert with_timings(raw, {"timings_per_token": False}) is None
    both = {"include_usage": True, "continuous_usage_stats": True}
    asked = with_usage_of_each(raw, BODY)
    assert asked is not None
    assert json.loads(asked) == {**BODY, "stream_options": both}
    for options, left in ((None, {}), ({"x": 1}, {"x": 1}), ({"include_usage": True}, {})):
        body = {**BODY, "stream_options": options}
        asked = with_usage_of_each(json.dumps(body).encode(), body)
        assert asked is not None
        assert json.loads(asked) == {**BODY, "stream_options": {**left, **both}}
    nested = {**BODY, "x": {"stream_options": {}}, "stream_options": {"include_usage": True}}
    asked = with_usage_of_each(json.dumps(nested).encode(), nested)
    assert asked is not None
    assert json.loads(asked) == {**nested, "stream_options": both}
    own = {**BODY, "stream_options": {"continuous_usage_stats": False}}
    assert with_usage_of_each(json.dumps(own).encode(), own) is None


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what something else makes true."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def written(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    """The script of a FAKE llama.cpp that writes a token of two frames, and then waits."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    writer.write(head)
    asked = body.get("timings_per_token")
    for number in (1, 2, 5):
        data = frame({"content": f"w{number} "}, **(timings(number) if asked else {}))
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await writer.drain()
        await asyncio.sleep(0.03)
    await engine.go.wait()
    data = frame({}, "stop", **timings(6)) + b"data: [DONE]\n\n"
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n0\r\n\r\n")


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("ends", ["whole", "cancelled", "left"])
def test_a_row_is_live_and_a_cancelled_one_keeps_what_was_counted(
    world: Any, monkeypatch: pytest.MonkeyPatch, counts: bool, ends: str
) -> None:
    monkeypatch.setattr(request_log, "_LIVE_INTERVAL", 0.01)

    async def go() -> None:
        async with world(written) as served, httpx.AsyncClient(base_url=served.url) as client:
            served.running = [replace(served.running[0], tells_counts=counts)]
            asking = asyncio.create_task(client.post(CHAT, json=BODY))

            def live() -> Request | None:
                found = [event.request for event in served.events if event.request.state == "decode"]
                return found[-1] if found else None

            def has_all() -> bool:
                row = live()
                return row is not None and 5 in (row.generated_tokens, (row.pieces or 0) + 2)

            await until(has_all)
            row = live()
            assert row is not None
            if counts:
                assert (row.generated_tokens, row.pieces, row.piece_rate) == (5, None, None)
                assert (row.prompt_tokens, row.cached_tokens, row.decode_rate) == (7, 3, 12.5)
            else:
                assert (row.generated_tokens, row.pieces, row.decode_rate) == (None, 3, None)
                assert row.piece_rate is not None
            assert served.gateway.request_log.request(row.id).generated_tokens == row.generated_tokens
            if ends == "whole":
                served.engine.go.set()
                answer = (await asking).content
                plain = b"".join(frame({"content": f"w{number} "}) for number in (1, 2, 5))
                assert answer == plain + frame({}, "stop", **timings(6)) + b"data: [DONE]\n\n"
            elif ends == "cancelled":
                served.gateway.request_log.cancel(row.id)
                await asking
            else:
                asking.cancel()
            await until(lambda: served.gateway.request_log.request(row.id).ended_at is not None)
            ended = served.gateway.request_log.request(row.id)
            assert ended.state is (RequestState.DONE if ends == "whole" else RequestState.CANCELLED)
            known = 6 if ends == "whole" else 5 if counts else None
            assert (ended.generated_tokens, ended.pieces) == (known, None if known else 3)

    asyncio.run(go())
