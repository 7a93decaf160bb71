"""Answers name the model as it was asked for, and nothing else in them changes."""

import json
from typing import Any

from engine_host.gateway.directory import Target
from engine_host.gateway.routing.renaming import Renaming, for_engine

TARGET = Target("e", "coder", 1, 4096, 1.0, socket="/s", known_as="qwen")


def frame(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def test_a_request_names_the_model_as_the_engine_knows_it() -> None:
    raw, body = for_engine(b'{"model": "coder", "n": 1}', {"model": "coder", "n": 1}, TARGET)
    assert json.loads(raw) == body == {"model": "qwen", "n": 1}
    same = b'{ "model":"qwen" }'
    assert for_engine(same, {"model": "qwen"}, TARGET)[0] is same
    assert for_engine(b"{}", {}, TARGET) == (b"{}", {})


def test_each_form_of_a_stream() -> None:
    made = Renaming("coder")
    values: list[dict[str, Any]] = [
        {"model": "qwen", "choices": [{"delta": {"content": 'the "model":"qwen" here'}}]},
        {"type": "response.created", "response": {"model": "qwen"}},
        {"type": "message_start", "message": {"model": "qwen"}},
        {"type": "other", "item": {"arguments": {"model": "qwen"}}},
    ]
    stream = b"".join(map(frame, values)) + b": ping\n\ndata: [DONE]\n\n"
    got = b"".join(made.feed(stream[at : at + 7]) for at in range(0, len(stream), 7)) + made.end()
    told = [json.loads(line[6:]) for line in got.split(b"\n\n") if line.startswith(b"data: {")]
    assert [one.get("model") for one in told] == ["coder", None, None, None]
    assert told[0]["choices"] == values[0]["choices"]
    assert told[1]["response"]["model"] == told[2]["message"]["model"] == "coder"
    assert told[3] == values[3]
    assert got.endswith(b": ping\n\ndata: [DONE]\n\n")


def test_a_whole_answer_and_what_is_none() -> None:
    made = Renaming("coder")
    tool = {"type": "tool_use", "input": {"model": "qwen"}}
    assert json.loads(made.convert(json.dumps({"model": "qwen", "content": [tool]}).encode())) == {
        "model": "coder",
        "content": [tool],
    }
    for odd in (b'["model"]', b'{"model"', b'{"model": 7}', b"\xff", b""):
        assert made.convert(odd) == odd


def test_a_cut_frame_comes_through_at_the_end() -> None:
    made = Renaming("coder")
    assert made.feed(b'data: {"model": "qw') == b""
    assert made.end() == b'data: {"model": "qw'
