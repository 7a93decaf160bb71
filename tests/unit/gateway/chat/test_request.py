"""Repairs of a chat request, over what clients send."""

from typing import Any

import pytest

from engine_host.gateway.chat.request import repaired
from engine_host.gateway.error_answers import EndpointError

MESSAGES = [{"role": "user", "content": "hi"}]


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


BODY: dict[str, Any] = {"messages": MESSAGES, "tools": [tool("a"), tool("b")]}
FORMAT = {"type": "json_object"}


@pytest.mark.parametrize(
    "body",
    [
        {"messages": MESSAGES},
        BODY,
        {**BODY, "tool_choice": "auto", "response_format": FORMAT},
        {**BODY, "tool_choice": "required"},
        {**BODY, "tool_choice": {"type": "odd"}},
        {**BODY, "tool_choice": {"type": ["function"]}},
        {**BODY, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": 7}}},
        {"messages": [{"role": "assistant", "tool_calls": [7, {"function": {"arguments": 1}}]}]},
        {"messages": [{"role": "assistant", "tool_calls": "x"}]},
    ],
)
def test_what_needs_no_repair_is_the_clients_own(body: dict[str, Any]) -> None:
    assert repaired(body, for_llamacpp=True) is body


@pytest.mark.parametrize(
    ("choice", "names", "mode"),
    [
        (tool("b"), ["b"], "required"),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [tool("a")]}},
            ["a"],
            "auto",
        ),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [tool("b"), tool("a")]}},
            ["b", "a"],
            "required",
        ),
    ],
)
def test_a_named_tool_is_the_only_one(choice: Any, names: list[str], mode: str) -> None:
    body = repaired({**BODY, "tool_choice": choice}, for_llamacpp=True)
    assert [one["function"]["name"] for one in body["tools"]] == names
    assert body["tool_choice"] == mode
    assert body.get("parallel_tool_calls") is (False if choice.get("type") == "function" else None)
    assert BODY["tools"] == [tool("a"), tool("b")]
    often = repaired({**BODY, "tool_choice": choice, "parallel_tool_calls": True}, for_llamacpp=True)
    assert often["parallel_tool_calls"] is (choice.get("type") != "function"), "some clients always send it"
    asked = {**BODY, "tool_choice": choice}
    assert repaired(asked, for_llamacpp=False, for_provider=True) is asked
    of_vllm = repaired(asked, for_llamacpp=False)
    if choice["type"] == "function":
        assert of_vllm is asked
    else:
        assert (of_vllm["tools"], of_vllm["tool_choice"]) == (body["tools"], mode)


@pytest.mark.parametrize("for_llamacpp", [True, False])
@pytest.mark.parametrize("asked", [{**BODY, "tool_choice": "none"}, {"messages": MESSAGES, "tools": []}])
def test_what_calls_nothing_has_no_tools(asked: dict[str, Any], for_llamacpp: bool) -> None:
    asked = {**asked, "parallel_tool_calls": False}
    assert repaired(asked, for_llamacpp=for_llamacpp) == {"messages": MESSAGES}


@pytest.mark.parametrize("for_llamacpp", [True, False])
@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": "required", "tools": []}, "tool_choice"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"function_call": {"name": "f"}}, "function_call"),
    ],
)
def test_a_choice_that_nobody_keeps_is_refused(asked: dict[str, Any], param: str, for_llamacpp: bool) -> None:
    with pytest.raises(EndpointError) as refused:
        repaired({"messages": MESSAGES, **asked}, for_llamacpp=for_llamacpp)
    assert (refused.value.status, refused.value.param) == (400, param)


@pytest.mark.parametrize("tools", [[tool("a")], None, [], [7, {"function": {"name": ["a"]}}], "x"])
@pytest.mark.parametrize("name", ["nope", "x" * 10_000, None, ["a"]])
def test_a_tool_that_is_not_there_is_refused(tools: Any, name: Any) -> None:
    choice = {"type": "function", "function": {"name": name}}
    with pytest.raises(EndpointError) as refused:
        repaired({"messages": MESSAGES, "tools": tools, "tool_choice": choice}, for_llamacpp=True)
    assert (refused.value.status, refused.value.param) == (400, "tool_choice")
    assert len(refused.value.message) < 500


def test_a_call_that_has_to_be_made_has_no_format() -> None:
    body = repaired({**BODY, "tool_choice": "required", "response_format": FORMAT}, for_llamacpp=True)
    assert "response_format" not in body


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ("", "{}"), (" \n", "{}"), ({"x": 1}, '{"x": 1}'), ('{"x": 1}', '{"x": 1}'),
        # What a model wrote wrongly comes back with each further turn.
        ('{"x": ', '{"arguments": "{\\"x\\": "}'),
    ],
)  # fmt: skip
def test_the_arguments_of_a_call_are_json(arguments: Any, sent: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "a", "arguments": arguments}}
    history = [*MESSAGES, {"role": "assistant", "content": None, "tool_calls": [call]}]
    body = repaired({"messages": history}, for_llamacpp=True)
    assert body["messages"][1]["tool_calls"][0]["function"] == {"name": "a", "arguments": sent}


@pytest.mark.parametrize("for_llamacpp", [True, False])
def test_parts_with_words_are_texts_to_both_engines(for_llamacpp: bool) -> None:
    parts = [
        "a", {"type": "input_text", "text": "b"}, {"type": "refusal", "refusal": "c"},
        {"type": "image_url", "image_url": {}},
    ]  # fmt: skip
    messages = [
        {"role": "assistant", "content": parts},
        {"role": "tool", "tool_call_id": "1", "content": None},
    ]
    said, answered = repaired({"messages": messages}, for_llamacpp=for_llamacpp)["messages"]
    assert said["content"] == [*({"type": "text", "text": one} for one in "abc"), parts[3]]
    assert answered["content"] == ""
