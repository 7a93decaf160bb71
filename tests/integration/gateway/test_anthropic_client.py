"""The real Anthropic client against a real llama.cpp server, through the gateway."""

import asyncio
from typing import Any

import anthropic
import pydantic
import pytest

from tests.integration.gateway.demo import CITY, DEMO, MODEL, QUESTION, anthropic_client

WEATHER: Any = {"name": "weather", "description": "The weather in a city", "input_schema": CITY}
CLOCK: Any = {**WEATHER, "name": "clock"}
# The SDK itself has no temperature any more.
COLD = {"temperature": 0}
HI: Any = [{"role": "user", "content": "Say hi"}]
ASKED: Any = [{"role": "user", "content": QUESTION}]


def test_a_message_and_its_tokens(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, anthropic_client(served.url) as ai:
            whole = await ai.messages.create(model=MODEL, max_tokens=4, messages=HI, extra_body=COLD)
            assert whole.id.startswith("msg_")
            assert whole.stop_reason == "max_tokens"
            assert whole.content[0].type == "text"
            counted = await ai.messages.count_tokens(model=MODEL, messages=HI)
            read = whole.usage.input_tokens + (whole.usage.cache_read_input_tokens or 0)
            assert counted.input_tokens == read
            (first, *_) = served.gateway.request_log.requests()
            assert first.route == "/v1/messages/count_tokens"

    asyncio.run(go())


def test_a_stream(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, anthropic_client(served.url) as ai:
            async with ai.messages.stream(model=MODEL, max_tokens=60, messages=HI, extra_body=COLD) as stream:
                text = "".join([piece async for piece in stream.text_stream])
                final = await stream.get_final_message()
            assert final.content[0].type == "text"
            assert final.content[0].text == text != ""
            assert final.stop_reason == "end_turn"
            (request,) = served.gateway.request_log.requests()
            assert (request.generated_tokens, request.finish) == (final.usage.output_tokens, "end_turn")
            assert request.prompt_tokens

    asyncio.run(go())


def test_a_tool_is_called_and_its_answer_is_read(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, anthropic_client(served.url) as ai:
            asked: Any = {"model": MODEL, "max_tokens": 200, "extra_body": COLD, "tools": [WEATHER, CLOCK]}
            async with ai.messages.stream(messages=ASKED, **asked) as stream:
                async for _ in stream:
                    pass
                message = await stream.get_final_message()
            call = message.content[-1]
            assert message.stop_reason == "tool_use"
            assert call.type == "tool_use"
            assert (call.name, call.input) == ("weather", {"city": "Paris"})
            result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
            told: Any = {"role": "user", "content": [result, {"type": "text", "text": "So?"}]}
            said: Any = {"role": "assistant", "content": [block.model_dump() for block in message.content]}
            answer = await ai.messages.create(messages=[*ASKED, said, told], **asked)
            assert answer.content
            named = await ai.messages.create(
                messages=ASKED, tool_choice={"type": "tool", "name": "clock"}, **asked
            )
            assert [block.name for block in named.content if block.type == "tool_use"] == ["clock"]
            none = await ai.messages.create(messages=ASKED, tool_choice={"type": "none"}, **asked)
            assert [block.type for block in none.content] == ["text"]

    asyncio.run(go())


class Weather(pydantic.BaseModel):
    """An answer with a form."""

    rain: bool


@pytest.mark.parametrize("tools", [[], [WEATHER]])
def test_an_answer_with_a_form(real: Any, tools: list[Any]) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, anthropic_client(served.url) as ai:
            asked: Any = {"model": MODEL, "max_tokens": 90, "messages": HI, "extra_body": COLD}
            asked |= {"output_format": Weather, "tools": tools}
            whole = await ai.messages.parse(**asked)
            assert isinstance(whole.parsed_output, Weather)
            async with ai.messages.stream(**asked) as stream:
                async for _ in stream:
                    pass
                final = await stream.get_final_message()
            assert isinstance(final.parsed_output, Weather)
            assert final.usage.output_tokens
            (request, _) = served.gateway.request_log.requests()
            assert (request.route, request.finish) == ("/v1/messages", "stop")
            with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
                await ai.messages.parse(
                    **{**asked, "messages": [{"role": "user", "content": "hello " * 5000}]}
                )

    asyncio.run(go())


def test_a_request_as_claude_code_writes_it(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, anthropic_client(served.url) as ai:
            messages: Any = [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
                },
                {"role": "system", "content": "A reminder."},
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "document",
                            "source": {"type": "text", "media_type": "text/plain", "data": "x"},
                        }
                    ],
                },
            ]
            answer = await ai.beta.messages.create(
                model=MODEL,
                max_tokens=8,
                system=[{"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=00000;"}],
                messages=messages,
                thinking={"type": "adaptive"},
                output_config={"effort": "high"},
                context_management={"edits": []},
                tools=[
                    {**WEATHER, "defer_loading": True},
                    {"type": "web_search_20250305", "name": "web_search"},
                ],
                betas=["context-management-2025-06-27"],
            )
            assert answer.content

    asyncio.run(go())


def test_a_long_request_has_the_same_words_and_tells_its_tokens_first(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, anthropic_client(served.url) as ai:
            use: Any = {"type": "tool_use", "id": "a1", "name": "weather", "input": {"city": "Paris"}}
            messages: Any = [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "you"}],
                },
                {"role": "assistant", "content": [{"type": "text", "text": "Look."}, use]},
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "a1",
                            "content": [{"type": "text", "text": "sunny"}],
                        },
                        {"type": "text", "text": "So?"},
                    ],
                },
            ]
            system: Any = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]
            same: Any = {"model": MODEL, "system": system, "messages": messages, "tools": [WEATHER, CLOCK]}
            counted = (await ai.messages.count_tokens(**same)).input_tokens
            # What makes it long is in no prompt.
            asked: Any = {**same, "max_tokens": 30, "metadata": {"user_id": "x" * 20_000}}
            starts = []
            async with ai.messages.stream(**asked, extra_body=COLD) as stream:
                async for event in stream:
                    if event.type == "message_start":
                        starts.append(event.message.usage)
                final = await stream.get_final_message()
            short = await ai.messages.create(**{**same, "max_tokens": 30}, extra_body=COLD)
            assert [one.input_tokens + (one.cache_read_input_tokens or 0) for one in starts] == [counted]
            read = final.usage.input_tokens + (final.usage.cache_read_input_tokens or 0)
            assert (read, final.content[0].text) == (counted, short.content[0].text)
            (_, request, _) = served.gateway.request_log.requests()
            assert (request.prefill_of, request.prompt_tokens) == (counted, counted)

    asyncio.run(go())


def test_errors_become_the_clients_own(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, anthropic_client(served.url, retries=2) as ai:
            for stream in (True, False):
                with pytest.raises(anthropic.BadRequestError) as long:
                    await ai.messages.create(
                        model=MODEL,
                        max_tokens=9,
                        messages=[{"role": "user", "content": "hello " * 5000}],
                        stream=stream,
                    )
                assert "prompt is too long: 5" in long.value.message
                assert "tokens > 2048 maximum" in long.value.message
            with pytest.raises(anthropic.NotFoundError, match="Running now: demo"):
                await ai.messages.create(model="claude-x", max_tokens=9, messages=HI)
            pdf: Any = {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}
            with pytest.raises(anthropic.BadRequestError, match="no text"):
                await ai.messages.create(
                    model=MODEL,
                    max_tokens=9,
                    messages=[{"role": "user", "content": [{"type": "document", "source": pdf}]}],
                )
            with pytest.raises(anthropic.BadRequestError):
                await ai.messages.create(model=MODEL, max_tokens=0, messages=HI)

    asyncio.run(go())
