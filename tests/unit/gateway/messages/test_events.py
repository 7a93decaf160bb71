"""Events of a Messages stream, over frames that llama.cpp's server (build 11549) wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine_host.core import sse
from engine_host.gateway.error_answers import EndpointError, Form, engine_ended, queue_full
from engine_host.gateway.messages.events import MessageEvents
from engine_host.gateway.messages.from_chat import ChatAsMessage
from engine_host.gateway.meter import Meter
from engine_host.gateway.passage import Passage

RECORDED = Path(__file__).parent.parent / "recorded"


def recorded(name: str) -> bytes:
    return (RECORDED / f"messages-{name}.sse").read_bytes()


def events(stream: bytes) -> list[dict[str, Any]]:
    """The events of a stream, each of which says the same name twice."""
    found = []
    for message in sse.messages([stream]):
        event = json.loads(message.data)
        assert message.event == event["type"]
        found.append(event)
    return found


@pytest.mark.parametrize("name", ["text", "call", "thinking"])
@pytest.mark.parametrize("size", [1 << 20, 7])
def test_blocks_follow_each_other_and_the_message_has_its_own_id(name: str, size: int) -> None:
    repair, stream = MessageEvents("req_1"), recorded(name)
    told = events(b"".join(repair.feed(stream[at : at + size]) for at in range(0, len(stream), size)))
    assert told[0]["message"]["id"].startswith("msg_")
    opened: list[int] = []
    ended: list[int] = []
    for event in told:
        if event["type"] == "content_block_start":
            assert opened == ended
            opened.append(event["index"])
            if event["content_block"]["type"] == "tool_use":
                assert event["content_block"]["input"] == {}
        if event["type"] == "content_block_delta":
            assert event["index"] == opened[-1]
            assert len(opened) == len(ended) + 1
        if event["type"] == "content_block_stop":
            ended.append(event["index"])
    assert opened == ended == list(range(len(opened)))
    assert [event["type"] for event in told][-2:] == ["message_delta", "message_stop"]
    if name == "thinking":
        kinds = [event["delta"].get("type") for event in told if "delta" in event]
        assert kinds.count("signature_delta") == 1


def test_what_needs_no_repair_passes_byte_for_byte_at_once() -> None:
    repair, frames = MessageEvents("req_1"), sse.split(recorded("text"))
    for place, frame in enumerate(frames):
        given = repair.feed(frame + sse.FRAME_END)
        assert (given == frame + sse.FRAME_END) == (place != 0)


def test_the_figures_of_a_stream_are_those_of_its_first_and_its_last_frame() -> None:
    meter = Meter()
    firsts = [meter.feed(frame + sse.FRAME_END) for frame in sse.split(recorded("text"))]
    assert firsts.index(True) == 2
    assert meter.over
    figures = meter.figures()
    assert (figures.generated_tokens, figures.finish) == (6, "max_tokens")
    assert (figures.prompt_tokens, figures.cached_tokens) == (11, 7)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"stop_reason": "end_turn", "stop_sequence": "!"}, "stop_sequence"),
        ({"stop_reason": "end_turn", "stop_sequence": None}, "end_turn"),
        ({"stop_reason": "max_tokens", "stop_sequence": "!"}, "max_tokens"),
    ],
)
def test_a_text_that_ended_the_message_is_its_reason(told: dict[str, Any], reason: str) -> None:
    event = {"type": "message_delta", "delta": told, "usage": {"output_tokens": 2}}
    frame = sse.frame_of(json.dumps(event).encode(), "message_delta")
    (streamed,) = events(MessageEvents("req_1").feed(frame))
    assert streamed == {**event, "delta": {**told, "stop_reason": reason}}
    whole = json.loads(MessageEvents("req_1").convert(json.dumps({"id": "msg_1", **told}).encode()))
    assert whole == {"id": "msg_1", **told, "stop_reason": reason}


def test_a_whole_answer_has_an_id_of_its_own() -> None:
    whole = json.loads(MessageEvents("req_1").convert((RECORDED / "messages-whole.json").read_bytes()))
    assert whole["id"].startswith("msg_")
    assert MessageEvents("req_1").convert(b'{"id": 7}') == b'{"id":7}'


@pytest.mark.parametrize(
    "frame",
    [
        b'event: error\ndata: {"error":{"code":500,"message":"broken","type":"server_error"}}',
        b'data: {"error":{"message":"broken"}}',
    ],
)
def test_an_error_of_the_engine_has_anthropics_form_and_nothing_follows(frame: bytes) -> None:
    repair = MessageEvents("req_1")
    (told,) = events(repair.feed(frame + b"\n\n" + recorded("text")))
    assert (told["type"], told["error"]["type"], told["error"]["message"]) == ("error", "api_error", "broken")
    assert (told["error"]["src"], told["request_id"]) == ("engine", "req_1")
    assert repair.failure(queue_full("m", 1), "req_1") == b""


@pytest.mark.parametrize("passage", [MessageEvents("req_2"), ChatAsMessage("req_2", "m")])
def test_an_error_of_our_own_passes_as_it_is(passage: Passage) -> None:
    ours = engine_ended("m", stopped=False, message="broken").frame(Form.ANTHROPIC, "req_1")
    assert passage.feed(ours + ours) == ours
    assert passage.failure(queue_full("m", 1), "req_1") == b""


def test_a_failure_is_anthropics_event() -> None:
    (told,) = events(MessageEvents("req_1").failure(queue_full("m", 1), "req_1"))
    assert (told["type"], told["error"]["type"], told["request_id"]) == ("error", "rate_limit_error", "req_1")


def test_comments_pass() -> None:
    assert MessageEvents("req_1").feed(b": ping\n\n") == b": ping\n\n"


@pytest.mark.parametrize(
    "data",
    [
        b"[DONE]", b"7", b"{", b"\xff", b"{}", b'{"type":7}', b'{"type":"message_start","message":7}',
        b'{"type":"content_block_start","index":[]}', b'{"type":"content_block_start","content_block":7}',
        b'{"type":"content_block_start","index":0,"content_block":{"type":{}}}',
        b'{"type":"content_block_stop","index":{"a":1}}', b'{"type":["message_stop"]}',
    ],
)  # fmt: skip
def test_frames_of_any_form_pass_or_end_in_our_error(data: bytes) -> None:
    repair = MessageEvents("req_1")
    start = b'data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}\n\n'
    refused: EndpointError | None = None
    try:
        assert repair.feed(start + b"data: " + data + b"\n\n" + start)
    except EndpointError as error:
        refused = error
    if refused is not None:
        assert refused.status == 502
        assert b"event: error" in repair.failure(refused, "req_1")


@pytest.mark.parametrize("body", [b"", b"7", b"{", b"[]"])
def test_a_whole_answer_that_is_none_is_the_engines_fault(body: bytes) -> None:
    with pytest.raises(EndpointError):
        MessageEvents("req_1").convert(body)
