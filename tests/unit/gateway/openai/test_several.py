"""Streams of several answers, over frames as llama.cpp's server (build 11549) writes them."""

import json
from typing import Any

import pytest

from engine_host.core import sse
from engine_host.gateway.openai.several import SeveralAnswers

DONE = b"data: [DONE]\n\n"


def frame(value: Any) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def usage(written: int, read: int = 9, cached: int = 5) -> dict[str, Any]:
    counts = {"completion_tokens": written, "prompt_tokens": read, "total_tokens": written + read}
    return {
        "usage": {**counts, "prompt_tokens_details": {"cached_tokens": cached}},
        "timings": {"cache_n": 5},
    }


def delta(index: int, text: str) -> bytes:
    return frame({"choices": [{"index": index, "delta": {"content": text}}], "id": "1"})


CHAT = [
    delta(0, "a"), delta(1, '"usage": b'), frame({"choices": [], "id": "1", **usage(2)}), delta(0, "c"),
    frame({"choices": [], "id": "1", **usage(3)}),
]  # fmt: skip
ENDS = [{"choices": [{"index": index, "text": "", "finish_reason": "stop"}], "id": "1"} for index in (0, 1)]
TEXT = [frame(None), frame({**ENDS[0], **usage(2)}), frame({**ENDS[1], **usage(3, read=4, cached=1)})]


def passed(stream: bytes, *, shows_usage: bool, one_prompt: bool, size: int) -> list[bytes]:
    several = SeveralAnswers(shows_usage=shows_usage, one_prompt=one_prompt)
    told = b"".join(several.feed(stream[at : at + size]) for at in range(0, len(stream), size))
    return [one + sse.FRAME_END for one in sse.split(told + several.end())]


@pytest.mark.parametrize("size", [1 << 20, 7])
@pytest.mark.parametrize("shows_usage", [True, False])
def test_answers_to_one_chat_have_one_end(shows_usage: bool, size: int) -> None:
    told = passed(b"".join([*CHAT, DONE]), shows_usage=shows_usage, one_prompt=True, size=size)
    assert told[:3] == [CHAT[0], CHAT[1], CHAT[3]]
    assert told[-1] == DONE
    assert len(told) == (5 if shows_usage else 4)
    if shows_usage:
        last = json.loads(sse.data_of(told[3].removesuffix(sse.FRAME_END)))
        assert last == {"choices": [], "id": "1", "usage": usage(5)["usage"]}


@pytest.mark.parametrize("size", [1 << 20, 7])
@pytest.mark.parametrize("shows_usage", [True, False])
def test_answers_to_several_prompts_are_counted_with_them(shows_usage: bool, size: int) -> None:
    told = passed(b"".join([*TEXT, DONE]), shows_usage=shows_usage, one_prompt=False, size=size)
    assert told[:2] == [frame(one) for one in ENDS]
    assert told[-1] == DONE
    if shows_usage:
        last = json.loads(sse.data_of(told[2].removesuffix(sse.FRAME_END)))
        assert last["usage"] == usage(5, read=13, cached=6)["usage"]
    else:
        assert len(told) == 3


@pytest.mark.parametrize(
    "odd",
    [
        b'data: {"usage":7}\n\n', b'data: {"usage":\n\n', b': ping\n\n',
        b'data: {"error":{"message":"x"},"usage":{}}\n\n', b'data: {"usage":null,"choices":[]}\n\n',
    ],
)  # fmt: skip
def test_any_other_frame_passes(odd: bytes) -> None:
    assert passed(odd + DONE, shows_usage=True, one_prompt=True, size=1 << 20) == [odd, DONE]
    assert passed(odd, shows_usage=True, one_prompt=True, size=1 << 20) == [odd]
