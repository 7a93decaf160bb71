"""A Messages request as a chat."""

import json
from typing import Any

import pytest

from engine_host.gateway.messages.to_chat import as_chat, wanted_format

SCHEMA = {"type": "object"}


def chat(*messages: Any, **body: Any) -> dict[str, Any]:
    return as_chat({"model": "m", "max_tokens": 9, "messages": list(messages), **body})


def test_a_form_is_asked_for_in_two_ways() -> None:
    wanted = {"type": "json_schema", "schema": SCHEMA}
    asked = {"name": "answer", "strict": True, "schema": SCHEMA}
    for body in ({"output_config": {"format": wanted}}, {"output_format": wanted}):
        assert wanted_format(body) == {"type": "json_schema", "json_schema": asked}
    others: list[dict[str, Any]] = [
        {},
        {"output_config": {"effort": "high"}},
        {"output_config": 7},
        {"output_format": {"type": []}},
    ]
    assert not any(map(wanted_format, others))


def test_a_conversation_keeps_its_order() -> None:
    text = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    call = {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "r"}]}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
    told = chat(
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}, text, call]},
        {"role": "user", "content": [result]},
        {"role": "user", "content": [text, picture]},
        system=[{"type": "text", "text": "s"}],
        tools=[{"name": "f", "input_schema": SCHEMA}],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        stop_sequences=["x"],
        stream=True,
        thinking={"type": "enabled", "budget_tokens": 3},
        metadata={"user_id": "u"},
    )
    plain = {"type": "text", "text": "x"}
    assert told["messages"] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [plain],
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": json.dumps({"a": 1})}}
            ],
            "reasoning_content": "t",
        },
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "r"}]},
        {
            "role": "user",
            "content": [plain, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}],
        },
    ]
    function = {"name": "f", "description": "", "parameters": SCHEMA}
    assert told["tools"] == [{"type": "function", "function": function}]
    assert (told["tool_choice"], told["parallel_tool_calls"], told["stop"]) == ("required", False, ["x"])
    assert (told["thinking_budget_tokens"], told["stream_options"]) == (3, {"include_usage": True})
    assert "metadata" not in told


@pytest.mark.parametrize(
    "content",
    [None, 7, {}, [], [7, None, []], [{"type": []}], [{"type": "image", "source": 7}], [{"type": "tool_use"}],
     [{"type": "tool_result", "content": [7]}], [{"type": "thinking", "thinking": 7}]],
)  # fmt: skip
def test_messages_of_any_form_are_written(content: Any) -> None:
    told = chat(
        {"role": "user", "content": content}, tools=[7], tool_choice={"type": []}, thinking=7, system=7
    )
    assert json.dumps(told)
