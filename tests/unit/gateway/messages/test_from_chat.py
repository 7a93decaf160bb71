"""A chat's answer as a message."""

import json
from typing import Any

import pytest

from engine_host.core import sse
from engine_host.gateway.error_answers import EndpointError, queue_full
from engine_host.gateway.messages.from_chat import ChatAsMessage

USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}


def frame(delta: Any = None, finish: Any = None, **more: Any) -> bytes:
    value = {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def call(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": "f"} if more else {})}
    return {"tool_calls": [{"index": index, "function": function, **more}]}


STREAM = (
    frame({"role": "assistant", "content": None})
    + frame({"reasoning_content": "th"})
    + frame({"reasoning_content": "ink"})
    + frame({"content": "a"})
    + frame({"content": "b"})
    + frame(call(0, "", id="1"))
    + frame(call(0, '{"x":'))
    + frame(call(0, "1}"))
    + frame(call(1, "{}", id="2"))
    + frame({}, "tool_calls")
    + b"data: " + json.dumps({"choices": [], "usage": USAGE}).encode() + b"\n\n"
    + b"data: [DONE]\n\n"
)  # fmt: skip


def events(stream: bytes) -> list[dict[str, Any]]:
    found = []
    for message in sse.messages([stream]):
        event = json.loads(message.data)
        assert message.event == event["type"]
        found.append(event)
    return found


@pytest.mark.parametrize("size", [1 << 20, 5])
def test_blocks_follow_each_other(size: int) -> None:
    passage = ChatAsMessage("req_1", "demo")
    sent = b"".join(passage.feed(STREAM[at : at + size]) for at in range(0, len(STREAM), size))
    told = events(sent + passage.end())
    kinds = [(event["type"], event.get("index")) for event in told]
    assert kinds == [
        ("message_start", None),
        ("content_block_start", 0), *[("content_block_delta", 0)] * 3, ("content_block_stop", 0),
        ("content_block_start", 1), *[("content_block_delta", 1)] * 2, ("content_block_stop", 1),
        ("content_block_start", 2), *[("content_block_delta", 2)] * 2, ("content_block_stop", 2),
        ("content_block_start", 3), ("content_block_delta", 3), ("content_block_stop", 3),
        ("message_delta", None),
        ("message_stop", None),
    ]  # fmt: skip
    assert told[0]["message"]["id"] == "msg_1"
    assert told[4]["delta"] == {"type": "signature_delta", "signature": ""}
    begun = [event["content_block"] for event in told if event["type"] == "content_block_start"]
    assert begun[2] == {"type": "tool_use", "id": "1", "name": "f", "input": {}}
    assert told[-2]["delta"]["stop_reason"] == "tool_use"
    assert told[-2]["usage"] == {"input_tokens": 5, "output_tokens": 3, "cache_read_input_tokens": 4}


def test_each_piece_goes_on_at_once() -> None:
    passage = ChatAsMessage("req_1", "demo")
    passage.feed(frame({"role": "assistant"}))
    (_, delta) = events(passage.feed(frame({"content": "a"})))
    assert delta["delta"] == {"type": "text_delta", "text": "a"}


def test_a_whole_answer() -> None:
    function = {"name": "f", "arguments": '{"x":1}'}
    message = {"content": "a", "reasoning_content": "t", "tool_calls": [{"id": "1", "function": function}]}
    answer = {"choices": [{"message": message, "finish_reason": "length"}], "usage": USAGE}
    told = json.loads(ChatAsMessage("req_1", "demo").convert(json.dumps(answer).encode()))
    assert [block["type"] for block in told["content"]] == ["thinking", "text", "tool_use"]
    assert told["content"][2]["input"] == {"x": 1}
    assert (told["stop_reason"], told["usage"]["input_tokens"], told["model"]) == ("max_tokens", 5, "demo")


def test_a_call_that_its_limit_cut_off_is_none_and_no_failure() -> None:
    calls = [{"id": "1", "function": {"name": "f", "arguments": text}} for text in ('{"x":1}', '{"x":"lon')]
    answer = {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "length"}], "usage": USAGE}
    told = json.loads(ChatAsMessage("req_1", "demo").convert(json.dumps(answer).encode()))
    assert [block["input"] for block in told["content"]] == [{"x": 1}]
    assert told["stop_reason"] == "max_tokens"
    answer["choices"][0]["finish_reason"] = "tool_calls"  # type: ignore[index]
    with pytest.raises(EndpointError):
        ChatAsMessage("req_1", "demo").convert(json.dumps(answer).encode())


def test_an_error_has_anthropics_form_and_nothing_follows() -> None:
    passage = ChatAsMessage("req_1", "demo")
    (told,) = events(passage.feed(b'data: {"error":{"message":"broken"}}\n\n' + STREAM) + passage.end())
    assert (told["type"], told["error"]["message"]) == ("error", "broken")
    (told,) = events(ChatAsMessage("req_1", "demo").failure(queue_full("m", 1), "req_1"))
    assert told["error"]["type"] == "rate_limit_error"


@pytest.mark.parametrize(
    "data",
    [
        b"7", b"{", b"\xff", b'{"choices":7}', b'{"choices":[7]}', b'{"choices":[{"delta":7}]}',
        b'{"choices":[{"delta":{"tool_calls":7}}]}', b'{"choices":[{"delta":{"tool_calls":[7]}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"index":"x","function":{}}]}}]}', b"{}",
        b'{"choices":[{"delta":{"content":7},"finish_reason":{}}]}', b'{"usage":{"prompt_tokens":"x"}}',
        b'{"usage":{"prompt_tokens_details":7}}',
    ],
)  # fmt: skip
def test_frames_of_any_form_end_in_events_or_in_our_error(data: bytes) -> None:
    passage = ChatAsMessage("req_1", "demo")
    refused: EndpointError | None = None
    try:
        events(passage.feed(b"data: " + data + b"\n\n") + passage.end())
    except EndpointError as error:
        refused = error
    assert refused is None or refused.status == 502
    with pytest.raises(EndpointError):
        ChatAsMessage("req_1", "demo").convert(data)
