"""The bundled model through the public endpoint, with the client that editors use."""

import json
from collections.abc import Iterator

import openai
import pytest
from openai.types.chat import ChatCompletionChunk

from engine_host.protocol.endpoint.example import EXAMPLE_QUESTION
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine
from tests.integration.host.conftest import RunningHost, wait_for

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather in a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "The city"}},
            "required": ["city"],
        },
    },
}


@pytest.fixture
def client(host: RunningHost) -> Iterator[openai.OpenAI]:
    """The SDK, pointed at this host's endpoint."""
    with openai.OpenAI(base_url=f"http://127.0.0.1:{host.port}/v1", api_key="any", max_retries=0) as sdk:
        yield sdk


def asked(client: openai.OpenAI, text: str, tokens: int = 200) -> str:
    """The streamed answer to a question, put together."""
    stream = client.chat.completions.create(
        model="sndr-demo",
        messages=[{"role": "user", "content": text}],
        temperature=0,
        max_tokens=tokens,
        stream=True,
    )
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def test_it_greets_says_what_it_is_and_stops(host: RunningHost, client: openai.OpenAI) -> None:
    host.start()

    assert [model.id for model in client.models.list()] == ["sndr-demo"]
    greeting = client.chat.completions.create(
        model="sndr-demo", messages=[{"role": "user", "content": "hello"}], temperature=0, max_tokens=200
    )
    assert greeting.choices[0].finish_reason == "stop"
    assert greeting.choices[0].message.content
    assert "SNDR" in asked(client, "Who are you?")
    assert "builds a list" in asked(client, EXAMPLE_QUESTION), "what README and every snippet ask"
    assert "length" in asked(client, "What does len do in Python?").lower() or "number" in asked(
        client, "What does len do in Python?"
    )
    assert "def " in asked(client, "Write a function that adds two numbers")


@pytest.mark.parametrize("city", ["Paris", "New York", "Oslo"])
def test_it_calls_a_tool_in_a_stream(host: RunningHost, client: openai.OpenAI, city: str) -> None:
    host.start()
    stream = client.chat.completions.create(
        model="sndr-demo",
        messages=[{"role": "user", "content": f"What is the weather in {city}?"}],
        tools=[WEATHER],  # type: ignore[list-item]
        temperature=0,
        stream=True,
    )
    names, arguments, finish = [], "", None
    for chunk in stream:
        assert isinstance(chunk, ChatCompletionChunk)
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or ():
                assert call.function is not None
                if call.function.name:
                    names.append(call.function.name)
                arguments += call.function.arguments or ""
    assert names == ["get_weather"]
    assert json.loads(arguments) == {"city": city}
    assert finish == "tool_calls"


def test_it_completes_code_between_two_ends(host: RunningHost, client: openai.OpenAI) -> None:
    host.start()
    stream = client.completions.create(
        model="sndr-demo",
        prompt="def add(a, b):\n    ",
        suffix="\n\nprint(add(1, 2))\n",
        max_tokens=40,
        temperature=0,
        stream=True,
    )
    parts = [chunk.choices[0].text for chunk in stream if chunk.choices]
    assert len(parts) > 1
    assert "".join(parts).strip()


def test_its_mtp_layer_drafts_what_it_says(host: RunningHost, client: openai.OpenAI) -> None:
    engine = host.start(overrides=Overrides(context=2048, streams=1, speculation="draft-mtp", draft_tokens=3))
    assert engine.verified is not None
    assert engine.verified.speculation_moved

    for text in ("Tell me a long story about Python.", "Explain the json module in detail."):
        asked(client, text, 400)

    def measured() -> Engine | None:
        now = host.engine(engine.id)
        readings = now.readings
        return now if readings and (readings.draft_tokens_total or 0) > 100 else None

    readings = wait_for(measured, "drafted tokens").readings
    assert readings is not None
    assert readings.acceptance_length is not None
    assert readings.acceptance_length >= 1.8


def test_quantised_kv_says_what_it_is(host: RunningHost, client: openai.OpenAI) -> None:
    engine = host.start(overrides=Overrides(context=1024, streams=1, kv_type_k="q8_0", kv_type_v="q8_0"))

    assert engine.plan.kv_types["q8_0"] == "q8_0 with rotation"
    assert asked(client, "hello")
