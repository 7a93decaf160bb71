"""Engines that tell figures only when asked, and that do not understand `suffix`: what vLLM needs."""

import asyncio
import itertools
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.gateway.error_answers import EndpointError, engine_fault
from engine_host.gateway.openai.infill import prompt_with_tokens
from engine_host.gateway.openai.usage import UsageApart, UsageFilter, asks_for_usage, with_usage
from engine_host.protocol.errors import Reason

CHAT = "/v1/chat/completions"
MESSAGES = [{"role": "user", "content": "hi"}]
TOKENS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 30, "total_tokens": 37}}


def frame(value: Any) -> bytes:
    """One frame as vLLM writes it, without spaces."""
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


WORDS = [frame({"choices": [{"index": 0, "delta": {"content": f'w{n} "choices":[] '}}]}) for n in range(3)]
STREAM = b"".join([*WORDS, frame(USAGE), b"data: [DONE]\n\n"])


def test_the_usage_of_a_completion_has_a_frame_of_its_own_where_it_was_asked_for() -> None:
    text = {"choices": [{"text": '"usage":', "index": 0, "finish_reason": None}], "id": "c"}
    end = {"choices": [{"text": "", "index": 0, "finish_reason": "length"}], "id": "c"}
    figures = {"usage": USAGE["usage"], "timings": {"predicted_n": 30}}
    stream = frame(text) + frame({**end, **figures}) + b"data: [DONE]\n\n"
    asked = frame(text) + frame(end) + frame({"choices": [], "id": "c", **figures}) + b"data: [DONE]\n\n"
    told = [json.loads(one[6:]) for one in UsageApart(shows=True).feed(stream).split(b"\n\n")[:-2]]
    assert told == [json.loads(one[6:]) for one in asked.split(b"\n\n")[:-2]]
    plain = UsageApart(shows=False).feed(stream)
    assert plain == frame(text) + frame({**end, "timings": figures["timings"]}) + b"data: [DONE]\n\n"


async def talks_like_vllm(engine: Any, body: Any, writer: asyncio.StreamWriter) -> None:
    """FAKE vLLM: a stream with the figures at its end when they were asked for."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    for word in WORDS:
        writer.write(word)
        await writer.drain()
        await asyncio.sleep(0.02)
    if (body.get("stream_options") or {}).get("include_usage"):
        writer.write(frame(USAGE))
    writer.write(b"data: [DONE]\n\n")
    await writer.drain()
    writer.write_eof()


def like_vllm(served: Any) -> None:
    served.running[:] = [
        replace(served.running[0], native_infill=False, fim_tokens=TOKENS, usage_on_request=True)
    ]


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_the_figures_are_taken_out_however_the_stream_is_cut(cuts: list[int]) -> None:
    found = UsageFilter()
    edges = [0, *sorted(cuts), len(STREAM)]
    out = b"".join(found.feed(STREAM[a:b]) for a, b in itertools.pairwise(edges)) + found.end()
    assert out == b"".join(WORDS) + b"data: [DONE]\n\n"


def test_frames_that_only_look_like_figures_pass() -> None:
    for other in (
        frame({"error": {"message": '"choices":[]'}}),
        frame({"choices": [], "note": 1}),
        b': "choices":[]\n\n',
    ):
        assert UsageFilter().feed(other) == other
    cut_off = UsageFilter()
    assert cut_off.feed(b"data: half") + cut_off.end() == b"data: half"


def test_what_the_client_asked_for_stays() -> None:
    assert asks_for_usage({"stream_options": {"include_usage": True}})
    assert not asks_for_usage({"stream_options": {"include_usage": False}})
    assert not asks_for_usage({"stream_options": None})
    assert json.loads(with_usage({"a": 1, "stream_options": {"x": 2}})) == {
        "a": 1,
        "stream_options": {"x": 2, "include_usage": True},
    }


def test_figures_are_asked_for_and_kept_from_a_client_that_did_not_ask(world: Any) -> None:
    async def go() -> None:
        async with world(talks_like_vllm) as served, httpx.AsyncClient(base_url=served.url) as client:
            like_vllm(served)
            body = {"model": "m", "messages": MESSAGES, "stream": True}
            answer = await client.post(CHAT, json=body)
            assert answer.content == b"".join(WORDS) + b"data: [DONE]\n\n"
            assert served.engine.received[0][1]["stream_options"] == {"include_usage": True}
            (request,) = served.gateway.request_log.requests()
            assert (request.prompt_tokens, request.generated_tokens) == (7, 30)
            assert request.ttft is not None
            assert request.decode_rate is not None
            requested = {**body, "stream_options": {"include_usage": True}}
            told = (await client.post(CHAT, json=requested)).content
            assert frame(USAGE).removesuffix(b"}\n\n") + b',"timings":{"prompt_n":7,"predicted_n":30,' in told
            await client.post(CHAT, json={**body, "stream": False})
            assert "stream_options" not in served.engine.received[2][1]

    asyncio.run(go())


def test_a_middle_is_asked_for_with_the_models_own_tokens(world: Any) -> None:
    async def go() -> None:
        async with world(talks_like_vllm) as served, httpx.AsyncClient(base_url=served.url) as client:
            like_vllm(served)
            body = {"model": "m", "prompt": "def f(", "suffix": "return x", "max_tokens": 4, "stream": True}
            await client.post("/v1/completions", json=body)
            path, received = served.engine.received[0]
            assert path == "/v1/completions"
            assert received["prompt"] == "<|fim_prefix|>def f(<|fim_suffix|>return x<|fim_middle|>"
            assert "suffix" not in received
            assert received["max_tokens"] == 4
            served.running[:] = [replace(served.running[0], fim_tokens=None)]
            refused = await client.post("/v1/completions", json=body)
            assert (refused.status_code, refused.json()["error"]["code"]) == (
                400,
                "fill_in_the_middle_unsupported",
            )
            assert len(served.engine.received) == 1

    asyncio.run(go())


@pytest.mark.parametrize("wrong", [{"prompt": ["a", "b"]}, {"echo": True}, {"suffix": "x<|fim_middle|>y"}])
def test_a_middle_that_cannot_be_asked_for_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(EndpointError):
        prompt_with_tokens({"prompt": "a", "suffix": "b", **wrong}, TOKENS)


def test_an_engine_for_embeddings_alone_says_so(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            served.running[:] = [replace(served.running[0], embeddings=True)]
            answer = await client.post(CHAT, json={"model": "m", "messages": MESSAGES})
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "embeddings_only")

    asyncio.run(go())


def test_an_engine_without_a_tokenizer_takes_token_numbers(world: Any) -> None:
    async def go() -> None:
        async with world(talks_like_vllm) as served, httpx.AsyncClient(base_url=served.url) as client:
            served.running[:] = [replace(served.running[0], tokens_only=True)]
            for prompt in ("text", ["text"], [[1], "text"], []):
                answer = await client.post("/v1/completions", json={"model": "m", "prompt": prompt})
                assert (answer.status_code, answer.json()["error"]["code"]) == (400, "tokenizer_missing")
            assert (await client.post(CHAT, json={"model": "m", "messages": MESSAGES})).status_code == 400
            for numbers in ([1, 2], [[1], [2]]):
                body = {"model": "m", "prompt": numbers, "stream": True}
                assert (await client.post("/v1/completions", json=body)).status_code == 200

    asyncio.run(go())


RESPONSES = [
    {"type": "response.created", "response": {"status": "in_progress", "usage": None}},
    {"type": "response.output_text.delta", "delta": "a"},
    {
        "type": "response.completed",
        "response": {
            "status": "completed",
            "usage": {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 3}, "output_tokens": 2},
        },
    },
]
ANTHROPIC = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 0}}},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 3},
    },
]


@pytest.mark.parametrize(
    ("path", "frames", "finish"),
    [("/v1/responses", RESPONSES, None), ("/v1/messages", ANTHROPIC, "end_turn")],
    ids=["responses", "messages"],
)
def test_the_forms_of_agents_pass_and_are_measured(
    world: Any, path: str, frames: list[dict[str, Any]], finish: str | None
) -> None:
    sent = b"".join(f"event: {one['type']}\n".encode() + frame(one) for one in frames)

    async def talks(engine: Any, body: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        writer.write(sent)
        await writer.drain()
        writer.write_eof()

    async def go() -> None:
        async with world(talks) as served, httpx.AsyncClient(base_url=served.url) as client:
            body = {"model": "m", "input": "hi", "messages": MESSAGES, "max_tokens": 9, "stream": True}
            served.running[:] = [replace(served.running[0], usage_on_request=True, native_infill=False)]
            answer = await client.post(path, json=body)
            assert answer.content == sent
            assert served.engine.received == [(path, body)]
            (request,) = served.gateway.request_log.requests()
            assert request.ttft is not None
            prompt = 8 if path == "/v1/messages" else 5
            assert (request.prompt_tokens, request.cached_tokens, request.generated_tokens) == (prompt, 3, 2)
            assert request.finish == finish

    asyncio.run(go())


def test_vllms_error_for_a_prompt_that_is_too_long_has_the_code_that_agents_look_for() -> None:
    error = {"message": "too long", "type": "BadRequestError", "param": "input_tokens", "code": 400}
    fault = engine_fault(400, json.dumps({"error": error}).encode())
    assert (fault.code, fault.reason, fault.source) == (
        "context_length_exceeded",
        Reason.CONTEXT_TOO_LONG,
        "engine",
    )
