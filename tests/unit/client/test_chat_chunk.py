"""Chunks of a stream that anybody may send: of a wrong form they say nothing, and end nothing."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.client import chat_chunk
from engine_host.client.chat_chunk import CallPart, Counts, Delta

CALL = {"index": 1, "function": {"name": "f", "arguments": "{"}}


def test_texts_reasoning_calls_and_figures_are_read() -> None:
    chunk = {
        "choices": [
            {
                "delta": {"content": "a", "reasoning_content": "b", "tool_calls": [CALL]},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
        "timings": {"prompt_n": 1, "predicted_n": 2, "predicted_per_second": 5.5},
    }
    (delta,) = chat_chunk.deltas(chunk)
    assert delta == Delta("a", "b", (CALL,), "stop")
    assert [*delta.parts()] == [CallPart(1, "f", "{")]
    assert chat_chunk.counts(chunk) == Counts(3, 4, 5.5, True)
    assert [*chat_chunk.deltas({"choices": [{"text": "c"}]})] == [Delta("c")]


NAMES = (
    *("choices", "delta", "content", "tool_calls", "function", "index", "usage", "timings", "text"),
    *("prompt_tokens", "predicted_per_second", "name", "arguments", "finish_reason"),
)
odd: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.just(10**400), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=5,
        ),
    ),
)


@given(st.dictionaries(st.sampled_from(["choices", "usage", "timings"]), odd))
def test_no_form_is_believed(chunk: dict[str, Any]) -> None:
    counted = chat_chunk.counts(chunk)
    assert all(one is None or 0 <= one < 1 << 48 for one in (counted.prompt_tokens, counted.rate))
    for delta in chat_chunk.deltas(chunk):
        assert isinstance(delta.text + delta.reasoning, str)
        assert all(isinstance(part.name + part.arguments, str) and part.index >= 0 for part in delta.parts())


@pytest.mark.parametrize("data", ["", "[]", "{", "1e999", '{"a": "\\ud800"}', "[" * 10_000, json.dumps("x")])
def test_what_is_no_chunk_is_none(data: str) -> None:
    assert chat_chunk.parse(data) is None
