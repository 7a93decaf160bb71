"""Figures of answers that anybody may have written."""

import json
from typing import Any

import pytest

from engine_host.core.outside.json_text import parse_object
from engine_host.gateway.meter import Figures, Meter, figures_of_answer

ODD: list[dict[str, Any]] = [
    {"usage": {"prompt_tokens_details": [1], "prompt_tokens": -1, "completion_tokens": 10**30}},
    {"usage": {"prompt_tokens": True}, "timings": {"predicted_per_second": 1e300, "predicted_n": 5.5}},
    {"usage": [1], "timings": "x", "choices": [1, {"finish_reason": ["x"]}]},
    {"response": {"usage": {"input_tokens_details": "x"}}},
    {"delta": {"stop_reason": {}}, "stop_reason": 5},
]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_figures_that_no_engine_counts_are_not_measured(odd: dict[str, Any]) -> None:
    assert figures_of_answer(json.dumps(odd).encode()) == Figures()


@pytest.mark.parametrize(
    "payload", [b"[" * 100_000, b"1e999", b'{"usage": {"prompt_tokens": 1e999}}', b"\xff"]
)
def test_what_is_no_frame_says_nothing(payload: bytes) -> None:
    meter = Meter()
    assert not meter.feed(b"data: " + payload + b"\n\n")
    assert meter.figures() == Figures()


def test_an_error_of_any_form_is_one() -> None:
    for error in ({"message": None}, {"code": 5}, ["x"], "x", {"message": {"a": 1}}):
        assert figures_of_answer(json.dumps({"error": error}).encode()).error is not None


@pytest.mark.parametrize(
    "form", ['"finish_reason":"stop"', '"finish_reason": "stop"', '"finish_reason" : "stop"']
)
def test_the_reason_of_the_end_is_found_however_it_is_written(form: str) -> None:
    meter = Meter()
    meter.feed(b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":null}]}\n\n')
    meter.feed(f'data: {{"choices":[{{"delta":{{}},{form}}}]}}\n\n'.encode())
    assert meter.figures() == Figures(finish="stop")


def test_of_a_stream_that_counts_in_each_frame_only_the_newest_counts_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    meter, read = Meter(), 0

    def counted(payload: bytes) -> Any:
        nonlocal read
        read += 1
        return parse_object(payload)

    monkeypatch.setattr("engine_host.gateway.meter.json_text.parse_object", counted)
    meter.feed(b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":null}]}\n\n')
    frame = b'data: {"choices":[{"delta":{"content":"a"}}],"timings":{"predicted_n":%d}}\n\n'
    for place in range(8):
        meter.feed(b"".join(frame % (place * 100 + number) for number in range(100)))
    assert meter.so_far() == Figures(generated_tokens=799)
    meter.feed(b'data: {"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"predicted_n":800}}\n\n')
    assert meter.figures() == Figures(generated_tokens=800, finish="stop")
    assert read < 6


def test_counts_are_those_of_the_newest_whole_frame_where_the_last_is_cut() -> None:
    meter = Meter()
    meter.feed(b'data: {"choices":[{"delta":{"content":"a"}}],"timings":{"predicted_n":1}}\n\n')
    meter.feed(b'data: {"choices":[{"delta":{"content":"a"}}],"timings":{"pred')
    assert meter.so_far().generated_tokens == 1
    meter.feed(b'icted_n":2}}\n\n')
    assert meter.so_far().generated_tokens == 2


@pytest.mark.parametrize(
    ("piece", "frames"),
    [
        (b'data: {"choices": []}\n\n', 1),
        (b'data: {"choices": []}\n\ndata: {"choices": []}\n\n', 2),
        (b'event: content_block_delta\ndata: {"type": "content_block_delta"}\n\n', 1),
        (b'data: {"cut": 1', 0),
        (b'data: {"said": "[DONE] event: message_stop"}\n\n', 1),
        (b"data: [DONE]\n\n", None),
        (b'data: {"a": 1}\ndata: [DONE]\n', None),
        (b"event: message_stop\ndata: {}\n\n", None),
        (b'data: {"a": 1}\nevent: response.completed\n', None),
    ],
)
def test_a_piece_that_is_counted_and_no_more(piece: bytes, frames: int | None) -> None:
    meter = Meter()
    assert meter.text(piece) is None, "before the first content all is read"
    assert meter.feed(b'data: {"choices": [{"text": "a"}]}\n\n')
    assert meter.text(piece) == frames
    assert meter.pieces == 1 + (frames or 0)


def test_figures_are_found_behind_any_number_of_pieces_without() -> None:
    meter = Meter()
    meter.feed(b'data: {"choices": [{"text": "a"}], "timings": {"predicted_n": 4}}\n\n')
    assert meter.so_far().generated_tokens == 4
    meter.feed(b'data: {"choices": [{"text": "", "finish_reason": "stop"}]}\n\n')
    meter.feed(b'data: {"choices": [], "timings": {"predicted_n": 5}}\n\n')
    found = meter.so_far()
    assert (found.generated_tokens, found.finish) == (5, "stop")
