"""A chat's answer as Responses: whole events in order, however the chat's stream is cut."""

import json
from typing import Any

import pytest

from engine_host.core import sse
from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.passage import Two
from engine_host.gateway.responses.answer import Frame
from engine_host.gateway.responses.events import ResponseEvents
from engine_host.gateway.responses.from_chat import ChatAsResponse

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
DONE = b"data: [DONE]\n\n"


def translating() -> Two:
    return Two(ChatAsResponse("own"), ResponseEvents(Frame("resp_own", "m", 1000, {"model": "m"}, 8192)))


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return sse.frame_of(json.dumps({"id": "c", "choices": [choice], **more}).encode())


def call(number: int, arguments: str, **more: Any) -> dict[str, Any]:
    return {
        "tool_calls": [
            {"index": number, "function": {"arguments": arguments, **more.pop("function", {})}, **more}
        ]
    }


def events(stream: bytes, size: int = 1 << 20) -> list[dict[str, Any]]:
    made = translating()
    out = b"".join(made.feed(stream[at : at + size]) for at in range(0, len(stream), size)) + made.end()
    told = [json.loads(message.data) for message in sse.messages([out]) if message.data]
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    return told


THOUGHT = (
    chunk({"role": "assistant", "content": ""})
    + chunk({"reasoning_content": "h"})
    + chunk({"reasoning_content": "m"})
    + chunk({"content": "a "})
    + chunk({"content": "b"})
    + chunk(call(0, "", id="c1", function={"name": "look"}))
    + chunk(call(1, '{"x"', id="c2", function={"name": "feel"}))
    + chunk(call(0, "{}"))
    + chunk(call(1, ":1}"))
    + chunk({}, "tool_calls", usage=USAGE)
    + DONE
)


@pytest.mark.parametrize("size", [1 << 20, 5])
def test_thoughts_text_and_calls_in_turns(size: int) -> None:
    told = events(THOUGHT, size)
    assert (told[0]["type"], told[-1]["type"]) == ("response.created", "response.completed")
    answer = told[-1]["response"]
    assert [item["type"] for item in answer["output"]] == [
        "reasoning", "message", "function_call", "function_call",
    ]  # fmt: skip
    assert answer["output"][1]["content"][0]["text"] == "a b"
    assert [(one["call_id"], one["name"], one["arguments"]) for one in answer["output"][2:]] == [
        ("c1", "look", "{}"), ("c2", "feel", '{"x":1}'),
    ]  # fmt: skip
    assert answer["usage"]["input_tokens_details"] == {"cached_tokens": 2}
    assert (answer["usage"]["total_tokens"], answer["status"]) == (10, "completed")
    done = [event["item"]["id"] for event in told if event["type"] == "response.output_item.done"]
    assert done == [item["id"] for item in answer["output"]]
    for event in told:
        if "item_id" in event:
            assert answer["output"][event["output_index"]]["id"] == event["item_id"]


def test_a_limit_is_incomplete() -> None:
    told = events(chunk({"content": "a"}) + chunk({}, "length") + DONE)
    assert told[-1]["type"] == "response.incomplete"
    assert told[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_a_stream_without_its_last_frame_is_ended() -> None:
    assert events(chunk({"content": "a"}))[-1]["type"] == "response.completed"


def test_an_error_is_a_failed_answer() -> None:
    told = events(chunk({"content": "a"}) + sse.frame_of(b'{"error": {"message": "broke"}}') + DONE)
    assert (told[-1]["type"], told[-1]["response"]["error"]["message"]) == ("response.failed", "broke")


def test_a_whole_answer() -> None:
    message = {"role": "assistant", "content": "a b", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
    ]}  # fmt: skip
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], "usage": USAGE}).encode()
    answer = json.loads(translating().convert(body))
    assert (answer["object"], answer["model"], answer["status"]) == ("response", "m", "completed")
    assert [item["type"] for item in answer["output"]] == ["message", "function_call"]


@pytest.mark.parametrize(
    "junk",
    [b"7", b"[]", b'{"choices": 7}', b'{"choices": [7]}', b'{"choices": [{"delta": 7}]}', b"\xff",
     b'{"choices": [{"delta": {"tool_calls": [7]}}]}', b'{"choices": [{"delta": {"tool_calls": 7}}]}'],
)  # fmt: skip
def test_junk_is_a_clear_error(junk: bytes) -> None:
    with pytest.raises(EndpointError):
        translating().feed(b"data: " + junk + b"\n\n")


def test_calls_without_end_are_an_error() -> None:
    made = ChatAsResponse("own")
    stream = b"".join(chunk(call(number, "x")) for number in range(1000))
    with pytest.raises(EndpointError):
        made.feed(stream)
