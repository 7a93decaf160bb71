"""Answers that come as a whole: as the engine itself would give them, and over when nobody waits for them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine_host.bench.random_model import Shape
from engine_host.engines.llamacpp.status import read_status
from tests.integration.gateway.conftest import Real, RealMaker
from tests.integration.gateway.demo import DEMO, MODEL, QUESTION

CHAT, COMPLETIONS = "/chat/completions", "/completions"
HELLO = {"messages": [{"role": "user", "content": QUESTION}]}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
FORM = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
_ITS_OWN = ("id", "created", "timings")
_STEADY = {"model": MODEL, "temperature": 0, "seed": 7, "max_tokens": 24, "cache_prompt": False}
PATIENCE = 15.0
"""Seconds; all that is asked for takes many times as long."""


def told(answer: httpx.Response) -> dict[str, Any]:
    """Return what an answer says, without its name and its times."""
    assert answer.status_code == 200, answer.text
    value: dict[str, Any] = answer.json()
    for name in _ITS_OWN:
        assert value.pop(name)
    return value


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
    (COMPLETIONS, {"prompt": "The json module"}),
    (COMPLETIONS, {"prompt": "The json module", "stop": "o", "max_tokens": 200}),
    (COMPLETIONS, {"prompt": ["The json module"]}),
]


def test_a_whole_answer_is_what_the_engine_would_say(real: RealMaker) -> None:
    async def go() -> None:
        async with real(model=DEMO) as running, httpx.AsyncClient(timeout=60) as client:
            for path, body in WHOLE:
                asked = {**_STEADY, **body}
                itself = told(await running.server.client.post(f"/v1{path}", json=asked))
                assert told(await client.post(running.url + path, json=asked)) == itself, body

    asyncio.run(go())


async def until(running: Real, slots: int) -> None:
    """Wait until so many slots are at work, by the engine's own word; each look wakes what waits in it."""
    async with asyncio.timeout(PATIENCE):
        while (await read_status(running.server.client)).slots_busy != slots:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(("path", "more"), [(CHAT, HELLO), (COMPLETIONS, {"prompt": "a"})])
def test_a_client_that_leaves_ends_its_whole_answer_beside_others(
    real: RealMaker, random_model: Callable[[Shape], Path], path: str, more: dict[str, Any]
) -> None:
    async def go() -> None:
        # Large enough that it writes for a while.
        slow = random_model(Shape(12, 768, 2048, 12, 4, 64, 8192))
        async with (
            real(model=slow, slots=2, context=1 << 15) as running,
            httpx.AsyncClient(base_url=running.url, timeout=60) as client,
        ):

            async def asked(path: str, **body: object) -> None:
                await client.post(path, json={"model": MODEL, "ignore_eos": True, **body})

            async def read(**body: object) -> None:
                async with client.stream("POST", COMPLETIONS, json=body) as stream:
                    async for _ in stream.aiter_bytes():
                        pass

            beside = asyncio.create_task(
                read(model=MODEL, ignore_eos=True, max_tokens=1 << 14, stream=True, prompt="b")
            )
            await until(running, 1)
            asking = asyncio.create_task(asked(path, max_tokens=1 << 14, **more))
            await until(running, 2)
            assert not asking.done()
            asking.cancel()
            await until(running, 1)
            assert not beside.done(), "the other one goes on"
            beside.cancel()
            await asyncio.wait([asking, beside])

    asyncio.run(go())
