"""The real SDKs ask a real llama.cpp for a call of a tool, about what the demo model would write a story."""

import asyncio
import json
from typing import Any

from tests.integration.gateway.demo import CITY, DEMO, MODEL, anthropic_client, openai_client

STORY: Any = [{"role": "user", "content": "Tell me a short story about a cat."}]
PLACE = {
    **{name: value for name, value in CITY.items() if name != "properties"},
    "properties": {"city": {"$ref": "#/$defs/Name"}},
    "$defs": {"Name": {"type": "string", "maxLength": 20}},
}
WEATHER = {"name": "weather", "description": "The weather in a city"}
FUNCTION: Any = {"type": "function", "function": {**WEATHER, "parameters": PLACE}}
CHAT: dict[str, Any] = {
    "model": MODEL,
    "messages": STORY,
    "tools": [FUNCTION],
    "max_tokens": 400,
    "temperature": 0,
}


def test_a_call_comes_instead_of_a_story_in_every_form(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, openai_client(served.url) as ai:
            loose = await ai.chat.completions.create(**CHAT)
            assert loose.choices[0].message.content, "the model would write"
            for choice in ("required", {"type": "function", "function": {"name": "weather"}}):
                whole = (await ai.chat.completions.create(**CHAT, tool_choice=choice)).choices[0]
                assert whole.finish_reason == "tool_calls"
                assert whole.message.content is None
                checked(whole.message.tool_calls[0].function)
                name, arguments, finish, content = "", "", None, ""
                async for chunk in await ai.chat.completions.create(**CHAT, tool_choice=choice, stream=True):
                    (told,) = chunk.choices
                    finish, content = told.finish_reason or finish, content + (told.delta.content or "")
                    for call in told.delta.tool_calls or ():
                        if call.index == 0:
                            name += call.function.name or ""
                            arguments += call.function.arguments or ""
                assert (name, finish, content) == ("weather", "tool_calls", "")
                assert set(json.loads(arguments)) == {"city"}
            responses: Any = {"model": MODEL, "input": STORY, "max_output_tokens": 400, "temperature": 0}
            tool: Any = {"type": "function", **WEATHER, "parameters": PLACE}
            async with ai.responses.stream(**responses, tools=[tool], tool_choice="required") as stream:
                async for _ in stream:
                    pass
                checked((await stream.get_final_response()).output[0])
            async with anthropic_client(served.url) as claude:
                answer = await claude.messages.create(
                    model=MODEL, messages=STORY, max_tokens=400, extra_body={"temperature": 0},
                    tools=[{**WEATHER, "input_schema": PLACE}], tool_choice={"type": "any"},
                )  # fmt: skip
                assert answer.stop_reason == "tool_use"
                (block, *_) = answer.content
                assert (block.type, set(block.input)) == ("tool_use", {"city"})

    asyncio.run(go())


def checked(call: Any) -> None:
    """A call of the weather as its schema has it."""
    assert call.name == "weather"
    assert set(json.loads(call.arguments)) == {"city"}
