"""Answers name the model as it was asked for, and nothing else in them changes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from engine_host.core.outside import json_text
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


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_vllm_is_asked_for_no_longer_an_answer_than_its_context(name: str) -> None:
    vllm = replace(TARGET, native_infill=False)
    asked = {"model": "qwen", name: 32_000}
    raw, body = for_engine(b"{}", asked, vllm)
    assert json.loads(raw) == body == {"model": "qwen", name: 4096}
    assert for_engine(b"{}", asked, TARGET)[1] is asked, "llama.cpp ends at its context by itself"
    assert for_engine(b"{}", asked, replace(vllm, provider="p"))[1] is asked
    for fine in (4096, None, True, "32000"):
        same = {"model": "qwen", name: fine}
        assert for_engine(b"{}", same, vllm)[1] is same
    unlimited = {"model": "qwen", "max_tokens": -1}
    assert for_engine(b"{}", unlimited, vllm)[1]["max_tokens"] is None
    assert for_engine(b"{}", unlimited, TARGET)[1] is unlimited, "llama.cpp knows it"


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


CHUNK = b'{"delta":{"content":"%s"},"index":0}'
QUICK = [
    b'{"id":"c","created":1,"model":"qwen","choices":[' + CHUNK % b"a" + b"]}",
    b'{"choices":[' + CHUNK % b'a { \\" } ]' + b'],"id":"c","model": "qwen","object":"o"}',
    b'{"choices":[' + CHUNK % b'\\"model\\":\\"qwen\\"' + b'],"model":"qwen"}',
    b'{"model":"qwen"}',
]
LEFT = [
    # What is deeper, or no name of the answer, or not to be told from one, keeps what it says.
    b'{"choices":[{"model":"qwen"}]}',
    b'{"tool":{"model":"qwen"},"id":"c"}',
    b'{"id":"c","tool":{"model":"qwen"}}',
    b'{"a\\"model":"qwen","b":1}',
    b'{"a":"model","b":"qwen"}',
]


@pytest.mark.parametrize("data", QUICK)
def test_a_token_is_renamed_without_reading_its_json(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_raw: bytes) -> dict[str, Any]:
        raise AssertionError("it was read")

    monkeypatch.setattr(json_text, "parse_object", read)
    got = Renaming('co"der').feed(b"data: " + data + b"\n\n")
    assert json.loads(got[6:]) == {**json.loads(data), "model": 'co"der'}


@pytest.mark.parametrize("kind", QUICK[:2])
@pytest.mark.parametrize("piece", [1, 50, 333, 9999])
def test_a_stream_is_renamed_whatever_comes_between_its_tokens(kind: bytes, piece: int) -> None:
    between = [
        b'{"choices":[{"delta":{"content":"%d"}}],"model":"qwen","usage":{"n":[1]}}' % n for n in range(3)
    ]
    all_data = [kind, kind, *LEFT, kind, between[0], kind, kind, *between[1:], b'{"model":"another"}', kind]
    stream = b"".join(b"data: " + one + b"\n\n" for one in all_data) + b": ping\n\ndata: [DONE]\n\n"
    made = Renaming("coder")
    got = b"".join(made.feed(stream[at : at + piece]) for at in range(0, len(stream), piece)) + made.end()
    told = [json.loads(line[6:]) for line in got.split(b"\n\n") if line.startswith(b"data: {")]
    for value, one in zip(map(json.loads, all_data), told, strict=True):
        assert one == ({**value, "model": "coder"} if "model" in value else value)
    assert got.endswith(b": ping\n\ndata: [DONE]\n\n")


@pytest.mark.parametrize("data", LEFT)
def test_what_is_no_name_of_the_answer_stays(data: bytes) -> None:
    whole = b"data: " + data + b"\n\n"
    assert json.loads(Renaming("coder").feed(whole)[6:]) == json.loads(data)


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
