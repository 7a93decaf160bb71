"""llama.cpp's own completion: as it is to llama.cpp, translated for vLLM; and hostile requests."""

import asyncio
import contextlib
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.llamacpp import request
from engine_host.gateway.llamacpp.answer import NativeCompletion
from engine_host.gateway.routes.table import CLOSED
from tests.unit.gateway.asking import ask, code_of


def of_vllm(served: Any) -> None:
    """Make the engine one of vLLM, whose model can fill gaps."""
    served.running[0] = replace(
        served.running[0], native_infill=False, usage_on_request=True, fim_tokens=("<P>", "<S>", "<M>")
    )


def frame(value: Any) -> bytes:
    """One frame of an engine's stream."""
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def test_llamacpp_gets_the_clients_own_bytes(world: Any, scripts: Any) -> None:
    async def go() -> None:
        answer = b'{"content": "x", "stop": true, "timings": {"predicted_n": 3}}'
        async with world(scripts.answers(200, answer)) as served, httpx.AsyncClient() as client:
            body = {"prompt": "hi", "mirostat": 2, "n_predict": 3}
            told = await client.post(served.url + "/completion", json=body)
            assert told.content == answer
            ((path, sent),) = served.engine.received
            assert (path, {name: sent[name] for name in body}) == ("/completion", body)

    asyncio.run(go())


def test_a_request_for_vllm() -> None:
    body = {
        "prompt": "hi", "n_predict": 5, "seed": -1, "repeat_penalty": 1.2, "stop": ["x"], "top_k": 4.0,
        "json_schema": {"type": "object"}, "cache_prompt": True, "id_slot": 3,
    }  # fmt: skip
    made = request.completion(body, "m")
    assert made == {
        "model": "m", "stream": False, "prompt": "hi", "max_tokens": 5, "repetition_penalty": 1.2,
        "stop": ["x"], "top_k": 4, "response_format": made["response_format"],
    }  # fmt: skip
    assert request.completion({"prompt": [1, 2], "n_predict": -1}, "m")["max_tokens"] is None
    for prompt in (["a", "b"], [[1], [2]], ["a", 1], {"prompt_string": "a"}):
        with pytest.raises(EndpointError):
            request.completion({"prompt": prompt}, "m")
    with pytest.raises(EndpointError):
        request.completion({"prompt": "a", "n_probs": 3}, "m")


def test_a_gap_for_vllm_has_the_models_own_tokens(world: Any, scripts: Any) -> None:
    async def go() -> None:
        answer = {
            "choices": [{"text": "mid", "finish_reason": "stop", "stop_reason": "\n"}],
            "usage": {"prompt_tokens": 4, "completion_tokens": 2},
        }
        script = scripts.answers(200, json.dumps(answer).encode())
        async with world(script) as served, httpx.AsyncClient() as client:
            of_vllm(served)
            extra = [{"filename": "a.py", "text": "x = 1"}]
            body = {"input_prefix": "def ", "input_suffix": "()", "input_extra": extra, "n_predict": 3}
            told = (await client.post(served.url + "/infill", json=body)).json()
            assert (told["content"], told["stop_type"], told["stopping_word"]) == ("mid", "word", "\n")
            assert (told["tokens_evaluated"], told["tokens_predicted"]) == (4, 2)
            ((path, sent),) = served.engine.received
            assert (path, sent["prompt"]) == ("/v1/completions", "<P>a.py\nx = 1\n\ndef <S>()<M>")
            assert "suffix" not in sent

    asyncio.run(go())


def test_a_stream_of_vllm_in_llamacpps_words() -> None:
    passage = NativeCompletion("m")
    told = passage.feed(
        frame({"choices": [{"text": "a", "finish_reason": None}]})
        + frame({"choices": [{"text": "b", "finish_reason": "length"}]})
        + frame({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
        + frame(b"[DONE]")
    )
    assert passage.end() == b""
    frames = [json.loads(one.removeprefix(b"data: ")) for one in told.split(b"\n\n") if one]
    assert [one["content"] for one in frames] == ["a", "b", ""]
    assert [one["stop"] for one in frames] == [False, False, True]
    assert (frames[-1]["stop_type"], frames[-1]["tokens_predicted"]) == ("limit", 2)


@pytest.mark.parametrize(
    "hostile",
    [b"{", b"[]", b"7", b"\xff", b'{"choices": 1}', b'{"choices": [1]}', b'{"choices": [{"text": {}}]}',
     b'{"usage": {"prompt_tokens": "x"}}', b'{"error": []}', b"[" * 90_000,
     b'{"choices": [{"text": "\\udc00"}]}'],
)  # fmt: skip
def test_hostile_answers_end_in_the_form_or_an_error(hostile: bytes) -> None:
    with contextlib.suppress(EndpointError):
        passage = NativeCompletion("m")
        told = passage.feed(frame(hostile)) + passage.end()
        assert all(json.loads(one.removeprefix(b"data: ")) for one in told.split(b"\n\n") if one)
    with contextlib.suppress(EndpointError):
        assert json.loads(NativeCompletion("m").convert(hostile))["stop"] is True


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/completion", {}),
        ("/completion", {"prompt": 5}),
        ("/completion", {"prompt": []}),
        ("/completion", {"prompt": [1.5]}),
        ("/completion", {"prompt": "a", "n_predict": "x"}),
        ("/completion", {"prompt": "a", "seed": True}),
        ("/completion", {"prompt": "a", "n_predict": 10**400}),
        ("/completion", {"prompt": "a", "grammar": 1}),
        ("/infill", {}),
        ("/infill", {"input_prefix": "a"}),
        ("/infill", {"input_prefix": "a", "input_suffix": "b", "input_extra": [1]}),
        ("/infill", {"input_prefix": "a", "input_suffix": "b", "input_extra": {}}),
        ("/infill", {"input_prefix": "a", "input_suffix": "b", "prompt": [1]}),
    ],
)
def test_what_is_no_request_is_refused_before_the_engine(world: Any, path: str, body: Any) -> None:
    seen: list[Any] = []
    answer = ask(world, "POST", path, lambda served: seen.append(served.engine), json=body)
    assert code_of(answer) == (400, "invalid_type")
    assert seen[0].received == []


def test_a_model_that_cannot_fill_gaps_says_so(world: Any) -> None:
    def unable(served: Any) -> None:
        served.running[0] = replace(served.running[0], fill_in_the_middle=False)

    body = {"input_prefix": "a", "input_suffix": "b"}
    assert code_of(ask(world, "POST", "/infill", unable, json=body)) == (
        400,
        "fill_in_the_middle_unsupported",
    )


@pytest.mark.parametrize("path", sorted(CLOSED))
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_what_is_closed_says_why_in_the_callers_form(world: Any, path: str, method: str) -> None:
    answer = ask(world, method, path)
    assert answer.status_code == 501
    error = answer.json()["error"]
    is_ollamas = path.startswith("/api/") and "v1" not in path
    assert CLOSED[path] in (error if is_ollamas else error["message"])
