"""A stream is cut at the ends of its frames, and what has no end is not collected for ever."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.gateway.openai.frames import WholeFrames
from engine_host.gateway.upstream import AnswerTooLargeError
from engine_host.protocol.engines import RequestState
from tests.unit.gateway.asking import CHAT, HELLO, ask


@given(
    st.lists(st.binary(max_size=9).map(lambda data: data.replace(b"z", b"\n")), max_size=9),
    st.sampled_from([b"\n", b"\n\n"]),
)
def test_every_byte_passes_once_and_in_order(parts: list[bytes], end: bytes) -> None:
    frames = WholeFrames(end)
    whole = [frames.feed(part) for part in parts]
    assert all(not one or one.endswith(end) for one in whole)
    rest = frames.end()
    assert end not in rest
    assert b"".join(whole) + rest == b"".join(parts)
    assert frames.end() == b""


def test_a_frame_without_an_end_is_an_error() -> None:
    frames = WholeFrames()
    for _ in range(4):
        assert frames.feed(b"x" * 1_000_000) == b""
    with pytest.raises(AnswerTooLargeError) as caught:
        frames.feed(b"x" * 1_000_000)
    assert caught.value.limit < 5_000_000


def test_an_engine_that_ends_no_frame_does_not_fill_the_memory(world: Any, scripts: Any) -> None:
    async def script(engine: Any, body: Any, writer: Any) -> None:
        writer.write(scripts.stream_head + scripts.http_chunk(b"data: "))
        while True:
            writer.write(scripts.http_chunk(b"x" * 65_536))
            await writer.drain()

    told: list[Any] = []

    def of_vllm(served: Any) -> None:
        served.running[:] = [replace(served.running[0], usage_on_request=True, native_infill=False)]
        told.append(served.gateway.request_log)

    answer = ask(lambda: world(script), "POST", CHAT, of_vllm, json={**HELLO, "stream": True})
    last = answer.text.rstrip().rpartition("data: ")[2]
    assert json.loads(last)["error"]["code"] == "answer_too_large"
    assert [one.state for one in told[0].requests()] == [RequestState.FAILED]
