"""The Responses form with OpenAI's SDK against a real llama.cpp server, through the gateway."""

import asyncio
from typing import Any

import openai
import pydantic
import pytest

from engine_host.protocol.engines import RequestState
from tests.integration.gateway.demo import CITY, DEMO, MODEL, QUESTION, openai_client

WEATHER: Any = {"type": "function", "name": "weather", "parameters": CITY, "strict": True}
CLOCK: Any = {**WEATHER, "name": "clock"}


class Weather(pydantic.BaseModel):
    """An answer with a form."""

    rain: bool


def test_an_answer_and_its_end(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, openai_client(served.url) as ai:
            whole = await ai.responses.create(model=MODEL, input="Say hi", temperature=0)
            assert (whole.status, whole.model) == ("completed", MODEL)
            assert whole.output_text.startswith("Hello")
            assert whole.usage is not None
            assert whole.usage.output_tokens_details.reasoning_tokens == 0
            cut = await ai.responses.create(model=MODEL, input="Say hi", max_output_tokens=2)
            assert (cut.status, cut.usage and cut.usage.output_tokens) == ("incomplete", 2)
            assert cut.incomplete_details is not None
            assert cut.incomplete_details.reason == "max_output_tokens"
            # As Codex asks whether a model is loaded.
            assert (await ai.responses.create(model=MODEL, input="", max_output_tokens=1)).id
            counted = await ai.responses.input_tokens.count(model=MODEL, input="Say hi")
            assert counted.input_tokens == whole.usage.input_tokens

    asyncio.run(go())


def test_a_stream_with_the_sdks_own_state(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, openai_client(served.url) as ai:
            async with ai.responses.stream(model=MODEL, input="Say hi", temperature=0) as stream:
                events = [event async for event in stream]
                final = await stream.get_final_response()
            assert [event.sequence_number for event in events if hasattr(event, "sequence_number")]
            text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
            assert text == final.output_text != ""
            (request,) = served.gateway.request_log.requests()
            assert request.state is RequestState.DONE
            assert request.generated_tokens == final.usage.output_tokens
            assert request.ttft is not None

    asyncio.run(go())


def test_a_tool_is_called_in_a_stream_and_its_answer_is_read(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, openai_client(served.url) as ai:
            asked: Any = [{"role": "user", "content": QUESTION}]
            async with ai.responses.stream(
                model=MODEL, input=asked, tools=[WEATHER], temperature=0
            ) as stream:
                async for _ in stream:
                    pass
                (call,) = (await stream.get_final_response()).output
            assert (call.type, call.name, call.arguments) == ("function_call", "weather", '{"city":"Paris"}')
            result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
            answer = await ai.responses.create(
                model=MODEL, input=[*asked, call.model_dump(mode="json"), result], tools=[WEATHER]
            )
            assert answer.output_text
            named = await ai.responses.create(
                model=MODEL,
                input=asked,
                tools=[WEATHER, CLOCK],
                tool_choice={"type": "function", "name": "clock"},
            )
            assert [item.name for item in named.output if item.type == "function_call"] == ["clock"]

    asyncio.run(go())


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_with_a_form(real: Any, stream: bool) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, openai_client(served.url) as ai:
            asked: Any = {"model": MODEL, "input": "Will it rain?", "text_format": Weather}
            if stream:
                async with ai.responses.stream(**asked) as events:
                    async for _ in events:
                        pass
                    answer = await events.get_final_response()
            else:
                answer = await ai.responses.parse(**asked)
            assert isinstance(answer.output_parsed, Weather)

    asyncio.run(go())


def test_a_conversation_as_codex_and_the_ai_sdk_write_it(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, openai_client(served.url) as ai:
            history: Any = [
                {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
                {"role": "developer", "content": "Be kind."},
                {"role": "user", "content": "<environment/>"},
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [{"type": "output_text", "text": "hello"}], "id": "msg_1"},
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
                {"type": "function_call", "call_id": "c", "name": "weather", "arguments": ""},
                {"type": "function_call_output", "call_id": "c", "output": "rain"},
                {"type": "custom_tool_call", "call_id": "d", "name": "patch", "input": "*** Begin"},
                {"type": "custom_tool_call_output", "call_id": "d", "output": "ok"},
            ]
            answer = await ai.responses.create(
                model=MODEL, instructions="Answer.", input=history, max_output_tokens=8
            )
            assert answer.output_text

    asyncio.run(go())


def test_errors_have_the_codes_that_agents_read(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, openai_client(served.url) as ai:
            with pytest.raises(openai.BadRequestError) as long:
                await ai.responses.create(model=MODEL, input="hello " * 5000, stream=True)
            assert long.value.code == "context_length_exceeded"
            with pytest.raises(openai.BadRequestError) as unread:
                await ai.responses.create(model=MODEL, input=[{"type": "unheard_of"}])
            assert unread.value.status_code == 400
            with pytest.raises(openai.NotFoundError):
                await ai.responses.create(model="gpt-9", input="x")

    asyncio.run(go())


@pytest.mark.parametrize("stream", [True, False])
def test_tools_and_a_form_in_one_request(real: Any, stream: bool) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, openai_client(served.url) as ai:
            told: list[Any] = []
            for question in (QUESTION, "Say hi"):
                asked: Any = {"model": MODEL, "input": question, "tools": [WEATHER], "text_format": Weather}
                if stream:
                    async with ai.responses.stream(**asked, temperature=0) as events:
                        async for _ in events:
                            pass
                        told.append(await events.get_final_response())
                else:
                    told.append(await ai.responses.parse(**asked, temperature=0))
            assert [item.type for item in told[0].output] == ["function_call"]
            assert isinstance(told[1].output_parsed, Weather)

    asyncio.run(go())
