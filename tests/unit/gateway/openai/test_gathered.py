"""Several answers as a whole, out of a stream of llama.cpp's whose figures are of each."""

import json
from typing import Any

import pytest

from engine_host.core import sse
from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.openai.gathered import gathered, streamed
from engine_host.gateway.routes.calls import chat, completion
from engine_host.gateway.routes.rows import Asked

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
HEAD: dict[str, Any] = {"id": "c", "model": "m", "object": "chat.completion.chunk", "created": 1}


def stream(*frames: dict[str, Any] | None) -> bytes:
    """Return these frames, and the last one of each stream."""
    told = [None if frame is None else {**HEAD, **frame} for frame in frames]
    return b"".join(sse.frame_of(json.dumps(frame).encode()) for frame in told) + b"data: [DONE]\n\n"


def piece(index: int, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}


def usage(prompt: int, written: int, cached: int = 0) -> dict[str, Any]:
    return {
        "choices": [],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
        "timings": {"predicted_n": written},
    }


def test_the_tokens_of_all_answers_count_and_the_prompt_once() -> None:
    told = stream(
        piece(1, {"role": "assistant", "content": None}),
        piece(1, {"content": "b"}),
        piece(0, {"role": "assistant", "content": None}),
        piece(0, {"reasoning_content": "r"}),
        piece(1, {}, "stop"),
        usage(7, 2, 3),
        piece(0, {"content": "a"}),
        piece(0, {"content": "c"}, "length"),
        usage(7, 4, 3),
    )
    answer = json.loads(gathered(told, several=True))
    assert answer["object"] == "chat.completion"
    assert answer["usage"] == {**usage(7, 6, 3)["usage"], "total_tokens": 13}
    assert "timings" not in answer, "those of several answers have no common time"
    first, second = answer["choices"]
    assert first["message"] == {"role": "assistant", "content": "ac", "reasoning_content": "r"}
    assert (first["finish_reason"], second["finish_reason"]) == ("length", "stop")
    assert second["message"]["content"] == "b"


def test_one_answer_keeps_its_own_figures() -> None:
    told = stream(
        piece(0, {"role": "assistant", "content": None}), piece(0, {"content": "a"}), usage(7, 1, 3)
    )
    answer = json.loads(gathered(told))
    assert (answer["usage"], answer["timings"]) == (usage(7, 1, 3)["usage"], {"predicted_n": 1})
    assert gathered(b'{"choices": []}') == b'{"choices": []}', "an engine that does not stream"


def test_calls_are_whole_and_in_order() -> None:
    def call(number: int, **function: str) -> dict[str, Any]:
        named = {"id": f"call{number}", "type": "function"} if "name" in function else {}
        return {"tool_calls": [{"index": number, **named, "function": function}]}

    told = stream(
        piece(0, call(0, name="f", arguments="")),
        piece(0, call(0, arguments='{"a":')),
        piece(0, call(0, arguments="1}")),
        piece(0, call(1, name="g", arguments="{}")),
        piece(0, {}, "tool_calls"),
        usage(1, 9),
    )
    (choice,) = json.loads(gathered(told, several=True))["choices"]
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"] == [
        {"type": "function", "function": {"name": "f", "arguments": '{"a":1}'}, "id": "call0"},
        {"type": "function", "function": {"name": "g", "arguments": "{}"}, "id": "call1"},
    ]


def test_prompts_count_each() -> None:
    head = {**HEAD, "object": "text_completion"}

    def text(index: int, words: str, tokens: int) -> dict[str, Any]:
        choice = {"index": index, "text": words, "logprobs": None, "finish_reason": "stop"}
        return {**head, "choices": [choice], "usage": usage(tokens, 1)["usage"]}

    answer = json.loads(gathered(stream(text(1, "b", 2), text(0, "a", 3)), several=True, one_prompt=False))
    assert [choice["text"] for choice in answer["choices"]] == ["a", "b"]
    assert answer["usage"]["prompt_tokens"] == 5
    assert answer["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize(
    ("told", "status"),
    [
        (stream({"error": {"code": 500, "message": "compute failed"}}), 500),
        (b"data: {\n\n", 502),
        (b'data: {"choices": 5}\n\n', 502),
        (b'data: {"choices": [{"delta": {}}]}\n\n', 502),
    ],
)
def test_a_stream_that_fails_is_an_error(told: bytes, status: int) -> None:
    with pytest.raises(EndpointError) as raised:
        gathered(told)
    assert raised.value.status == status


@pytest.mark.parametrize(
    ("body", "asks"),
    [
        ({"n": 2}, True),
        ({"n": 1}, True),
        ({}, True),
        ({"tools": [TOOL]}, False),
        ({"messages": [{"role": "assistant", "content": "It is"}]}, False),
        ({"n": 2, "stream": True}, False),
        ({"n": 2, "logprobs": True}, False),
        ({"logprobs": False}, True),
        ({"n_probs": 2}, False),
    ],
)
def test_a_stream_is_asked_for_where_it_tells_as_much_as_a_whole_answer(
    body: dict[str, Any], asks: bool
) -> None:
    target = Target("e", "m", 1, 4096, 0.0, socket="/s", native_infill=True)
    whole = {"model": "m", "messages": [{"role": "user", "content": "x"}], **body}
    call = chat(Asked("/v1/chat/completions", json.dumps(whole).encode(), whole, target, "req_1"))
    assert (call.gather is not None) == asks
    assert call.stream == bool(body.get("stream")), "what the client gets is as it asked"
    if asks:
        assert json.loads(call.body)["stream"] is True
    prompts = {"model": "m", "prompt": ["a", "b"]}
    raw = json.dumps(prompts).encode()
    assert completion(Asked("/v1/completions", raw, prompts, target, "req_1")).gather is not None


@pytest.mark.parametrize("top", [0, 2])
def test_log_probabilities_are_asked_for_as_a_whole(top: int) -> None:
    target = Target("e", "m", 1, 4096, 0.0, socket="/s", native_infill=True)
    body = {"model": "m", "prompt": "a", "logprobs": top}
    call = completion(Asked("/v1/completions", json.dumps(body).encode(), body, target, "req_1"))
    assert call.gather is None


@pytest.mark.parametrize(
    ("raw", "asks"),
    [
        (b'{"model": "m", "prompt": "a", "dimensions": 1e400}', False),
        (b'{"model": "m", "prompt": "a", "n": 2, "top_k": -1e999}', False),
        (b'\xef\xbb\xbf{"model": "m", "prompt": "a"}', True),
        (b'{"model": "m", "prompt": "a", "messages": [null]}', True),
        (b'{"model": "m", "prompt": "a", "messages": 5}', True),
    ],
)
def test_odd_requests_reach_the_engine(raw: bytes, asks: bool) -> None:
    target = Target("e", "m", 1, 4096, 0.0, socket="/s", native_infill=True)
    body = json.loads(raw.decode("utf-8-sig"))
    call = completion(Asked("/v1/completions", raw, body, target, "req_1"))
    assert (call.gather is not None) == asks
    assert asks or call.body == raw


def test_a_request_for_a_stream_is_the_same_request() -> None:
    sent = json.loads(streamed(b'{"model": "m", "n": 2}'))
    assert sent == {"model": "m", "n": 2, "stream": True, "stream_options": {"include_usage": True}}
