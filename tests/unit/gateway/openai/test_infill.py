"""A completion with `suffix` becomes `/infill`, and its answer OpenAI's."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from engine_host.gateway import Target
from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.openai.infill import InfillAnswer, infill_request

ENDED = {
    "index": 0,
    "content": "",
    "stop": True,
    "stop_type": "limit",
    "tokens_predicted": 2,
    "tokens_evaluated": 9,
    "tokens_cached": 11,
    "timings": {"cache_n": 4, "prompt_n": 5, "predicted_n": 2, "predicted_per_second": 20.0},
}


def frame(value: dict[str, Any]) -> bytes:
    """One frame as `/infill` sends it."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def test_the_request_is_translated() -> None:
    body = {
        "model": "m",
        "prompt": ["def f("],
        "suffix": "return x",
        "max_tokens": 5,
        "stop": "\n",
        "temperature": 0,
        "stream": True,
        "seed": None,
    }
    assert json.loads(infill_request(body)) == {
        "stop": ["\n"],
        "temperature": 0,
        "stream": True,
        "n_predict": 5,
        "input_prefix": "def f(",
        "input_suffix": "return x",
        "prompt": "",
    }


@pytest.mark.parametrize("wrong", [{"prompt": ["a", "b"]}, {"prompt": [1]}, {"echo": True}, {"n": 2}])
def test_what_cannot_be_carried_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(EndpointError):
        infill_request({"prompt": "a", "suffix": "b", **wrong})


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_stream_in_pieces_of_any_size(cut: int) -> None:
    data = frame({"index": 0, "content": "wörd", "stop": False}) + frame(ENDED) + b"\n"
    answer = InfillAnswer("r", "m", 1, include_usage=True)
    out, firsts = b"", 0
    for start in range(0, len(data), cut):
        piece, first = answer.feed(data[start : start + cut])
        out += piece
        firsts += first
    frames = (out + answer.end()).decode().split("\n\n")
    assert frames[-2:] == ["data: [DONE]", ""]
    text, finish, usage = (json.loads(one[6:]) for one in frames[:3])
    assert text["choices"] == [{"text": "wörd", "index": 0, "logprobs": None, "finish_reason": None}]
    assert finish["choices"][0]["finish_reason"] == "length"
    assert usage["choices"] == []
    assert usage["usage"] == {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "total_tokens": 11,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    assert firsts == 1
    figures = answer.figures()
    assert (figures.generated_tokens, figures.decode_rate, figures.finish) == (2, 20.0, "length")


def test_through_the_gateway(world: Any, scripts: Any) -> None:
    async def infill(engine: Any, body: Any, writer: asyncio.StreamWriter) -> None:
        data = frame({"index": 0, "content": "mid", "stop": False}) + frame(ENDED)
        writer.write(scripts.stream_head + scripts.http_chunk(data) + b"0\r\n\r\n")

    async def go() -> None:
        async with world(infill) as served, httpx.AsyncClient(base_url=served.url) as client:
            served.running[:] = [
                Target("e1", "m", 1, 1, 0.0, socket=served.engine.socket, fill_in_the_middle=True)
            ]
            body = {"model": "m", "prompt": "a", "suffix": "b", "stream": True}
            answer = await client.post("/v1/completions", json=body)
            assert served.engine.received[0][0] == "/infill"
            assert '"text":"mid"' in answer.text
            assert answer.text.endswith("data: [DONE]\n\n")
            assert served.gateway.request_log.requests()[0].generated_tokens == 2
            # An empty suffix is an ordinary completion; older servers refuse the field itself.
            await client.post("/v1/completions", json={**body, "suffix": ""})
            assert served.engine.received[1][0] == "/v1/completions"
            assert "suffix" not in served.engine.received[1][1]

    asyncio.run(go())


@pytest.mark.parametrize(
    "more", [{}, {"logprobs": 0}, {"n": 2}, {"prompt": "ä" * 1000}, {"suffix": "b" * 600}], ids=str
)
@pytest.mark.parametrize("ids", [(1, 2, 3), (7, 1, 2, 3)])
def test_a_gap_is_a_completion_where_its_tokens_are_known(
    world: Any, scripts: Any, more: dict[str, Any], ids: tuple[int, ...]
) -> None:
    async def go() -> None:
        answer = {"choices": [{"index": 0, "text": "x", "finish_reason": "stop"}]}
        script = scripts.answers(200, json.dumps(answer).encode())
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            served.running[:] = [replace(served.running[0], fill_in_the_middle=True, fim_ids=ids)]
            body = {"model": "m", "prompt": "a", "suffix": "b", **more}
            assert (await client.post("/v1/completions", json=body)).status_code == 200
            ((path, sent),) = served.engine.received
            assert path == "/v1/completions"
            assert sent["prompt"] == [*ids[:-2], body["prompt"], ids[-2], body["suffix"], ids[-1]]
            assert "suffix" not in sent
            odd = await client.post("/v1/completions", json={**body, "prompt": ["a", "b"], "logprobs": 1})
            assert odd.status_code == 400
            marks = {"model": "m", "prompt": "a <|fim_middle|>", "suffix": "b"}
            await client.post("/v1/completions", json=marks)
            assert served.engine.received[1][0] == "/infill", "which takes them for text"

    asyncio.run(go())


@pytest.mark.parametrize("field", ["prompt", "suffix"])
def test_half_an_emoji_is_refused_and_a_whole_one_passes(world: Any, field: str) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            body = {"model": "m", "prompt": "a", "suffix": "b", "max_tokens": 1}
            cut = await client.post("/v1/completions", content=json.dumps({**body, field: "x\ud83d"}))
            error = cut.json()["error"]
            assert (cut.status_code, error["code"], error["param"]) == (400, "invalid_json", field)
            assert served.engine.received == []
            served.engine.go.set()
            await client.post("/v1/completions", content=json.dumps({**body, field: "x\U0001f600"}))
            ((path, sent),) = served.engine.received
            assert path == "/infill"
            assert "x\U0001f600" in sent.values()

    asyncio.run(go())


@pytest.mark.parametrize("content", [b"", b"[]", b"[" * 100_000, b'"x"', b'{"content": "\\ud800"}', b"NaN"])
def test_an_answer_of_another_form_is_the_engines_fault(content: bytes) -> None:
    for act in (
        lambda: InfillAnswer("id", "m", 0).convert(content),
        lambda: InfillAnswer("id", "m", 0).feed(b"data: " + content + b"\n"),
    ):
        with pytest.raises(EndpointError) as caught:
            act()
        assert (caught.value.status, caught.value.code) == (502, "engine_error")


def test_figures_of_another_form_are_not_measured() -> None:
    answer = InfillAnswer("id", "m", 0)
    odd = {
        "content": ["x"],
        "stop": True,
        "tokens_evaluated": 1e300,
        "tokens_predicted": True,
        "timings": [1],
    }
    frames, first = answer.feed(b"data: " + json.dumps(odd).encode() + b"\n")
    assert not first
    assert b'"prompt_tokens":0' in frames or b"prompt_tokens" not in frames
    assert answer.figures().decode_rate is None
