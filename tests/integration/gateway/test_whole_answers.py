"""Answers that come as a whole: as the engine itself would give them, and over when nobody waits for them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine_host.bench.random_model import Shape
from engine_host.engines.llamacpp.status import read_status
from engine_host.gateway import exchange
from tests.integration.gateway.conftest import Real, RealMaker
from tests.integration.gateway.demo import CITY, DEMO, MODEL, QUESTION

CHAT, COMPLETIONS, RESPONSES, MESSAGES = (
    "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages",
)  # fmt: skip
HELLO = {"messages": [{"role": "user", "content": QUESTION}]}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
FORM = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
FUNCTION = {"name": "get_weather", "description": "The weather of a city", "parameters": CITY}
TOOL = {"type": "function", "function": FUNCTION}
FLAT = {"type": "function", **FUNCTION}
ITS_TOOL = {"name": "get_weather", "description": "The weather of a city", "input_schema": CITY}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
_ITS_OWN = {
    "id", "created", "created_at", "completed_at", "timings", "call_id", "id_slot", "__verbose", "request_id",
}  # fmt: skip
_STEADY = {"temperature": 0, "seed": 7, "cache_prompt": False}
_LENGTHS = {RESPONSES: "max_output_tokens", "/completion": "n_predict", "/infill": "n_predict"}
PATIENCE = 15.0
"""Seconds; all that is asked for takes many times as long."""


def told(value: Any) -> Any:
    """Return what an answer says, without its names and its times; of a prompt all tokens, cached or not."""
    if isinstance(value, dict):
        found = {name: told(part) for name, part in value.items() if name not in _ITS_OWN}
        if "cache_read_input_tokens" in found:
            found["input_tokens"] += found.pop("cache_read_input_tokens")
        return found
    return [told(part) for part in value] if isinstance(value, list) else value


WHOLE: list[tuple[str, dict[str, Any]]] = [
    (CHAT, HELLO),
    (CHAT, {**HELLO, "stop": ["e"]}),
    (CHAT, {**HELLO, "max_tokens": 1}),
    (CHAT, {**HELLO, "response_format": FORM}),
    (CHAT, {**HELLO, "grammar": 'root ::= "yes" | "no"'}),
    (CHAT, {"messages": [*HELLO["messages"], {"role": "assistant", "content": "It is"}]}),
    (CHAT, {**HELLO, "chat_template_kwargs": {"enable_thinking": True}}),
    (CHAT, {**HELLO, "reasoning_format": "none"}),
    (CHAT, {**HELLO, "timings_per_token": True, "return_progress": True}),
    (CHAT, {**HELLO, "logit_bias": {"5": -100}, "stream_options": {"include_usage": False}}),
    (CHAT, {**HELLO, "logprobs": True, "top_logprobs": 2}),
    (CHAT, {**HELLO, "verbose": True}),
    (CHAT, {**HELLO, "tools": [TOOL], "max_tokens": 100}),
    (CHAT, {**HELLO, "tools": [TOOL], "max_tokens": 100, "stop": ["Par"]}),
    (CHAT, {**HELLO, "tools": [TOOL], "max_tokens": 3}),
    (CHAT, {**HELLO, "tools": [TOOL], "max_tokens": 10}),
    (COMPLETIONS, {"prompt": "The json module"}),
    (COMPLETIONS, {"prompt": "The json module", "stop": "o", "max_tokens": 200}),
    (COMPLETIONS, {"prompt": ["The json module"]}),
    (RESPONSES, {"input": QUESTION}),
    (RESPONSES, {"input": QUESTION, "max_output_tokens": 100}),
    (RESPONSES, {"input": QUESTION, "tools": [FLAT], "max_output_tokens": 100}),
    (RESPONSES, {"input": QUESTION, "tools": [FLAT], "max_output_tokens": 3}),
    (RESPONSES, {"input": [*HELLO["messages"], {"role": "assistant", "content": "It is"}]}),
    (MESSAGES, HELLO),
    (MESSAGES, {**HELLO, "max_tokens": 100, "system": "Be short."}),
    (MESSAGES, {**HELLO, "tools": [ITS_TOOL], "max_tokens": 100}),
    (MESSAGES, {**HELLO, "tools": [ITS_TOOL], "max_tokens": 10}),
    (MESSAGES, {**HELLO, "thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1100}),
    ("/completion", {"prompt": "The json module"}),
    ("/completion", {"prompt": "The json module", "stop": ["python"]}),
    ("/completion", {"prompt": "The json module", "n_probs": 2, "return_tokens": True}),
    ("/completion", {"prompt": "The json module", "n_probs": 2, "stop": ["python"]}),
    ("/completion", {"prompt": "The json module", "response_fields": ["content", "timings/predicted_n"]}),
    ("/completion", {"prompt": ["The json module", "A"]}),
    ("/completion", {"prompt": [40, 41], "n_predict": 0}),
    ("/completion", {"prompt": "The", "json_schema": SCHEMA}),
    ("/infill", {"input_prefix": "def add(", "input_suffix": "return a + b"}),
    ("/infill", {"input_prefix": "def add(", "input_suffix": "):", "prompt": "a", "timings_per_token": True}),
]
ODD: list[tuple[str, dict[str, Any]]] = [
    *((path, {"messages": [{"role": "user", "content": "a " * 3000}]}) for path in (CHAT, MESSAGES)),
    (RESPONSES, {"input": "a " * 3000}),
    ("/completion", {"prompt": "a " * 3000}),
    ("/completion", {"prompt": "a", "grammar": "root ::= ["}),
    (CHAT, {**HELLO, "grammar": "root ::= ["}),
    (CHAT, {**HELLO, "tools": [{"type": "function", "function": {"name": "f", "parameters": 5}}]}),
    (CHAT, {"messages": [{"role": "user", "content": [PICTURE]}]}),
]


def test_a_whole_answer_is_what_the_engine_would_say(
    real: RealMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        async with real(model=DEMO) as running, httpx.AsyncClient(timeout=60) as client:
            for path, body in [*WHOLE, *ODD]:
                asked = {"model": MODEL, _LENGTHS.get(path, "max_tokens"): 24, **_STEADY, **body}
                answer = await client.post(running.url.removesuffix("/v1") + path, json=asked)
                with monkeypatch.context() as whole:
                    whole.setattr(exchange, "in_pieces", lambda call, target: call)
                    itself = await client.post(running.url.removesuffix("/v1") + path, json=asked)
                assert (answer.status_code == 200) == ((path, body) in WHOLE), (body, answer.text)
                assert answer.status_code == itself.status_code
                assert told(answer.json()) == told(itself.json()), body

    asyncio.run(go())


async def until(running: Real, slots: int) -> None:
    """Wait until so many slots are at work, by the engine's own word; each look wakes what waits in it."""
    async with asyncio.timeout(PATIENCE):
        while (await read_status(running.server.client)).slots_busy != slots:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


LONG = {"max_tokens": 1 << 14, "ignore_eos": True}
ITS_LONG = {"n_predict": 1 << 14, "ignore_eos": True}


@pytest.mark.parametrize(
    ("path", "more"),
    [
        (CHAT, {**HELLO, **LONG}),
        (CHAT, {**HELLO, **LONG, "tools": [TOOL]}),
        (COMPLETIONS, {"prompt": "a", **LONG}),
        (COMPLETIONS, {"prompt": "a", "logprobs": 1, **LONG}),
        (RESPONSES, {"input": "a", "max_output_tokens": 1 << 14}),
        (MESSAGES, {**HELLO, **LONG}),
        ("/completion", {"prompt": "a", "n_probs": 1, **ITS_LONG}),
        ("/infill", {"input_prefix": "a", "input_suffix": "b", **ITS_LONG}),
    ],
)
def test_a_client_that_leaves_ends_its_whole_answer_beside_others(
    real: RealMaker, random_model: Callable[[Shape], Path], path: str, more: dict[str, Any]
) -> None:
    async def go() -> None:
        # Large enough that it writes for a while.
        slow = random_model(Shape(12, 768, 2048, 12, 4, 64, 8192))
        async with (
            real(model=slow, slots=2, context=1 << 15) as running,
            httpx.AsyncClient(base_url=running.url.removesuffix("/v1"), timeout=60) as client,
        ):

            async def asked(path: str, **body: object) -> None:
                await client.post(path, json={"model": MODEL, **body})

            async def read(path: str, **body: object) -> None:
                async with client.stream("POST", path, json=body) as stream:
                    async for _ in stream.aiter_bytes():
                        pass

            # llama.cpp computes no gap beside a completion.
            like = (path, more) if path == "/infill" else (COMPLETIONS, {"prompt": "b", **LONG})
            beside = asyncio.create_task(read(like[0], model=MODEL, stream=True, **like[1]))
            await until(running, 1)
            asking = asyncio.create_task(asked(path, **more))
            await until(running, 2)
            assert not asking.done()
            asking.cancel()
            await until(running, 1)
            assert not beside.done(), "the other one goes on"
            beside.cancel()
            await asyncio.wait([asking, beside])

    asyncio.run(go())
