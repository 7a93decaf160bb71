"""Pieces of a stream on the short way: as they come and in order; on the long one where it has to be."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from engine_host.daemon import http_protocol
from engine_host.gateway import error_answers as faults
from engine_host.gateway.call import AskAgainError, Call
from engine_host.gateway.passage import Passage
from engine_host.gateway.routes import calls
from engine_host.protocol.engines import RequestState

CHAT = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
WORDS = 12


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The pieces that take the short way."""
    passed: list[bytes] = []
    made = http_protocol._piece_writer

    def noting(cycle: Any) -> Callable[[bytes], bool]:
        write = made(cycle)

        def noted(piece: bytes) -> bool:
            written = write(piece)
            if written and piece:
                passed.append(piece)
            return written

        return noted

    monkeypatch.setattr(http_protocol, "_piece_writer", noting)
    return passed


def slowly(scripts: Any, seen: asyncio.Event | None = None) -> Any:
    """Return an engine that writes a word, and the next one when that had the time to pass."""

    async def script(engine: Any, body: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(scripts.stream_head)
        for number in range(WORDS):
            writer.write(scripts.chunk(f"w{number} "))
            await writer.drain()
            await asyncio.sleep(0.005)
        writer.write(scripts.http_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    return script


def words_of(text: str) -> list[str]:
    """Return the words of a stream."""
    frames = [line[6:] for line in text.split("\n\n") if line.startswith("data: {")]
    return [json.loads(frame)["choices"][0]["delta"]["content"] for frame in frames]


def test_words_take_the_short_way_in_order(world: Any, scripts: Any, short: list[bytes]) -> None:
    async def go() -> None:
        async with world(slowly(scripts)) as served, httpx.AsyncClient(base_url=served.url) as client:
            text = (await client.post(CHAT, json=BODY)).text
            assert words_of(text) == [f"w{number} " for number in range(WORDS)]
            assert text.endswith("data: [DONE]\n\n")
            # Not the first, which begins the answer, and what a busy machine held back.
            assert 1 <= len(short) < WORDS
            assert b"w0 " not in b"".join(short)
            assert b"[DONE]" not in b"".join(short)
            assert served.gateway.request_log.requests()[0].state is RequestState.DONE

    asyncio.run(go())


def test_what_is_captured_takes_the_long_way(world: Any, scripts: Any, short: list[bytes]) -> None:
    async def go() -> None:
        async with world(slowly(scripts)) as served, httpx.AsyncClient(base_url=served.url) as client:
            served.gateway.captures.start(60)
            text = (await client.post(CHAT, json=BODY)).text
            assert words_of(text) == [f"w{number} " for number in range(WORDS)]
            assert short == []

    asyncio.run(go())


def test_a_translation_that_fails_in_the_middle_ends_the_stream_with_its_error(
    world: Any, scripts: Any, short: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fails(Passage):
        def feed(self, data: bytes) -> bytes:
            if b"w5 " in data:
                raise faults.odd_answer()
            return data

    plain = calls._plain

    def failing(*given: Any) -> Any:
        return calls.translated(plain(*given), Fails())

    monkeypatch.setattr(calls, "_plain", failing)

    async def go() -> None:
        async with world(slowly(scripts)) as served, httpx.AsyncClient(base_url=served.url) as client:
            text = (await client.post(CHAT, json=BODY)).text
            *before, last = [line[6:] for line in text.split("\n\n") if line.startswith("data: ")]
            assert "w4 " in before[-1]
            assert "error" in json.loads(last)
            assert short
            assert served.gateway.request_log.requests()[0].state is RequestState.FAILED
            assert served.activity[-1] == ("e1", 0)

    asyncio.run(go())


def test_a_translation_that_asks_again_in_the_middle_is_asked_again_once(
    world: Any, scripts: Any, short: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Again(Passage):
        def feed(self, data: bytes) -> bytes:
            if b"w5 " in data:
                raise AskAgainError(Call(CHAT, b"{}", True))
            return b""

    plain = calls._plain

    def again(*given: Any) -> Any:
        return replace(calls.translated(plain(*given), Again()), tentative=True)

    monkeypatch.setattr(calls, "_plain", again)

    async def go() -> None:
        async with world(slowly(scripts)) as served, httpx.AsyncClient(base_url=served.url) as client:
            text = (await client.post(CHAT, json=BODY)).text
            assert words_of(text) == [f"w{number} " for number in range(WORDS)]
            assert [body for _, body in served.engine.received][1:] == [{}]
            assert served.gateway.request_log.requests()[0].state is RequestState.DONE

    asyncio.run(go())


def test_a_client_that_reads_nothing_for_a_while_loses_nothing(
    world: Any, scripts: Any, short: list[bytes]
) -> None:
    long = "x" * 20_000

    async def much(engine: Any, body: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(scripts.stream_head)
        for number in range(300):
            writer.write(scripts.chunk(f"{number} {long}"))
            if number % 10 == 0:
                await asyncio.sleep(0.002)
        writer.write(scripts.http_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    async def go() -> None:
        async with (
            world(much) as served,
            httpx.AsyncClient(base_url=served.url) as client,
            client.stream("POST", CHAT, json=BODY) as answer,
        ):
            await asyncio.sleep(0.3)
            text = "".join([part async for part in answer.aiter_text()])
            assert [word.split(" ")[0] for word in words_of(text)] == [str(n) for n in range(300)]

    asyncio.run(go())
