"""What is added to vLLM's answers: timings in llama.cpp's words, and a second name of reasoning."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as some

from engine_host.core import sse
from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.openai.vllm_answer import VllmAnswer

USAGE = {
    "prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13,
    "prompt_tokens_details": {"cached_tokens": 5},
}  # fmt: skip
HOSTILE = 'a "reasoning":"x" \\ "finish_reason":"stop" "choices":[] \\"'


def frame(delta: Any = None, finish: Any = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    value = {"id": "c", "choices": choices, **more}
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


BEGIN = frame({"role": "assistant", "content": ""})
WORDS = (
    frame({"reasoning": 'th"ink \\ é'})
    + frame({"reasoning": ""})
    + frame({"content": HOSTILE})
    + b": ping\n\n"
)
END = frame({"content": ""}, "stop") + frame(usage=USAGE) + b"data: [DONE]\n\n"
STREAM = BEGIN + WORDS + END


def through(
    stream: bytes, size: int = 1 << 20, *, shows: bool = True, one: bool = True
) -> list[dict[str, Any]]:
    passage = VllmAnswer(shows_usage=shows, one=one)
    passage.begun()
    told = (
        b"".join(passage.feed(stream[at : at + size]) for at in range(0, len(stream), size)) + passage.end()
    )
    assert told.endswith(b"data: [DONE]\n\n")
    assert b": ping" in told
    return [json.loads(payload) for payload in sse.payloads(told) if payload != b"[DONE]"]


@given(size=some.integers(1, len(STREAM)), shows=some.booleans())
def test_the_last_frame_has_timings_however_the_stream_is_cut(size: int, shows: bool) -> None:
    told = through(STREAM, size, shows=shows)
    last = told[-1]
    assert (last["choices"] == []) is shows
    assert [one for one in told if "timings" in one] == [last]
    assert (last["timings"]["cache_n"], last["timings"]["prompt_n"], last["timings"]["predicted_n"]) == (
        5,
        4,
        4,
    )
    assert [one for one in told if one["choices"] and one["choices"][0]["finish_reason"]] == [told[4]]
    said = [one["choices"][0]["delta"] for one in told if one["choices"]]
    assert said[1] == {"reasoning": 'th"ink \\ é', "reasoning_content": 'th"ink \\ é'}
    assert said[3] == {"content": HOSTILE}


def test_times_are_measured_where_there_are_any() -> None:
    timings = through(STREAM, 40)[-1]["timings"]
    for name in ("prompt", "predicted"):
        assert timings[f"{name}_ms"] >= 0
        assert timings[f"{name}_per_second"] > 0
    several = through(STREAM, 40, one=False)[-1]["timings"]
    assert set(several) == {"cache_n", "prompt_n", "predicted_n"}, "their tokens have no common time"


def test_what_vllm_measures_itself_counts() -> None:
    metrics = {
        "time_to_first_token_ms": 8.0, "generation_time_ms": 6.0,
        "speculative_decoding": {"num_draft_tokens": 6, "num_accepted_draft_tokens": 2},
    }  # fmt: skip
    body = json.dumps(
        {"choices": [{"message": {"content": "a"}}], "usage": USAGE, "metrics": metrics}
    ).encode()
    told = json.loads(VllmAnswer(shows_usage=False, one=True).convert(body))["timings"]
    assert told == {
        "cache_n": 5, "prompt_n": 4, "predicted_n": 4,
        "prompt_ms": 8.0, "prompt_per_token_ms": 2.0, "prompt_per_second": 500.0,
        "predicted_ms": 6.0, "predicted_per_token_ms": 2.0, "predicted_per_second": 500.0,
        "draft_n": 6, "draft_n_accepted": 2,
    }  # fmt: skip


def test_a_whole_answer_has_counts_and_no_time_that_nobody_measured() -> None:
    body = json.dumps(
        {"choices": [{"message": {"content": HOSTILE, "reasoning": "x"}}], "usage": USAGE},
        separators=(",", ":"),
    ).encode()
    told = json.loads(VllmAnswer(shows_usage=False, one=True).convert(body))
    assert told["timings"] == {"cache_n": 5, "prompt_n": 4, "predicted_n": 4}
    message = told["choices"][0]["message"]
    assert message == {"content": HOSTILE, "reasoning": "x", "reasoning_content": "x"}


def test_a_vllm_that_says_both_names_is_left_alone() -> None:
    both = frame({"reasoning": "x", "reasoning_content": "x"})
    assert VllmAnswer(shows_usage=True, one=True).feed(both) == both


@pytest.mark.parametrize(
    "usage", [None, 7, {}, {"prompt_tokens": "x", "completion_tokens": -1, "prompt_tokens_details": 3}]
)
def test_odd_figures_are_left_out(usage: Any) -> None:
    body = json.dumps({"choices": [], "usage": usage, "metrics": {"time_to_first_token_ms": True}}).encode()
    assert VllmAnswer(shows_usage=False, one=True).convert(body) == body
    stream = BEGIN + WORDS + frame({}, "stop") + frame(usage=usage) + b"data: [DONE]\n\n"
    assert all("timings" not in one for one in through(stream))
    assert through(stream, shows=False)[4]["choices"][0]["finish_reason"] == "stop"


def test_a_stream_that_ends_without_figures_loses_nothing() -> None:
    stream = BEGIN + WORDS + frame({}, "length") + b"data: [DONE]\n\n"
    assert through(stream, shows=False)[-1]["choices"][0]["finish_reason"] == "length"
    passage = VllmAnswer(shows_usage=False, one=True)
    told = passage.feed(frame({}, "stop") + b"rest") + passage.end()
    assert told == frame({}, "stop") + b"rest"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7"])
def test_no_answer_is_the_engines_fault(body: bytes) -> None:
    with pytest.raises(EndpointError):
        VllmAnswer(shows_usage=False, one=True).convert(body)


@pytest.mark.parametrize("asks", [True, False])
def test_a_client_gets_them_of_a_vllm_here_alone(world: Any, scripts: Any, asks: bool) -> None:
    async def script(engine: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        assert body["stream_options"] == {"include_usage": True}
        writer.write(scripts.stream_head + scripts.http_chunk(STREAM) + b"0\r\n\r\n")

    async def go() -> None:
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            of_vllm = replace(served.running[0], native_infill=False, usage_on_request=True)
            body: dict[str, Any] = {
                "model": "m",
                "messages": [{"role": "user", "content": "a"}],
                "stream": True,
            }
            if asks:
                body["stream_options"] = {"include_usage": True}
            for target, has in ((of_vllm, True), (replace(of_vllm, machine="gpu"), False)):
                served.running[:] = [target]
                answer = await client.post("/v1/chat/completions", json=body)
                assert (b'"timings":{' in answer.content) is has
                assert (b'"usage":{' in answer.content) is asks
                (newest, *_) = served.gateway.request_log.requests()
                assert (newest.prompt_tokens, newest.cached_tokens, newest.generated_tokens) == (9, 5, 4)

    asyncio.run(go())
