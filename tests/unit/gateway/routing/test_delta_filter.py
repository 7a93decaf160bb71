"""A key that several events of a stream share: hidden in each form, and nothing else is changed."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from engine_host.core import sse
from engine_host.gateway.routing.delta_filter import DeltaFilter, delta_filter
from tests.hostile.effort import linear

KEY = "gsk_gsk_hunter22"
TEXT = f"gsk_ a {KEY} gsk_{KEY}gs"
SAFE = "gsk_ a *** gsk_***gs"


def content(text: str, index: int = 0, name: str = "content") -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": index, "delta": {name: text}, "finish_reason": None}]}


def arguments(text: str, number: int = 0) -> dict[str, Any]:
    call = {"index": number, "function": {"arguments": text}}
    return {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}


def completion(text: str) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "text": text, "finish_reason": None}]}


def responses(text: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "delta": text}


def frames(*values: dict[str, Any]) -> bytes:
    return b"".join(sse.frame_of(json.dumps(value).encode()) for value in values)


def passed(data: bytes, size: int) -> list[dict[str, Any]]:
    """Return the events that pass, of a stream that comes in pieces of so many bytes."""
    made = DeltaFilter(KEY)
    out = b"".join([made.feed(data[at : at + size]) for at in range(0, len(data), size)]) + made.end()
    return [json.loads(payload) for payload in sse.payloads(out) if payload != b"[DONE]"]


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(
        event.get("delta") or "".join(_said(choice) for choice in event.get("choices", ()))
        for event in events
    )


def _said(choice: dict[str, Any]) -> str:
    delta = choice.get("delta", {})
    calls = "".join(call["function"]["arguments"] for call in delta.get("tool_calls", ()))
    return choice.get("text") or delta.get("content") or delta.get("reasoning_content") or calls or ""


@pytest.mark.parametrize("form", [content, arguments, completion, responses])
@pytest.mark.parametrize("words", [1, 2, 5, 16, 100])
@pytest.mark.parametrize("size", [7, 4096])
@pytest.mark.parametrize("end", [b"", b"data: [DONE]\n\n"])
def test_it_is_found_however_the_events_part_it(
    form: Callable[[str], dict[str, Any]], words: int, size: int, end: bytes
) -> None:
    events = [form(TEXT[at : at + words]) for at in range(0, len(TEXT), words)]
    assert text_of(passed(frames(*events) + end, size)) == SAFE


def test_texts_beside_each_other_are_told_apart() -> None:
    half, rest = KEY[:8], KEY[8:]
    events = [
        content(half),
        content(half, 1),
        content(half, 0, "reasoning_content"),
        content(rest),
        content("x", 1),
    ]
    out = passed(frames(*events), 4096)
    by_channel: dict[tuple[int, str], str] = {}
    for event in out:
        for choice in event["choices"]:
            for name, text in choice["delta"].items():
                channel = (choice["index"], name)
                by_channel[channel] = by_channel.get(channel, "") + text
    assert by_channel == {(0, "content"): "***", (1, "content"): f"{half}x", (0, "reasoning_content"): half}


def test_what_waited_goes_out_before_the_end_of_its_text() -> None:
    end = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    out = passed(frames(content("a gsk_"), end), 4096)
    assert [choice["finish_reason"] for event in out for choice in event["choices"]] == [None, None, "stop"]
    assert text_of(out) == "a gsk_"


def test_what_holds_nothing_of_it_is_passed_byte_for_byte() -> None:
    data = b': ping\n\nevent: x\ndata: {"choices":  [ {"delta":{"content":"\\u00e4b"}} ]}\n\ndata: [DONE]\n\n'
    made = DeltaFilter(KEY)
    assert made.feed(data) + made.end() == data


@pytest.mark.parametrize(
    "value",
    [
        {"choices": None}, {"choices": [None, 7, "x", {}]}, {"choices": [{"delta": 7}]}, {"type": 7},
        {"choices": [{"index": {}, "delta": {"content": ["x"], "tool_calls": [None, {"function": 7}]}}]},
        {"type": "x.delta", "delta": {}, "item_id": [1]},
        {"type": "x.delta", "delta": "a", "item_id": [1]},
    ],
)  # fmt: skip
def test_odd_events_pass(value: dict[str, Any]) -> None:
    assert passed(frames(value), 4096) == [value]


def test_a_whole_answer() -> None:
    made = DeltaFilter(KEY)
    assert json.loads(made.whole(json.dumps({KEY: [f"a {KEY}"]}).encode())) == {"***": ["a ***"]}
    assert made.whole(b"[1,  2]") == b"[1,  2]"
    assert made.whole(b'{"a":  1}') == b'{"a":  1}'


def test_no_key_and_a_placeholder_cost_nothing() -> None:
    assert delta_filter(None) is None
    assert delta_filter("none") is None


def test_a_stream_takes_no_longer_than_its_length() -> None:
    def act(size: int) -> Callable[[], object]:
        data = frames(*[content("g" * 15)] * (size // 64))
        return lambda: passed(data, 4096)

    linear(act, 64 << 10)


def test_a_stream_without_the_key_passes_as_it_came_and_its_beginning_does_not() -> None:
    made = DeltaFilter(KEY)
    spaced = b'data: {"g": 1, "choices": [{"index": 0, "delta": {"content": "so g"}, "gsk_": "x"}]}\n\n'
    assert made.feed(spaced.replace(b"so g", b"so")) == spaced.replace(b"so g", b"so"), "not written anew"
    assert b"so g" not in made.feed(spaced), "it may be the key's first letter"
    assert text_of([json.loads(payload) for payload in sse.payloads(made.end())]) == "g"
    escaped = b'data: {"choices": [{"index": 0, "delta": {"content": "\\u0067sk_gsk_hunter22"}}]}\n\n'
    assert b"***" in made.feed(escaped)
