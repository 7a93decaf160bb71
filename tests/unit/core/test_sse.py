"""Streams of events: lines end where the standard ends them, and no message fills the memory."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.core import sse
from engine_host.core.sse import SseMessage, StreamError, messages

SIGNS = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\r"


def cut(content: bytes, sizes: list[int]) -> Iterator[bytes]:
    """Return a stream in pieces."""
    for size in sizes:
        yield content[:size]
        content = content[size:]
    yield content


@given(st.text(), st.lists(st.integers(0, 20)))
def test_a_text_arrives_as_it_was_sent(text: str, sizes: list[int]) -> None:
    sent = f"id: 1\ndata: {json.dumps(text + SIGNS, ensure_ascii=False)}\n\n".encode()
    (found,) = messages(cut(sent, sizes))
    assert json.loads(found.data) == text + SIGNS
    assert found.id == "1"


def test_lines_may_end_as_on_windows_and_bytes_may_be_no_text() -> None:
    assert [*messages([b"data: a\r\n\r\n: b\r\n", b"data: \xff\n\n"])] == [
        SseMessage("a"),
        SseMessage(comment="b"),
        SseMessage("\ufffd"),
    ]


@pytest.mark.parametrize("piece", [b"x" * 4096, b"data: " + b"x" * 4096 + b"\n", b"data: x\n", b"id: 1\n"])
def test_a_message_without_an_end_is_cut_off(piece: bytes) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield piece

    with pytest.raises(StreamError, match="longer than"):
        for _ in messages(endless(), 1 << 20):
            pass


@given(st.lists(st.binary(max_size=12).map(lambda data: data.replace(b"z", b"\n").strip(b"\n"))))
def test_frames_that_are_passed_on_are_the_same_bytes(frames: list[bytes]) -> None:
    whole = sse.join(frames)
    assert sse.join(sse.split(whole)) == whole


def test_the_data_of_a_frame_is_read_and_changed_and_nothing_else() -> None:
    frame = b'event: delta\nid: 3\ndata: {"a": 1}'
    assert sse.data_of(frame) == b'{"a": 1}'
    assert sse.with_data(frame, b"{}") == b"event: delta\nid: 3\ndata: {}"
    assert sse.data_of(b": a comment") == b""
    assert sse.data_of(b"data:one\ndata: two") == b"one\ntwo"
    assert sse.frame_of(b"{}") == b"data: {}\n\n"
    assert sse.frame_of(b"{}", "error") == b"event: error\ndata: {}\n\n"
    assert sse.split(b"") == []


def test_a_frame_that_is_written_is_read_back() -> None:
    (message,) = sse.messages([sse.frame_of(b"one", "error")])
    assert (message.data, message.event) == ("one", "error")
