"""The real OpenAI client against a real llama.cpp server, through the gateway."""

import asyncio
import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from engine_host.bench.random_model import SMALL, Shape, tool_call_token
from engine_host.gateway.upstream import Upstream
from engine_host.protocol.engines import RequestState

MESSAGES: Any = [{"role": "user", "content": "hello there"}]
ENDLESS = {"ignore_eos": True}
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city",
        "parameters": {
            "type": "object",
            "properties": {"rain": {"type": "boolean"}},
            "required": ["rain"],
            "additionalProperties": False,
        },
    },
}


def client(url: str) -> openai.AsyncOpenAI:
    """The client as an editor would make it; any key will do on this machine."""
    return openai.AsyncOpenAI(base_url=url, api_key="sk-local", max_retries=0, timeout=60)


def test_models_chat_and_usage(real: Any) -> None:
    async def go() -> None:
        async with real() as served, client(served.url) as ai:
            models = [model async for model in ai.models.list()]
            assert [model.id for model in models] == ["random"]
            assert (await ai.models.retrieve("random")).owned_by == "llamacpp"
            whole = await ai.chat.completions.create(
                model="random", messages=MESSAGES, max_tokens=5, extra_body=ENDLESS
            )
            assert whole.choices[0].finish_reason == "length"
            assert whole.usage is not None
            assert whole.usage.completion_tokens == 5
            stream = await ai.chat.completions.create(
                model="random",
                messages=MESSAGES,
                max_tokens=20,
                stream=True,
                stream_options={"include_usage": True},
                extra_body=ENDLESS,
            )
            chunks = [chunk async for chunk in stream]
            assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
            assert chunks[-1].choices == []
            assert chunks[-1].usage is not None
            assert chunks[-1].usage.completion_tokens == 20
            request = served.gateway.request_log.requests("e1")[0]
            assert request.state is RequestState.DONE
            assert (request.generated_tokens, request.finish) == (20, "length")
            assert request.ttft is not None
            assert request.decode_rate is not None
            assert request.client.startswith("AsyncOpenAI/Python")

    asyncio.run(go())


@pytest.mark.parametrize("stream", [True, False])
def test_a_completion_with_suffix(real: Any, stream: bool) -> None:
    async def go() -> None:
        async with real() as served, client(served.url) as ai:
            answer: Any = await ai.completions.create(
                model="random",
                prompt="def add(a, b):\n    ",
                suffix="\n    return total\n",
                max_tokens=12,
                stream=stream,
                extra_body=ENDLESS,
            )
            if stream:
                chunks = [chunk async for chunk in answer]
                assert chunks[-1].choices[0].finish_reason == "length"
                text = "".join(chunk.choices[0].text for chunk in chunks)
            else:
                assert answer.usage.completion_tokens == 12
                text = answer.choices[0].text
            assert text
            assert served.gateway.request_log.requests()[0].generated_tokens == 12
            # The engine saw both sides of the gap: a suffix that was dropped would leave it shorter.
            prompt = served.gateway.request_log.requests()[0].prompt_tokens
            assert prompt > len("def add")

    asyncio.run(go())


def test_a_gap_is_filled_beside_an_answer_as_it_would_be_alone(
    real: Any, random_model: Callable[[Shape], Path]
) -> None:
    async def go() -> None:
        # Large enough that it writes for a while.
        slow = random_model(Shape(12, 768, 2048, 12, 4, 64, 8192))
        async with real(model=slow, slots=2, context=1 << 15) as served, client(served.url) as ai:
            ends: Any = {
                "input_prefix": "def f(",
                "input_suffix": "return a",
                "n_predict": 4,
                "temperature": 0,
            }
            alone = (await served.server.client.post("/infill", json={**ends, **ENDLESS})).json()["content"]
            asked: Any = {"model": "demo", "messages": MESSAGES, "max_tokens": 1 << 14, "stream": True}
            writing = await ai.chat.completions.create(extra_body=ENDLESS, **asked)
            await anext(aiter(writing))
            gap = {"prompt": ends["input_prefix"], "suffix": ends["input_suffix"]}
            filled = await ai.completions.create(
                model="demo", max_tokens=4, temperature=0, extra_body=ENDLESS, **gap
            )
            assert filled.choices[0].text == alone
            assert served.gateway.request_log.active("e1") == 1, "the answer beside it goes on"
            await writing.close()

    asyncio.run(go())


def test_a_long_completion_with_suffix_is_read_whole_and_has_its_log_probabilities(real: Any) -> None:
    async def go() -> None:
        async with real(slots=1, context=8192) as served, client(served.url) as ai:
            asked: Any = {
                "model": "random",
                "suffix": "\n    return total\n",
                "max_tokens": 3,
                "temperature": 0,
            }
            long = await ai.completions.create(prompt="def add(a, b):\n" * 250, extra_body=ENDLESS, **asked)
            assert long.usage is not None
            assert long.usage.prompt_tokens > 2048
            told = await ai.completions.create(prompt="def f(", logprobs=1, extra_body=ENDLESS, **asked)
            assert told.choices[0].logprobs is not None
            assert len(told.choices[0].logprobs.tokens or ()) == 3
            with pytest.raises(openai.BadRequestError) as over:
                await ai.completions.create(prompt="def add(a, b):\n" * 2000, **asked)
            assert over.value.code == "context_length_exceeded"

    asyncio.run(go())


def test_a_tool_call_in_a_stream(real: Any) -> None:
    async def go() -> None:
        async with real() as served, client(served.url) as ai:
            stream = await ai.chat.completions.create(
                model="random",
                messages=MESSAGES,
                tools=[TOOL],
                tool_choice="required",
                parallel_tool_calls=False,
                max_tokens=400,
                # A random model begins a call only when pushed; the grammar leads it through the rest.
                logit_bias={str(tool_call_token(SMALL)): 100},
                stream=True,
            )
            name, arguments, finish = "", "", None
            async for chunk in stream:
                choice = chunk.choices[0]
                finish = choice.finish_reason or finish
                for call in choice.delta.tool_calls or ():
                    assert call.function is not None
                    name += call.function.name or ""
                    arguments += call.function.arguments or ""
            assert name == "weather"
            assert set(json.loads(arguments)) == {"rain"}
            assert finish == "tool_calls"
            assert served.gateway.request_log.requests()[0].finish == "tool_calls"

    asyncio.run(go())


def test_eight_streams_run_in_parallel_and_the_ninth_waits(real: Any) -> None:
    async def go() -> None:
        async with real() as served, client(served.url) as ai:
            firsts: list[float] = []
            ends: list[float] = []

            async def ask(number: int) -> str:
                answer = await ai.chat.completions.with_raw_response.create(
                    model="random",
                    messages=[{"role": "user", "content": f"count {number}"}],
                    max_tokens=300,
                    stream=True,
                    extra_body=ENDLESS,
                )
                received = False
                async for chunk in answer.parse():
                    if not received and chunk.choices and chunk.choices[0].delta.content:
                        firsts.append(time.monotonic())
                        received = True
                ends.append(time.monotonic())
                return answer.headers.get("x-sndr-waiting", "")

            tasks = [asyncio.create_task(ask(number)) for number in range(8)]
            async with asyncio.timeout(30):
                while served.gateway.request_log.active("e1") < 8:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
            ninth = asyncio.create_task(ask(9))
            waited = await asyncio.gather(*tasks)
            assert max(firsts[:8]) < min(ends)
            assert waited == [""] * 8
            assert await ninth == "1"
            assert firsts[8] > min(ends)
            assert all(request.generated_tokens == 300 for request in served.gateway.request_log.requests())

    asyncio.run(go())


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1/chat/completions", {"messages": MESSAGES}),
        ("/v1/chat/completions", {"messages": MESSAGES, "stream_options": {"include_usage": True}}),
        ("/v1/chat/completions", {"messages": MESSAGES, "user": "u" * 17_000}),
        ("/v1/completions", {"prompt": "hello", "stream_options": {"include_usage": True}}),
        ("/completion", {"prompt": "hello", "n_predict": 12}),
    ],
    ids=["chat", "usage", "long", "completion", "native"],
)
def test_a_client_gets_no_byte_of_what_is_counted_for_the_list(real: Any, path: str, asked: Any) -> None:
    async def go() -> None:
        async with real(context=8192) as served, httpx.AsyncClient(timeout=60) as ai:
            raw = json.dumps(
                {"model": "random", "max_tokens": 12, "temperature": 0, "cache_prompt": False, "stream": True}
                | ENDLESS
                | asked
            ).encode()
            through = (await ai.post(served.url.removesuffix("/v1") + path, content=raw)).content
            async with await Upstream.open(served.target, "POST", path, raw) as engine:
                await engine.head()
                direct = await engine.rest()
            assert served.gateway.request_log.requests()[0].generated_tokens == 12
            # Whose answer it is, and how long it took.
            own = re.compile(rb'"(?:created|id|[a-z]+_(?:per_token_)?ms|[a-z]+_per_second)":[^,}]+')
            got, told = (own.sub(b"", text).split(b"\n\n") for text in (through, direct))
            if path != "/v1/completions":
                assert got == told
                return
            # The usage has a frame of its own.
            at = next(place for place, one in enumerate(told) if b'"usage":' in one)
            assert got[:at] == told[:at]
            last, figures = (json.loads(one.removeprefix(b"data: ")) for one in through.split(b"\n\n")[at:-2])
            assert ("usage" in last, "timings" in last, figures["choices"]) == (False, False, [])
            assert figures["usage"]["completion_tokens"] == figures["timings"]["predicted_n"] == 12

    asyncio.run(go())


def test_leaving_stops_the_engine_within_100_ms(real: Any) -> None:
    async def go() -> None:
        async with real(slots=1, context=8192) as served, client(served.url) as ai:

            async def generated() -> int:
                found = re.search(
                    rb"^llamacpp:tokens_predicted_total (\d+)", await served.get("/metrics"), re.M
                )
                assert found is not None
                return int(found[1])

            async def busy() -> bool:
                return any(slot["is_processing"] for slot in json.loads(await served.get("/slots")))

            async def leave() -> float:
                """Seconds from leaving in mid-stream until the engine's slot is free."""
                stream = await ai.chat.completions.create(
                    model="random", messages=MESSAGES, max_tokens=7000, stream=True, extra_body=ENDLESS
                )
                async for chunk in stream:
                    if chunk.choices[0].delta.content:
                        break
                assert await busy()
                left = time.monotonic()
                await stream.close()
                async with asyncio.timeout(5):
                    while await busy():  # noqa: ASYNC110
                        await asyncio.sleep(0.005)
                return time.monotonic() - left

            # Other work on the machine's cores can delay one try, not the quickest of five.
            assert min([await leave() for _ in range(5)]) < 0.1
            at_once = await generated()
            await asyncio.sleep(0.2)
            assert await generated() == at_once
            left = served.gateway.request_log.requests()
            assert all(r.state is RequestState.CANCELLED for r in left)
            # What the engine counted until its last piece; it had gone on by a token or two.
            assert all(r.generated_tokens and r.prompt_tokens for r in left)
            assert sum(r.generated_tokens or 0 for r in left) <= at_once
            assert served.gateway.request_log.active("e1") == 0

    asyncio.run(go())


def test_errors_become_the_clients_own(real: Any) -> None:
    async def go() -> None:
        async with real(slots=1) as served, client(served.url) as ai:
            with pytest.raises(openai.NotFoundError, match="Running now: random") as missing:
                await ai.chat.completions.create(model="gpt-4", messages=MESSAGES)
            assert missing.value.code == "model_not_found"
            with pytest.raises(openai.BadRequestError) as long:
                await ai.completions.create(model="random", prompt="a" * 5000)
            assert long.value.code == "context_length_exceeded"
            with pytest.raises(openai.BadRequestError) as empty:
                await ai.chat.completions.create(model="random", messages=[])
            assert empty.value.param == "messages"
            with pytest.raises(openai.BadRequestError, match="--set embeddings=true") as off:
                await ai.embeddings.create(model="random", input="x")
            assert off.value.code == "embeddings_off"
            with pytest.raises(openai.BadRequestError, match="keeps no answers") as earlier:
                await ai.responses.create(model="random", input="x", previous_response_id="resp_1")
            assert (earlier.value.code, earlier.value.param) == ("unsupported", "previous_response_id")

    asyncio.run(go())


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
WRONG_SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nonsense"}}}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"messages": [{"role": "user", "content": [PICTURE]}]}, "random takes no pictures"),
        ({"tools": [{"type": "nonsense"}]}, r"tools\[0\]\.type is 'nonsense'"),
        ({"tools": [{"type": "function"}]}, r"tools\[0\]\.function must be an object with a name"),
        ({"response_format": WRONG_SCHEMA}, "unrecognized type"),
    ],
)
def test_what_the_engine_cannot_read_is_the_clients_mistake(
    real: Any, asked: dict[str, Any], words: str, stream: bool
) -> None:
    async def go() -> None:
        async with real(slots=1) as served, client(served.url) as ai:
            with pytest.raises(openai.BadRequestError, match=words):
                await ai.chat.completions.create(
                    **{"model": "random", "messages": MESSAGES, "stream": stream, **asked}
                )

    asyncio.run(go())


@pytest.mark.parametrize("top", [0, 3])
@pytest.mark.parametrize("stream", [True, False])
def test_a_completions_log_probabilities_have_the_form_of_completions(
    real: Any, top: int, stream: bool
) -> None:
    async def go() -> None:
        async with real(slots=1) as served, client(served.url) as ai:
            asked: Any = {"model": "random", "prompt": "a b", "max_tokens": 6, "temperature": 0}
            asked["logprobs"] = top
            if stream:
                pieces = [one async for one in await ai.completions.create(**asked, stream=True)]
                choices = [one.choices[0] for one in pieces if one.choices]
            else:
                choices = (await ai.completions.create(**asked)).choices
            told = [one.logprobs for one in choices if one.logprobs is not None]
            tokens = [token for one in told for token in one.tokens]
            offsets = [offset for one in told for offset in one.text_offset]
            best = [likely for one in told for likely in one.top_logprobs]
            chances = [chance for one in told for chance in one.token_logprobs]
            assert len(tokens) == len(offsets) == len(best) == len(chances) == 6
            assert offsets == [len("".join(tokens[:place])) for place in range(6)]
            assert all(chance <= 0 for chance in chances)
            for token, chance, likely in zip(tokens, chances, best, strict=True):
                assert likely[token] == chance
                assert len(likely) <= max(top, 1) + 1

    asyncio.run(go())


def test_echo_is_refused_and_not_left_out(real: Any) -> None:
    async def go() -> None:
        async with real(slots=1) as served, client(served.url) as ai:
            with pytest.raises(openai.BadRequestError, match="does not repeat the prompt") as echo:
                await ai.completions.create(model="random", prompt="a", echo=True)
            assert (echo.value.code, echo.value.param) == ("unsupported", "echo")
            answer = await ai.completions.create(model="random", prompt="a", echo=False, max_tokens=2)
            assert answer.choices[0].logprobs is None

    asyncio.run(go())


def test_a_crash_in_mid_stream_raises_in_the_client(real: Any) -> None:
    async def go() -> None:
        async with real(slots=1, context=8192) as served, client(served.url) as ai:
            stream = await ai.chat.completions.create(
                model="random", messages=MESSAGES, max_tokens=7000, stream=True, extra_body=ENDLESS
            )

            async def read() -> None:
                async for chunk in stream:
                    if chunk.choices[0].delta.content:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(served.server.pid, signal.SIGKILL)

            with pytest.raises(openai.APIError, match="ended before the answer was complete"):
                await read()
            assert served.gateway.request_log.requests()[0].state is RequestState.FAILED

    asyncio.run(go())


def test_embeddings_of_an_engine_started_for_them(real: Any) -> None:
    async def go() -> None:
        async with real(slots=1, embeddings=True) as served, client(served.url) as ai:
            answer = await ai.embeddings.create(model="random", input=["one", "two"], encoding_format="float")
            assert len(answer.data) == 2
            assert len(answer.data[0].embedding) == 256
            short = await ai.embeddings.create(model="random", input="one", dimensions=8)
            assert len(short.data[0].embedding) == 8
            assert sum(number * number for number in short.data[0].embedding) == pytest.approx(1, abs=1e-3)
            with pytest.raises(openai.BadRequestError) as long:
                await ai.embeddings.create(model="random", input=["x", "hello " * 3000])
            assert long.value.code == "context_length_exceeded"
            with pytest.raises(openai.BadRequestError) as many:
                await ai.embeddings.create(model="random", input="x", dimensions=1000)
            assert many.value.param == "dimensions"

    asyncio.run(go())
