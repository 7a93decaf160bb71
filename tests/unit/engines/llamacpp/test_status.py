"""Readings from llama-server's metrics and slots, and the proof that it is ready."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.status import read_status, readings, verify_ready
from engine_host.engines.metrics import Metrics
from engine_host.protocol.engines import Readings
from engine_host.protocol.errors import Reason

METRICS = """\
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed, excluding cached tokens
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 468
llamacpp:tokens_predicted_total 16
llamacpp:requests_deferred 2
llamacpp:spec_decode_num_draft_tokens_total 36
llamacpp:spec_decode_num_accepted_tokens_total 6
llamacpp:spec_decode_num_drafts_total 12
llamacpp:prompt_tokens_seconds 1443.5
llamacpp:predicted_tokens_seconds nan
"""
IDLE = {"id": 0, "n_ctx": 1024, "speculative": False, "is_processing": False}
BUSY = {
    "id": 1,
    "n_ctx": 1024,
    "speculative": True,
    "is_processing": True,
    "n_prompt_tokens": 100,
    "next_token": [{"n_decoded": 7}],
}


def test_readings() -> None:
    now = readings(Metrics(METRICS, "llamacpp:"), [IDLE, BUSY, {**IDLE, "n_prompt_tokens": 30}], 5.0)
    assert (now.slots_total, now.slots_busy, now.slots_reading, now.requests_waiting) == (3, 1, 0, 2)
    assert now.prefill_rate == 1443.5
    assert (now.kv_tokens, now.kv_capacity) == (130, 3072)
    assert now.prompt_tokens_total == 468
    assert now.generated_tokens_total == 16 + 7, "what runs is not in the server's counter yet"
    assert (now.draft_tokens_total, now.draft_accepted_total) == (36, 6)
    assert now.acceptance_length == 1.5


def test_prompt_tokens_that_a_slot_still_held_count_as_looked_up_and_found() -> None:
    older = readings(Metrics(METRICS, "llamacpp:"), [IDLE], 5.0)
    assert (older.prefix_hits_total, older.prefix_queries_total) == (None, None)
    now = readings(Metrics(f"{METRICS}llamacpp:prompt_tokens_cached_total 32\n", "llamacpp:"), [IDLE], 5.0)
    assert (now.prefix_hits_total, now.prefix_queries_total) == (32, 500)


def test_what_is_not_measured_is_none() -> None:
    now = readings(Metrics("", "llamacpp:"), None, 5.0)
    assert set(now.model_dump(exclude={"at"}).values()) == {None, ()}
    quiet = readings(Metrics(METRICS, "llamacpp:"), [IDLE], 5.0)
    assert quiet.draft_tokens_total is None
    assert quiet.acceptance_length is None
    assert quiet.kv_tokens == 0, "an empty slot holds nothing: that is measured"


def test_odd_metrics_do_not_break_it() -> None:
    odd = Metrics('llamacpp:tokens_predicted_total inf\nx 1\nllamacpp:y{a="b"} 3\n', "llamacpp:")
    assert odd.total("y") == 3
    none = Metrics("llamacpp:prompt_tokens_seconds 0\n", "llamacpp:")
    assert readings(none, [], 5.0).prefill_rate is None, "no prompt since it was last asked"
    assert readings(odd, [], 5.0).generated_tokens_total is None


Answer = Callable[[httpx.Request], httpx.Response]


def client(answer: Answer) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://engine")


def verified(answer: Answer, **options: Any) -> Any:
    async def run() -> Any:
        async with client(answer) as connected:
            return await verify_ready(connected, "x", began=0.0, **options)

    return asyncio.run(run())


def server(
    drafts: list[int] | None = None, tokens: int = 16, listed: str = "x", slots: object = None
) -> Answer:
    counts = iter(drafts or [])

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/slots":
            return httpx.Response(200, json=slots)
        if request.url.path == "/v1/models":
            return httpx.Response(200, json={"data": [{"id": listed}]})
        if request.url.path == "/metrics":
            return httpx.Response(200, text=f"llamacpp:spec_decode_num_drafts_total {next(counts, 0)}\n")
        if request.url.path == "/v1/embeddings":
            return httpx.Response(200, json={"data": [{"embedding": [1.0]}]})
        return httpx.Response(200, json={"usage": {"completion_tokens": tokens}})

    return answer


def test_ready() -> None:
    assert verified(server()).speculation_moved is None
    assert verified(server(), embeddings=True).token_generated
    assert verified(server([3, 3, 5]), speculation="draft-mtp").speculation_moved is True
    assert verified(server([3, *[3] * 40]), speculation="ngram-mod").speculation_moved is None


@pytest.mark.parametrize(
    ("slots", "context"),
    [
        ([{"n_ctx": 8192}, {"n_ctx": 8192}], 8192),
        ([{"n_ctx": 8192}, {"n_ctx": 4096}], 4096),
        ([{"id": 0}, {"n_ctx": "many"}, {"n_ctx": 0}, 7], None),
        ({"error": "no slots"}, None),
    ],
)
def test_the_context_of_a_stream_is_what_the_server_says(slots: object, context: int | None) -> None:
    assert verified(server(slots=slots)).context == context


@pytest.mark.parametrize(
    ("answer", "speculation", "words"),
    [
        (server(listed="y"), "off", "It lists y, not x"),
        (server(tokens=0), "off", "no token"),
        (server([3, *[3] * 40]), "draft-mtp", "nothing was drafted"),
        (lambda _request: httpx.Response(200, text="<html>"), "off", "did not answer as it should"),
    ],
)
def test_not_ready(answer: Answer, speculation: str, words: str) -> None:
    with pytest.raises(HostError, match=words) as caught:
        verified(answer, speculation=speculation)
    assert caught.value.reason is Reason.ENGINE_NOT_READY


def test_a_server_without_slots_still_gives_what_it_has() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/metrics":
            return httpx.Response(200, text=METRICS)
        return httpx.Response(501, json={"error": {}})

    async def run() -> None:
        async with client(answer) as connected:
            now = await read_status(connected)
        assert now.slots_total is None
        assert now.prompt_tokens_total == 468

    asyncio.run(run())


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"data": null}',
        b'{"data": [1, null, {"id": ["x"]}]}',
        b'{"data": [{"id": "x"}], "usage": null}',
        b'{"data": [{"id": "x"}], "usage": {"completion_tokens": "many"}}',
        b'{"data": [{"id": "x"}], "usage": {"completion_tokens": 1e999}}',
        b'{"data": [{"id": "x"}], "usage": {"completion_tokens": true}}',
        b"\xff",
        b"x" * (8 << 20),
    ],
    ids=lambda body: str(body[:40]),
)
def test_an_answer_of_another_form_is_not_ready(body: bytes) -> None:
    with pytest.raises(HostError) as caught:
        verified(lambda _request: httpx.Response(200, content=body))
    assert caught.value.reason is Reason.ENGINE_NOT_READY
    assert len(caught.value.problem.model_dump_json()) < 20_000


@pytest.mark.parametrize("number", ["1e999", "-5", "1e300", "true", '"x"', "null", "99999999999999999999999"])
def test_slots_with_numbers_that_none_has_hold_nothing(number: str) -> None:
    tokens = f'"n_ctx": {number}, "n_prompt_tokens": {number}, "next_token": [{{"n_decoded": {number}}}]'
    slot = f'[{{"is_processing": true, {tokens}}}]'

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text=METRICS if request.url.path == "/metrics" else slot)

    async def run() -> None:
        async with client(answer) as connected:
            now = await read_status(connected)
            assert now.kv_tokens in {None, 0}
            assert Readings.model_validate_json(now.model_dump_json()) == now

    asyncio.run(run())


def test_an_engine_that_drips_its_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine_host.engines.llamacpp.status._VERIFY_SECONDS", 0.1)

    class Drip(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                yield b" "
                await asyncio.sleep(0.02)

    with pytest.raises(httpx.ReadTimeout):
        verified(lambda _request: httpx.Response(200, stream=Drip()))
