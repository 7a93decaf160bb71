"""Events of a Responses stream, over frames that llama.cpp's server (build 11549) wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine_host.core import sse
from engine_host.gateway.error_answers import EndpointError, queue_full
from engine_host.gateway.responses.answer import Frame
from engine_host.gateway.responses.events import ResponseEvents
from engine_host.gateway.responses.failures import FailureTold

RECORDED = Path(__file__).parent.parent / "recorded"
REQUEST: dict[str, Any] = {
    "model": "m",
    "input": "Say hi",
    "tools": [{"type": "function", "name": "weather"}],
}


def repairing(**request: Any) -> ResponseEvents:
    return ResponseEvents(Frame("resp_own", "demo", 1000, {**REQUEST, **request}, 8192))


def recorded(name: str) -> bytes:
    return (RECORDED / f"responses-{name}.sse").read_bytes()


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
def test_every_event_says_which_it_is_and_where_it_belongs(name: str, size: int) -> None:
    repair, stream = repairing(), recorded(name)
    pieces = [repair.feed(stream[at : at + size]) for at in range(0, len(stream), size)]
    told = events(b"".join(pieces) + repair.end())
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    ids: list[str] = []
    for event in told:
        if event["type"] == "response.output_item.added":
            assert event["output_index"] == len(ids)
            ids.append(event["item"]["id"])
        if "item_id" in event:
            assert event["output_index"] == ids.index(event["item_id"])
        if event["type"] == "response.output_item.done":
            assert event["output_index"] == ids.index(event["item"]["id"])
    first, last = told[0]["response"], told[-1]["response"]
    assert told[0]["type"] == "response.created"
    assert (first["output"], first["status"], first["model"], first["tools"]) == (
        [], "in_progress", "demo", REQUEST["tools"],
    )  # fmt: skip
    assert first["id"] == last["id"] != "resp_own"
    assert [item["id"] for item in last["output"]] == ids
    assert told[-1]["type"] == "response.completed"
    assert told[-1]["timings"]["predicted_n"] == last["usage"]["output_tokens"]


@pytest.mark.parametrize("hides", [True, False])
def test_progress_is_kept_from_a_client_that_did_not_ask(hides: bool) -> None:
    repair = ResponseEvents(Frame("resp_own", "demo", 1000, REQUEST, 8192), hides_progress=hides)
    response = {"id": "r", "object": "response", "status": "in_progress"}
    progress = {"total": 4010, "cache": 0, "processed": 2048, "time_ms": 5}
    created = {"type": "response.created", "response": response}
    told = {"type": "response.in_progress", "response": response, "prompt_progress": progress}
    stream = b"".join(
        sse.frame_of(json.dumps(one).encode(), str(one["type"])) for one in (created, told, told)
    )
    found = events(repair.feed(stream))
    assert [event["type"] for event in found] == [
        "response.created", *([] if hides else ["response.in_progress"] * 2),
    ]  # fmt: skip
    assert [event.get("prompt_progress") for event in found[1:]] == ([] if hides else [progress] * 2)


def test_the_text_is_whole_and_each_piece_goes_on_at_once() -> None:
    repair, frames = repairing(), sse.split(recorded("text"))
    text = ""
    for frame in frames:
        given = repair.feed(frame + sse.FRAME_END)
        assert given
        for event in events(given):
            if event["type"] == "response.output_text.delta":
                assert (event["content_index"], event["logprobs"]) == (0, [])
                text += event["delta"]
    assert text == events(recorded("text"))[-1]["response"]["output"][0]["content"][0]["text"]


def test_thinking_has_a_part_that_begins_and_ends() -> None:
    told = [event["type"] for event in events(repairing().feed(recorded("thinking")))]
    assert told[2:5] == [
        "response.output_item.added",
        "response.content_part.added",
        "response.reasoning_text.delta",
    ]
    end = told.index("response.reasoning_text.done")
    assert told[end : end + 3] == [
        "response.reasoning_text.done",
        "response.content_part.done",
        "response.output_item.done",
    ]


def test_a_calls_arguments_have_an_end() -> None:
    told = {event["type"]: event for event in events(repairing().feed(recorded("call")))}
    done = told["response.function_call_arguments.done"]
    assert (done["name"], json.loads(done["arguments"])) == ("weather", {"city": "Paris"})


def test_an_answer_that_was_cut_off_is_not_complete() -> None:
    last = events(repairing(max_output_tokens=6).feed(recorded("text")))[-1]
    assert (last["type"], last["response"]["status"]) == ("response.incomplete", "incomplete")
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    full = ResponseEvents(Frame("r", "demo", 1, REQUEST, 17))
    assert events(full.feed(recorded("text")))[-1]["type"] == "response.incomplete"


def test_a_whole_answer_has_all_of_its_fields() -> None:
    body = (RECORDED / "responses-whole.json").read_bytes()
    whole = json.loads(repairing().convert(body))
    assert (whole["status"], whole["incomplete_details"], whole["error"]) == ("completed", None, None)
    assert whole["usage"]["output_tokens_details"] == {"reasoning_tokens": 0}
    assert whole["tool_choice"] == "auto"
    assert json.loads(repairing(max_output_tokens=6).convert(body))["status"] == "incomplete"


def test_a_failure_is_the_event_that_codex_reads() -> None:
    for begun in (b"", recorded("text").partition(b"event: response.output_text.done")[0]):
        for repair in (repairing(), FailureTold(Frame("resp_own", "demo", 1000, REQUEST, 8192))):
            numbered = repairing().feed(begun) if isinstance(repair, FailureTold) else begun
            told = events(repair.feed(numbered) + repair.failure(queue_full("demo", 64), "req_1"))
            assert told[0]["type"] == "response.created"
            assert [event["sequence_number"] for event in told] == list(range(len(told)))
            failed = told[-1]["response"]
            assert (told[-1]["type"], failed["status"]) == ("response.failed", "failed")
            assert failed["id"] == told[0]["response"]["id"]
            assert failed["error"]["code"] == "rate_limit_exceeded"
            assert "Try again in 5s" in failed["error"]["message"]


@pytest.mark.parametrize("status", ["incomplete", "completed"])
@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_the_last_event_of_vllm_is_named_after_its_status(status: str, pieces: int) -> None:
    begun = b'event: response.created\ndata: {"type":"response.created","sequence_number":0}\n\n'
    response = {"id": "r", "status": status, "output": [{"text": "x" * 100}]}
    data = json.dumps({"type": "response.completed", "sequence_number": 9, "response": response}).encode()
    last = b"event: response.completed\ndata: " + data + b"\n\n"
    repair = FailureTold(Frame("resp_own", "demo", 1000, REQUEST, 8192))
    size = len(last) // pieces + 1
    cut = [last[at : at + size] for at in range(0, len(last), size)]
    told = repair.feed(begun + cut[0]) + b"".join(map(repair.feed, cut[1:])) + repair.end()
    assert told.startswith(begun)
    if status == "completed":
        assert told == begun + last
        return
    assert told.removeprefix(begun).startswith(b"event: response.incomplete\n")
    event = events(told)[-1]
    assert (event["type"], event["sequence_number"]) == ("response.incomplete", 9)
    assert event["response"] == response
    repair.feed(b"")
    assert repair.end() == b""


def test_a_last_event_without_an_end_is_passed_on() -> None:
    repair = FailureTold(Frame("resp_own", "demo", 1000, REQUEST, 8192))
    cut = b'event: response.completed\ndata: {"type":'
    assert repair.feed(cut) + repair.end() == cut


@pytest.mark.parametrize(
    "frame",
    [
        b'data: {"error":{"code":500,"message":"broken","type":"server_error"}}',
        b'event: error\ndata: {"type":"error","error":{"message":"broken"}}',
        b'event: error\ndata: {"type":"error","message":"broken"}',
        b'data: {"error":"broken","type":["response.failed"]}',
    ],
)
def test_an_error_of_the_engine_is_that_event_and_nothing_follows(frame: bytes) -> None:
    repair = repairing()
    told = events(repair.feed(frame + b"\n\n" + recorded("text")))
    assert [event["type"] for event in told] == ["response.created", "response.failed"]
    assert told[-1]["response"]["error"]["message"] == "broken"
    assert repair.failure(queue_full("demo", 64), "req_1") == b""


def test_comments_pass() -> None:
    assert repairing().feed(b": ping\n\n") == b": ping\n\n"


def test_an_end_without_a_beginning_has_one() -> None:
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    done = json.dumps({"type": "response.output_item.done", "item": item}).encode()
    told = [event["type"] for event in events(repairing().feed(b"data: " + done + b"\n\n"))]
    assert told == ["response.created", "response.output_item.added", "response.output_item.done"]


@pytest.mark.parametrize(
    "data",
    [
        b"[DONE]", b"7", b"{", b"\xff", b"{}", b'{"type":7}', b'{"type":["response.created"]}',
        b'{"type":"response.created"}', b'{"type":"response.completed","response":7}',
        b'{"type":"response.output_item.added","item":7}', b'{"type":"response.content_part.added"}',
        b'{"type":"response.output_item.done","item":{"id":[]}}',
        b'{"type":"response.unheard_of","item_id":{},"kind":1,"self":2}',
        b'{"type":"response.completed","response":{"output":[7,{"type":"message","content":[7]}],"usage":[]}}',
        b'{"type":"response.completed","response":{"output":7,"usage":{"output_tokens":"x","total_tokens":true}}}',
        b'{"type":"response.reasoning_text.delta","delta":7,"item_id":"x"}',
    ],
)  # fmt: skip
def test_frames_of_any_form_end_in_events_or_in_our_error(data: bytes) -> None:
    repair = repairing(max_output_tokens="x")
    refused: EndpointError | None = None
    try:
        events(repair.feed(b"data: " + data + b"\n\n"))
    except EndpointError as error:
        refused = error
    if refused is not None:
        assert refused.status == 502
        assert events(repair.failure(refused, "req_1"))[-1]["type"] == "response.failed"


@pytest.mark.parametrize("body", [b"", b"7", b"{", b"[]"])
def test_a_whole_answer_that_is_none_is_the_engines_fault(body: bytes) -> None:
    with pytest.raises(EndpointError):
        repairing().convert(body)
