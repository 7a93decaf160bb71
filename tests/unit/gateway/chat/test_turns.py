"""A conversation in the order that every model's template takes."""

from typing import Any

import pytest

from engine_host.gateway.chat.turns import in_order

USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "s"}
ANSWER = {"role": "assistant", "content": "hello"}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "z"}


def said(text: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [SYSTEM, USER, ANSWER, USER],
        [said("d", "developer"), USER],
        [SYSTEM, USER, CALL, RESULT, RESULT, USER],
        [{**USER, "name": "ann"}, {**USER, "name": "bob"}],
        [USER, {"role": "user"}],
        [USER, said(None)],
        [{"role": "system"}, USER],
        [{"role": "odd", "content": 7}, {"role": "odd", "content": {}}],
        [],
    ],
)
def test_a_conversation_in_order_is_the_same_one(messages: list[Any]) -> None:
    assert in_order(messages) is messages


def test_claude_codes_message_of_the_system_becomes_text_of_the_user() -> None:
    assert in_order([USER, said("note", "system"), ANSWER]) == [said("hi\n\nnote"), ANSWER]
    assert in_order([SYSTEM, USER, ANSWER, said("note", "system"), USER]) == [
        SYSTEM,
        USER,
        ANSWER,
        said("note\n\nhi"),
    ]


def test_codexs_two_messages_of_the_developer_become_one() -> None:
    parts = [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]
    told = [said("a", "developer"), said(parts, "developer"), said("env"), USER]
    assert in_order(told) == [said("a\n\nb\n\nc", "system"), said("env\n\nhi")]


def test_parts_stay_parts_and_are_told_apart() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:"}}
    text = {"type": "text", "text": "x"}
    gap = {"type": "text", "text": "\n\n"}
    assert in_order([said([text]), said("y")]) == [said([text, gap, {"type": "text", "text": "y"}])]
    assert in_order([said([picture]), said([text])]) == [said([picture, text])]
    assert in_order([said([7]), said(["x"])]) == [said([7, "x"])]
    assert in_order([said("x"), said([text])], "input_text")[0]["content"][0]["type"] == "input_text"
