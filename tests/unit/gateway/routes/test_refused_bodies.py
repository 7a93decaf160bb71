"""What no engine can be asked is refused with its place, alike for both engines and in each dialect.

The engine is a FAKE. What the real ones did with these bodies: llama.cpp answered most without a word,
vLLM named its own classes.
"""

import asyncio
from typing import Any

import httpx
import pytest

from tests.unit.gateway.routes.test_hostile_bodies import other_kinds

CHAT, TEXT, ITEMS, MESSAGES, OLLAMA = (
    "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/api/chat",
)  # fmt: skip
USER = {"role": "user", "content": "a"}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {}}}
FLAT = {"type": "function", "name": "f", "parameters": {}}
TOOL = {"name": "f", "input_schema": {"type": "object"}}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
GOOD: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [USER]},
    TEXT: {"prompt": "a"},
    ITEMS: {"input": "a"},
    MESSAGES: {"messages": [USER], "max_tokens": 3},
    OLLAMA: {"messages": [USER], "stream": False},
}


def turn(role: str, content: Any) -> list[dict[str, Any]]:
    return [{"role": role, "content": content}]


NO_CONTENT: tuple[Any, ...] = (None, 5, {}, [])
NO_CHOICE: tuple[Any, ...] = ("sometimes", 5, {"type": []})
Case = tuple[str, dict[str, Any], str]
REFUSED: list[Case] = [
    *(
        (path, {"logit_bias": bias}, "logit_bias")
        for path in (CHAT, TEXT)
        for bias in ({"5": 101}, {"5": "x"})
    ),
    (CHAT, {"logit_bias": [[5, 200]]}, "logit_bias"),
    *((path, {"messages": turn("robot", "a")}, "messages[0].role") for path in (CHAT, MESSAGES, OLLAMA)),
    (ITEMS, {"input": turn("robot", "a")}, "input[0].role"),
    (CHAT, {"messages": [USER, *turn("", "a")]}, "messages[1].role"),
    (MESSAGES, {"messages": [USER, *turn("tool", "a")]}, "messages[1].role"),
    *(
        (path, {"messages": [*turn(role, content), USER]}, "messages[0].content")
        for path in (CHAT, MESSAGES)
        for role in ("user", "system")
        for content in NO_CONTENT
    ),
    (CHAT, {"messages": [{"role": "user"}]}, "messages[0].content"),
    *((ITEMS, {"input": turn("user", content)}, "input[0].content") for content in NO_CONTENT),
    (ITEMS, {"input": []}, "input"),
    *(
        (path, {"messages": turn("user", [part])}, f"messages[0].content[0]{at}")
        for path in (CHAT, MESSAGES)
        for part, at in (({"type": "hologram"}, ".type"), ({"text": "a"}, ""), ({"type": "text"}, ".text"))
    ),
    (ITEMS, {"input": turn("user", [{"type": "hologram"}])}, "input[0].content[0].type"),
    (ITEMS, {"input": turn("user", [{"type": "input_text", "text": None}])}, "input[0].content[0].text"),
    (ITEMS, {"input": ["a"]}, "input[0]"),
    (ITEMS, {"instructions": 5}, "instructions"),
    (ITEMS, {"text": "x"}, "text"),
    (MESSAGES, {"system": 5}, "system"),
    (MESSAGES, {"system": [5]}, "system[0]"),
    (CHAT, {"messages": [USER, CALL, {"role": "tool", "content": "r"}]}, "messages[2].tool_call_id"),
    (CHAT, {"messages": [USER, {**CALL, "tool_calls": "x"}]}, "messages[1].tool_calls"),
    (CHAT, {"messages": [USER, {**CALL, "tool_calls": [{}]}]}, "messages[1].tool_calls[0].function"),
    (ITEMS, {"input": [USER, {"type": "function_call_output", "output": "r"}]}, "input[1].call_id"),
    (
        MESSAGES,
        {"messages": turn("user", [{"type": "tool_result", "content": "r"}])},
        "messages[0].content[0].tool_use_id",
    ),
    *(
        (path, {"tools": tools, "tool_choice": choice}, "tool_choice")
        for path, tools in ((CHAT, [FUNCTION]), (ITEMS, [FLAT]), (MESSAGES, [TOOL]))
        for choice in NO_CHOICE
    ),
    (CHAT, {"tools": [FUNCTION], "tool_choice": {"type": "function"}}, "tool_choice.function"),
    (MESSAGES, {"tool_choice": {"type": "any"}}, "tool_choice"),
    (MESSAGES, {"tools": [TOOL, TOOL]}, "tools[1].name"),
    *(
        (path, {"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name")
        for path in (CHAT, OLLAMA)
    ),
    (CHAT, {"tools": ["f"]}, "tools[0]"),
    (CHAT, {"tools": [{"type": "gadget"}]}, "tools[0].type"),
    (ITEMS, {"tools": ["f"]}, "tools[0]"),
    (ITEMS, {"tools": [{"type": "function"}]}, "tools[0].name"),
    (MESSAGES, {"tools": [{"input_schema": {}}]}, "tools[0].name"),
    *(
        (path, {"response_format": form}, "response_format")
        for path in (CHAT, TEXT)
        for form in ({"type": "yaml"}, {})
    ),
    *((ITEMS, {"text": {"format": form}}, "text.format") for form in ({"type": "yaml"}, {})),
    (ITEMS, {"text": {"format": {"type": "json_schema"}}}, "text.format.schema"),
    *(
        (MESSAGES, {"output_config": {"format": form}}, "output_config.format")
        for form in ({"type": "yaml"}, {})
    ),
    (MESSAGES, {"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
    (MESSAGES, {"thinking": 5}, "thinking"),
    *((MESSAGES, {"stop_sequences": stop}, "stop_sequences") for stop in ("x", [5])),
    *((path, {"stop": [5]}, "stop") for path in (CHAT, TEXT)),
    *((path, {"seed": seed}, "seed") for path in (CHAT, TEXT) for seed in (1 << 63, -(1 << 63) - 1)),
    (OLLAMA, {"options": {"seed": 1 << 63}}, "options.seed"),
    *((path, {"max_tokens": 1 << 31}, "max_tokens") for path in (CHAT, TEXT, MESSAGES)),
    *((path, {"top_k": large}, "top_k") for path in (CHAT, MESSAGES) for large in (1 << 31, 10**400)),
    (CHAT, {"min_p": 5}, "min_p"),
    (CHAT, {"logprobs": 3}, "logprobs"),
    (CHAT, {"logprobs": True, "top_logprobs": "x"}, "top_logprobs"),
    (CHAT, {"parallel_tool_calls": "yes"}, "parallel_tool_calls"),
    (CHAT, {"chat_template_kwargs": "x"}, "chat_template_kwargs"),
]
TAKEN: list[tuple[str, dict[str, Any]]] = [
    (CHAT, {"logit_bias": {"5": -100, "6": 100}}),
    # Of llama.cpp: never.
    *((path, {"logit_bias": [[5, False], [6, 1.5]]}) for path in (CHAT, TEXT)),
    *((CHAT, {"messages": turn(role, "a")}) for role in ("developer", "function", "control", "document 1")),
    (CHAT, {"messages": [USER, {"role": "assistant", "content": None}, USER]}),
    (CHAT, {"messages": [USER, {"role": "assistant", "content": []}, USER]}),
    # OpenAI takes the same name twice, and so do the engines.
    (CHAT, {"tools": [FUNCTION, FUNCTION]}),
    (CHAT, {"tools": [FUNCTION], "tool_choice": {"type": "function", "function": {"name": "f"}}}),
    (CHAT, {"seed": (1 << 63) - 1}),
    (OLLAMA, {"options": {"seed": (1 << 63) - 1, "num_predict": 0}}),
    (ITEMS, {"input": ""}),
    (
        ITEMS,
        {
            "input": [
                {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "n"}]}
            ]
        },
    ),
    (ITEMS, {"tools": [{"type": "web_search"}, {"type": "namespace", "name": "n", "tools": [FLAT]}]}),
    (MESSAGES, {"system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}),
    (MESSAGES, {"messages": [USER, *turn("system", "b"), USER]}),
    (
        MESSAGES,
        {
            "messages": turn(
                "user", [{"type": "web_search_tool_result", "content": []}, {"type": "text", "text": "a"}]
            )
        },
    ),
    (
        MESSAGES,
        {
            "tools": [TOOL, {"type": "web_search_20250305", "name": "web_search"}],
            "tool_choice": {"type": "auto"},
        },
    ),
    (MESSAGES, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
]
WORD = {"logit_bias": [[5, False], ["word", 1.5]]}
"""llama.cpp looks its tokens up; the real vLLM refuses any list of pairs."""


@pytest.mark.parametrize("kind", ["llama.cpp", "vllm"])
def test_what_is_none_is_refused_by_the_name_of_its_field(world: Any, kind: str) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url, timeout=20) as client:
            served.engine.go.set()
            other_kinds(served, kind)
            words = [(CHAT, WORD, "logit_bias")] if kind == "vllm" else []
            for path, more, param in [*REFUSED, *words]:
                answer = await client.post(path, json={**GOOD[path], **more})
                where = (path, more, answer.text)
                assert answer.status_code == 400, where
                told = answer.json()["error"]
                message = told if isinstance(told, str) else told["message"]
                assert message.startswith(param), where
                if path in (CHAT, TEXT, ITEMS):
                    assert told["param"] == param, where
                assert (answer.json() if path == OLLAMA else told)["src"] == "sndr", where
            assert served.engine.received == []

    asyncio.run(go())


@pytest.mark.parametrize("kind", ["llama.cpp", "vllm"])
def test_what_the_makers_of_the_forms_take_reaches_the_engine(world: Any, kind: str) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url, timeout=20) as client:
            served.engine.go.set()
            other_kinds(served, kind)
            taken = [*TAKEN, (CHAT, WORD)] if kind == "llama.cpp" else TAKEN
            for count, (path, more) in enumerate(taken):
                answer = await client.post(path, json={**GOOD[path], **more})
                assert answer.status_code != 400, (path, more, answer.text)
                assert len(served.engine.received) > count, (path, more, answer.text)

    asyncio.run(go())


def test_a_choice_left_to_the_model_of_no_tools_is_left_out(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url, timeout=20) as client:
            served.engine.go.set()
            other_kinds(served, "vllm")
            await client.post(CHAT, json={**GOOD[CHAT], "tool_choice": "auto", "parallel_tool_calls": True})
            ((_, body),) = served.engine.received
            assert not {"tool_choice", "parallel_tool_calls"} & set(body)

    asyncio.run(go())
