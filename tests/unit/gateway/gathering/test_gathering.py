"""Whole answers out of streams of llama.cpp."""

import json
from dataclasses import replace
from typing import Any

import pytest

from engine_host.core import sse
from engine_host.gateway.call import Call
from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.gathering.asking import ToldError, in_pieces

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
LLAMACPP = Target("e", "m", 1, 4096, 0.0, socket="/s", native_infill=True)
HEAD: dict[str, Any] = {"id": "c", "model": "m", "object": "chat.completion.chunk", "created": 1}


def stream(*frames: dict[str, Any] | None) -> bytes:
    """Return these frames, and the last one of each stream."""
    told = [None if frame is None else {**HEAD, **frame} for frame in frames]
    return b"".join(sse.frame_of(json.dumps(frame).encode()) for frame in told) + b"data: [DONE]\n\n"


def gathered(told: bytes, path: str = "/v1/chat/completions", **body: Any) -> bytes:
    """Return the whole answer to such a request out of a stream."""
    call = in_pieces(Call(path, json.dumps({"model": "m", **body}).encode(), stream=False), LLAMACPP)
    assert call.gather is not None
    return call.gather(told)


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
    answer = json.loads(gathered(told, n=2))
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
    (choice,) = json.loads(gathered(told, n=2))["choices"]
    assert choice["message"]["content"] == ""
    assert choice["message"]["tool_calls"] == [
        {"type": "function", "function": {"name": "f", "arguments": '{"a":1}'}, "id": "call0"},
        {"type": "function", "function": {"name": "g", "arguments": "{}"}, "id": "call1"},
    ]


def test_prompts_count_each() -> None:
    head = {**HEAD, "object": "text_completion"}

    def text(index: int, words: str, tokens: int) -> dict[str, Any]:
        choice = {"index": index, "text": words, "logprobs": None, "finish_reason": "stop"}
        return {**head, "choices": [choice], "usage": usage(tokens, 1)["usage"]}

    answer = json.loads(
        gathered(stream(text(1, "b", 2), text(0, "a", 3)), "/v1/completions", prompt=["a", "b"])
    )
    assert [choice["text"] for choice in answer["choices"]] == ["a", "b"]
    assert answer["usage"]["prompt_tokens"] == 5
    assert answer["usage"]["completion_tokens"] == 2


CHUNK = {"index": 0, "content": "a", "tokens": [1], "stop": False}
STARTED = {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 0}}}
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "name": "f"}}
INPUT = {"type": "input_json_delta", "partial_json": '{"a": 123456789012345678901'}
HALF = {"type": "content_block_delta", "index": 0, "delta": INPUT}
ENDED = ({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 2}},)


@pytest.mark.parametrize(
    ("path", "frames"),
    [
        ("/v1/chat/completions", (b"{", {"choices": 5}, {"choices": [{"delta": {}}]})),
        ("/v1/responses", (b"{", {"type": "response.created"}, {"type": "response.completed"}, {"a": 1})),
        ("/v1/messages", (b"{", STARTED, HALF, {"type": "content_block_start"})),
        ("/completion", (b"{", CHUNK, {**CHUNK, "content": 5}, {"tokens": []})),
    ],
)
def test_a_stream_that_is_none_or_has_no_end_is_an_error(path: str, frames: tuple[Any, ...]) -> None:
    for frame in frames:
        told = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
        with pytest.raises(EndpointError) as raised:
            gathered(sse.frame_of(told), path)
        assert raised.value.status == 502, frame


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/infill"])
@pytest.mark.parametrize(("code", "status"), [(400, 400), (500, 500), ("odd", 500), (None, 500)])
def test_an_error_in_the_midst_is_that_of_a_whole_answer(path: str, code: object, status: int) -> None:
    told = {"error": {"code": code, "message": "compute failed"}}
    with pytest.raises(ToldError) as raised:
        gathered(sse.frame_of(json.dumps(told).encode(), "error"), path)
    assert (raised.value.status, json.loads(raised.value.body)) == (status, told)


def test_a_message_has_whole_inputs_or_none() -> None:
    def told(*frames: dict[str, Any]) -> bytes:
        return b"".join(sse.frame_of(json.dumps(one).encode(), one["type"]) for one in frames)

    end = (*ENDED, {"type": "message_stop"})
    answer = json.loads(gathered(told(STARTED, BLOCK, HALF, *end), "/v1/messages"))
    assert answer == {
        "usage": {"input_tokens": 3, "output_tokens": 2},
        "stop_reason": "max_tokens",
        "content": [{"type": "tool_use", "name": "f", "input": {}}],
    }
    close = {**HALF, "delta": {**INPUT, "partial_json": "}"}}
    (block,) = json.loads(gathered(told(STARTED, BLOCK, HALF, close, *end), "/v1/messages"))["content"]
    assert block["input"] == {"a": 123456789012345678901}


@pytest.mark.parametrize(
    ("path", "body", "asks"),
    [
        ("/v1/chat/completions", {"n": 2}, True),
        ("/v1/chat/completions", {"n": 1}, True),
        ("/v1/chat/completions", {}, False),
        ("/v1/chat/completions", {"messages": []}, True),
        ("/v1/chat/completions", {"tools": [TOOL]}, True),
        ("/v1/chat/completions", {"tools": [TOOL], "max_tokens": 5}, False),
        ("/v1/chat/completions", {"messages": [{"role": "assistant", "content": "It is"}]}, False),
        ("/v1/chat/completions", {"n": 2, "logprobs": True}, False),
        ("/v1/chat/completions", {"logprobs": False}, True),
        ("/v1/chat/completions", {"n_probs": 2}, False),
        ("/v1/completions", {"prompt": "a", "logprobs": 0}, True),
        ("/v1/completions", {"prompt": "a", "logprobs": 0, "stop": ["b"]}, False),
        ("/v1/messages", {"messages": [{"role": "user", "content": "a"}]}, True),
        ("/v1/messages", {"messages": [{"role": "assistant", "content": "It is"}]}, False),
        ("/v1/responses", {"input": "a"}, True),
        ("/v1/responses", {"input": [{"role": "assistant", "content": "It is"}]}, False),
        ("/v1/responses", {"input": "a", "tools": [TOOL], "max_output_tokens": 5.0}, False),
        ("/completion", {"prompt": "a", "n_probs": 2}, True),
        ("/completion", {"prompt": "a", "n_probs": 2, "stop": ["b"]}, False),
        ("/completion", {"prompt": ["a", "b"]}, False),
        ("/infill", {"response_fields": ["content"]}, False),
        ("/v1/embeddings", {"input": "a"}, False),
    ],
)
def test_a_stream_is_asked_for_where_it_tells_as_much_as_a_whole_answer(
    path: str, body: dict[str, Any], asks: bool
) -> None:
    call = Call(path, json.dumps(body).encode(), stream=False)
    asked = in_pieces(call, LLAMACPP)
    assert (asked.gather is not None) == asks
    assert not asked.stream, "what the client gets is as it asked"
    own = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
    assert json.loads(asked.body) == (body | own if asks else body)
    assert in_pieces(call, replace(LLAMACPP, native_infill=False)) is call, "vLLM looks for its client"
    streamed = replace(call, stream=True)
    assert in_pieces(streamed, LLAMACPP) is streamed


@pytest.mark.parametrize(
    ("raw", "asks"),
    [
        (b'{"model": "m", "prompt": "a", "dimensions": 1e400}', False),
        (b'{"model": "m", "prompt": "a", "n": 2, "top_k": -1e999}', False),
        (b'\xef\xbb\xbf{"model": "m", "prompt": "a"}', True),
        (b'{"model": "m", "prompt": "a", "stream": false}\r\n', True),
        (b'{"model": "m", "prompt": "a", "messages": [null]}', True),
        (b'{"model": "m", "prompt": "a", "messages": 5}', True),
    ],
)
def test_odd_requests_reach_the_engine(raw: bytes, asks: bool) -> None:
    for path in ("/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/completion"):
        call = in_pieces(Call(path, raw, stream=False), LLAMACPP)
        if not asks:
            assert call.body == raw
        else:
            assert json.loads(call.body.decode("utf-8-sig"))["stream"] is True
