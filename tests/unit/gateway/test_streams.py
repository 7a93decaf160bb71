"""Streams: relayed as they are, waited for in order, ended in every way they can end."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from engine_host.gateway import Limits
from engine_host.protocol.engines import RequestState
from engine_host.protocol.errors import Reason

BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "secret"}], "stream": True}
CHAT = "/v1/chat/completions"


async def until(condition: Any, seconds: float = 3.0) -> None:
    """Wait for a condition that something else makes true."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def test_a_stream_arrives_unchanged_and_is_measured(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            served.engine.go.set()
            answer = await client.post(CHAT, json=BODY, headers={"user-agent": "editor/1"})
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "text/event-stream"
            lines = answer.text.split("\n\n")
            assert all(line.startswith("data: ") for line in lines[:-1])
            assert lines[-2] == "data: [DONE]"
            assert lines[-1] == ""
            assert json.loads(lines[0][6:])["choices"][0]["delta"]["content"] == "a "
            (request,) = served.gateway.request_log.requests("e1")
            assert answer.headers["x-request-id"] == request.id
            assert request.state is RequestState.DONE
            assert request.client == "editor/1"
            assert (request.prompt_tokens, request.cached_tokens, request.generated_tokens) == (7, 3, 2)
            assert (request.draft_tokens, request.draft_accepted, request.decode_rate) == (4, 2, 50.0)
            assert request.finish == "stop"
            assert request.ttft is not None
            assert served.states() == [RequestState.PREFILL, RequestState.DECODE, RequestState.DONE]
            assert served.activity == [("e1", 1), ("e1", 0)]
            assert "secret" not in repr(served.events)

    asyncio.run(go())


def test_a_whole_answer_passes_unchanged(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            served.engine.go.set()
            answer = await client.post(CHAT, json={**BODY, "stream": False})
            assert answer.json()["choices"][0]["message"]["content"] == "a b"
            assert served.gateway.request_log.requests()[0].generated_tokens == 2

    asyncio.run(go())


@pytest.mark.parametrize(
    ("last", "whole"),
    [
        (b"data: [DONE]", True),
        (b"event: message_stop\ndata: {}", True),
        (b"event: response.completed\ndata: {}", True),
        (b": nothing more", False),
    ],
)
def test_a_client_that_leaves_with_the_last_frame_was_answered(
    world: Any, scripts: Any, last: bytes, whole: bool
) -> None:
    async def slow_to_close(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
        writer.write(scripts.stream_head + scripts.chunk("a "))
        writer.write(scripts.chunk("", **end) + scripts.http_chunk(last + b"\n\n"))
        await writer.drain()
        await asyncio.Event().wait()

    async def go() -> None:
        async with world(slow_to_close) as served, httpx.AsyncClient(base_url=served.url) as client:
            async with client.stream("POST", CHAT, json=BODY) as answer:
                async for line in answer.aiter_lines():
                    if line == last.decode().split("\n")[0]:
                        break
                if whole:
                    assert served.gateway.request_log.requests()[0].state is RequestState.DONE
                    assert served.gateway.request_log.active("e1") == 0
            await until(lambda: served.engine.active == 0)
            await until(lambda: served.gateway.request_log.requests()[0].state is RequestState.DONE)
            assert served.gateway.request_log.requests()[0].finish == "length"
            assert served.states()[-1] is RequestState.DONE

    asyncio.run(go())


def test_who_waits_is_told_and_served_in_order(world: Any) -> None:
    async def go() -> None:
        async with world(slots=1) as served, httpx.AsyncClient(base_url=served.url) as client:
            order: list[str] = []

            async def ask(name: str) -> str:
                async with client.stream("POST", CHAT, json={**BODY, "user": name}) as answer:
                    waiting = str(answer.headers.get("x-sndr-waiting", ""))
                    text = waiting + "|" + "".join([part async for part in answer.aiter_text()])
                order.append(name)
                return text

            first = asyncio.create_task(ask("first"))
            await until(lambda: served.gateway.request_log.active("e1") == 1)
            second = asyncio.create_task(ask("second"))
            await until(lambda: served.gateway.request_log.waiting("e1") == 1)
            third = asyncio.create_task(ask("third"))
            await until(lambda: served.gateway.request_log.waiting("e1") == 2)
            served.engine.go.set()
            texts = await asyncio.gather(first, second, third)
            assert order == ["first", "second", "third"]
            assert texts[0].startswith("|data: ")
            assert texts[1].startswith("1|: waiting for a free slot, 0 ahead, 1 of 1 busy\n\n")
            assert texts[2].startswith("2|: waiting for a free slot, 1 ahead, 1 of 1 busy\n\n")
            assert ": waiting for a free slot, 0 ahead" in texts[2]
            assert all(text.endswith("data: [DONE]\n\n") for text in texts)
            # Each end of an answer moves all that wait; who comes next is told, the others once a second.
            assert texts[2].count(": waiting for a free slot") == 2
            waits = [request.waited for request in served.gateway.request_log.requests()]
            assert waits[0] > 0
            assert waits[-1] < waits[0]

    asyncio.run(go())


def test_a_waiting_client_that_leaves_frees_its_place(world: Any) -> None:
    async def go() -> None:
        async with world(slots=1) as served, httpx.AsyncClient(base_url=served.url) as client:
            first = asyncio.create_task(client.post(CHAT, json=BODY))
            await until(lambda: served.gateway.request_log.active("e1") == 1)
            async with client.stream("POST", CHAT, json=BODY) as waiting:
                assert waiting.headers["x-sndr-waiting"] == "1"
                assert served.gateway.request_log.waiting("e1") == 1
            await until(lambda: served.gateway.request_log.waiting("e1") == 0)
            assert served.gateway.request_log.requests()[0].state is RequestState.CANCELLED
            served.engine.go.set()
            assert (await first).text.endswith("data: [DONE]\n\n")
            assert len(served.engine.received) == 1

    asyncio.run(go())


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_stops_the_engine(world: Any, stream: bool) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            task = asyncio.create_task(client.post(CHAT, json={**BODY, "stream": stream}))
            await until(lambda: served.engine.active == 1)
            task.cancel()
            await until(lambda: served.engine.hung_up == 1, 0.5)
            await until(lambda: served.gateway.request_log.requests()[0].state is RequestState.CANCELLED)
            assert served.gateway.request_log.active("e1") == 0

    asyncio.run(go())


def test_cancel_from_the_control_centre_says_so(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            task = asyncio.create_task(client.post(CHAT, json=BODY))
            await until(lambda: RequestState.DECODE in served.states())
            (request,) = served.gateway.request_log.requests()
            assert served.gateway.request_log.cancel(request.id).state is RequestState.CANCELLED
            text = (await task).text
            assert json.loads(text.strip().split("\n\n")[-1][6:])["error"]["code"] == "cancelled"
            await until(lambda: served.engine.hung_up == 1)

    asyncio.run(go())


def test_an_engine_that_dies_in_mid_stream_leaves_an_error_frame(world: Any, scripts: Any) -> None:
    async def dies(engine: Any, body: Any, writer: asyncio.StreamWriter) -> None:
        whole = scripts.chunk("b")
        # Half a frame, so that the error must begin a new one.
        writer.write(scripts.stream_head + scripts.chunk("a ") + scripts.http_chunk(whole[5:30]))
        await writer.drain()
        writer.transport.abort()

    async def go() -> None:
        async with world(dies) as served, httpx.AsyncClient(base_url=served.url) as client:
            answer = await client.post(CHAT, json=BODY)
            last = answer.text.strip().split("\n\n")[-1]
            assert last.startswith("data: ")
            error = json.loads(last[6:])["error"]
            assert (error["code"], error["src"]) == ("engine_crashed", "sndr")
            (request,) = served.gateway.request_log.requests()
            assert request.state is RequestState.FAILED
            assert request.problem.reason is Reason.ENGINE_CRASHED

    asyncio.run(go())


def test_an_engine_that_dies_before_a_whole_answer_gives_502(world: Any) -> None:
    async def dies(engine: Any, body: Any, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async def go() -> None:
        async with world(dies) as served, httpx.AsyncClient(base_url=served.url) as client:
            answer = await client.post(CHAT, json={**BODY, "stream": False})
            assert answer.status_code == 502
            assert answer.json()["error"]["code"] == "engine_crashed"

    asyncio.run(go())


def test_a_silent_engine_is_covered_by_pings(world: Any) -> None:
    async def silent(engine: Any, body: Any, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        engine_script = engine.go.wait()
        await engine_script

    async def go() -> None:
        async with (
            world(silent, limits=Limits(ping=0.03)) as served,
            httpx.AsyncClient(base_url=served.url) as client,
            client.stream("POST", CHAT, json=BODY) as a,
        ):
            pieces = a.aiter_text()
            assert await anext(pieces) == ": ping\n\n"
            assert await anext(pieces) == ": ping\n\n"

    asyncio.run(go())


def test_pauses_within_a_stream_are_covered_by_pings(world: Any) -> None:
    async def go() -> None:
        async with (
            world(limits=Limits(ping=0.03)) as served,
            httpx.AsyncClient(base_url=served.url) as client,
        ):
            task = asyncio.create_task(client.post(CHAT, json=BODY))
            await asyncio.sleep(0.2)
            served.engine.go.set()
            text = (await task).text
            assert text.startswith("data: ")
            assert ": ping\n\n" in text
            assert text.endswith("data: [DONE]\n\n")

    asyncio.run(go())


def test_a_full_queue_is_refused_with_429(world: Any) -> None:
    async def go() -> None:
        async with (
            world(slots=1, limits=Limits(queue=1)) as served,
            httpx.AsyncClient(base_url=served.url) as client,
        ):
            tasks = []
            for _ in range(2):
                tasks.append(asyncio.create_task(client.post(CHAT, json={**BODY, "stream": False})))
                await until(
                    lambda log=served.gateway.request_log: log.active("e1") + log.waiting("e1") == len(tasks)
                )
            answer = await client.post(CHAT, json=BODY)
            assert answer.status_code == 429
            assert answer.headers["retry-after"] == "5"
            assert answer.json()["error"]["code"] == "queue_full"
            served.engine.go.set()
            assert [done.status_code for done in await asyncio.gather(*tasks)] == [200, 200]

    asyncio.run(go())


def test_drain_refuses_the_new_and_waits_for_the_old(world: Any) -> None:
    async def go() -> None:
        async with world(slots=1) as served, httpx.AsyncClient(base_url=served.url) as client:
            old = asyncio.create_task(client.post(CHAT, json=BODY))
            await until(lambda: served.gateway.request_log.active("e1") == 1)
            waiting = asyncio.create_task(client.post(CHAT, json={**BODY, "stream": False}))
            await until(lambda: served.gateway.request_log.waiting("e1") == 1)
            assert await served.gateway.drain("e1", 0.01) is False
            assert (await waiting).json()["error"]["code"] == "draining"
            new = await client.post(CHAT, json=BODY)
            assert (new.status_code, new.json()["error"]["code"]) == (503, "draining")
            drained = asyncio.create_task(served.gateway.drain("e1", 5))
            served.engine.go.set()
            assert await drained is True
            assert (await old).text.endswith("data: [DONE]\n\n")

    asyncio.run(go())


def test_closing_ends_every_stream_with_a_reason(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            task = asyncio.create_task(client.post(CHAT, json=BODY))
            await until(lambda: RequestState.DECODE in served.states())
            await served.gateway.aclose()
            assert '"code":"engine_stopped"' in (await task).text

    asyncio.run(go())


def test_an_error_frame_of_the_engine_marks_the_request_failed(world: Any, scripts: Any) -> None:
    async def fails(engine: Any, body: Any, writer: asyncio.StreamWriter) -> None:
        frame = b'data: {"error":{"message":"compute failed","type":"server_error","code":500}}\n\n'
        writer.write(scripts.stream_head + scripts.http_chunk(frame) + b"0\r\n\r\n")

    async def go() -> None:
        async with world(fails) as served, httpx.AsyncClient(base_url=served.url) as client:
            assert "compute failed" in (await client.post(CHAT, json=BODY)).text
            assert served.gateway.request_log.requests()[0].state is RequestState.FAILED

    asyncio.run(go())


def test_a_stream_faster_than_anybody_reads_loses_nothing(world: Any, scripts: Any) -> None:
    frames = [scripts.chunk(f"w{number} ") for number in range(3000)]

    async def fast(engine: Any, body: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(scripts.stream_head)
        for number, frame in enumerate(frames):
            writer.write(frame)
            if number % 10 == 0:
                await asyncio.sleep(0)
        writer.write(scripts.http_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    async def go() -> None:
        async with world(fast) as served, httpx.AsyncClient(base_url=served.url) as client:
            lines = (await client.post(CHAT, json=BODY)).text.split("\n\n")
            words = [json.loads(line[6:])["choices"][0]["delta"]["content"] for line in lines[:-2]]
            assert words == [f"w{number} " for number in range(3000)]
            assert lines[-2:] == ["data: [DONE]", ""]

    asyncio.run(go())
