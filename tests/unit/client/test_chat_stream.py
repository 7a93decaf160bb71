"""How an answer is timed where the engine tells no rate of its own."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from engine_host.client.chat_stream import collect


def text(content: str, **more: Any) -> dict[str, Any]:
    """One chunk of a chat stream."""
    return {"choices": [{"delta": {"content": content}}], **more}


USAGE = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 11}}


def test_the_rate_is_that_at_which_the_text_came(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def stream() -> Iterator[dict[str, Any]]:
        clock[0] += 0.5
        yield text("a")
        clock[0] += 2.0
        yield text("b")
        clock[0] += 1.0
        yield USAGE

    answer = collect(stream(), None, 100.0)
    assert (answer.text, answer.ttft, answer.decode_rate) == ("ab", 0.5, 5.0)


def test_the_engines_own_rate_goes_first_also_when_it_is_none() -> None:
    timed = [text("a"), text("b", timings={"predicted_per_second": 50.0}), USAGE]
    assert collect(timed, None, 0.0).decode_rate == 50.0
    silent = [text("a"), text("b", timings={"predicted_per_second": None}), USAGE]
    assert collect(silent, None, 0.0).decode_rate is None


@pytest.mark.parametrize("chunks", [[text("a"), USAGE], [text("a"), text("b")], []])
def test_what_was_not_timed_has_no_rate(chunks: list[dict[str, Any]]) -> None:
    assert collect(chunks, None, 0.0).decode_rate is None
