"""Repairs of a Messages request, over what Claude Code and strangers send."""

from typing import Any

import pytest

from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.messages.request import repaired

USER = {"role": "user", "content": "hi"}
TOOLS = [{"name": "a", "input_schema": {}}, {"name": "b", "input_schema": {}}]
RESULT = {"type": "tool_result", "tool_use_id": "1", "content": "z"}
TEXT = {"type": "text", "text": "so?"}


def sent(llamacpp: bool = True, **body: Any) -> dict[str, Any]:
    return repaired({"model": "m", "max_tokens": 9, "messages": [USER], **body}, for_llamacpp=llamacpp)


def test_claude_codes_message_of_the_system_is_text_of_the_user() -> None:
    body = sent(messages=[USER, {"role": "system", "content": "note"}])
    assert body["messages"] == [{"role": "user", "content": "hi\n\nnote"}]
    assert "system" not in body


def test_a_first_message_of_the_system_joins_the_systems_text() -> None:
    messages = [{"role": "system", "content": "late"}, USER]
    assert sent(messages=messages, system=[{"type": "text", "text": "s"}])["system"] == "s\n\nlate"
    assert sent(messages=messages)["system"] == "late"


def test_fields_of_anthropics_servers_are_left_out() -> None:
    body = sent(context_management={"edits": []}, thinking={"type": "adaptive"}, temperature=None)
    assert set(body) == {"model", "max_tokens", "messages", "thinking"}


def test_which_tools_may_be_called_is_said_with_the_tools() -> None:
    none = sent(tools=TOOLS, tool_choice={"type": "none"})
    assert "tools" not in none
    assert "tool_choice" not in none
    named = sent(tools=TOOLS, tool_choice={"type": "tool", "name": "b"})
    once = {"type": "any", "disable_parallel_tool_use": True}
    assert (named["tools"], named["tool_choice"]) == ([TOOLS[1]], once)
    choice = {"type": "tool", "name": "nope"}
    assert sent(False, tools=TOOLS, tool_choice=choice)["tool_choice"] == choice
    with pytest.raises(EndpointError, match="nope"):
        sent(tools=TOOLS, tool_choice=choice)
    for odd in ("auto", 7, {"type": 7}, {"type": "auto"}):
        assert sent(tools=TOOLS, tool_choice=odd)["tools"] == TOOLS


def test_tools_of_anthropics_servers_are_left_out() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    mine = {"type": "custom", "name": "c", "input_schema": {}}
    assert sent(tools=[search, mine, *TOOLS, 7])["tools"] == [mine, *TOOLS, 7]


@pytest.mark.parametrize("for_llamacpp", [True, False])
@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "web_search"}])
def test_no_call_is_forced_of_tools_of_anthropics_servers(for_llamacpp: bool, choice: dict[str, Any]) -> None:
    """The choice went with the tools: the client got a text, and waited for a call."""
    search = {"type": "web_search_20250305", "name": "web_search"}
    with pytest.raises(EndpointError, match="Anthropic's servers") as refused:
        sent(for_llamacpp, tools=[search], tool_choice=choice)
    assert (refused.value.status, refused.value.param) == (400, "tool_choice")
    assert sent(for_llamacpp, tools=[search], tool_choice={"type": "auto"})["messages"] == [USER]


def test_answers_of_tools_come_before_what_the_user_says() -> None:
    messages = [USER, {"role": "user", "content": [RESULT, RESULT, TEXT]}]
    turns = sent(messages=messages)["messages"]
    assert [turn["content"] for turn in turns][-2:] == [[RESULT, RESULT], [TEXT]]
    assert len(sent(False, messages=messages)["messages"]) == 1


def test_documents_are_texts() -> None:
    document = {"type": "document", "title": "Sky", "source": {"type": "text", "data": "It is green."}}
    block = {"type": "text", "text": "Sky\nIt is green."}
    inner = {**RESULT, "content": [document]}
    (turn,) = sent(messages=[{"role": "user", "content": [document, TEXT]}])["messages"]
    assert turn["content"] == [block, TEXT]
    (turn,) = sent(messages=[{"role": "user", "content": [inner]}])["messages"]
    assert turn["content"] == [{**RESULT, "content": [block]}]
    parts = {"type": "document", "source": {"type": "content", "content": [TEXT, 7]}}
    found = {"type": "search_result", "source": "http://x", "title": "T", "content": [TEXT]}
    (turn,) = sent(messages=[{"role": "user", "content": [parts, found]}])["messages"]
    assert [one["text"] for one in turn["content"]] == ["so?", "T\nhttp://x\nso?"]


@pytest.mark.parametrize(
    "source",
    [
        {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
        {"type": "url", "url": "http://x"},
        {"type": "text", "data": 7},
        {"media_type": "x" * 10_000},
        None,
        [],
    ],
)
def test_a_document_that_is_no_text_is_refused_and_not_left_out(source: Any) -> None:
    messages = [USER, {"role": "user", "content": [{"type": "document", "source": source}]}]
    with pytest.raises(EndpointError) as refused:
        sent(messages=messages)
    assert (refused.value.status, refused.value.param) == (400, "messages[1]")
    assert len(refused.value.message) < 500


@pytest.mark.parametrize("content", [None, 7, {}, [7, None, [], {"type": 7}], [{"type": "tool_result"}], []])
@pytest.mark.parametrize("role", ["user", "system", "assistant", "x"])
def test_messages_of_any_form_are_left_to_the_engine(content: Any, role: str) -> None:
    message = {"role": role, "content": content}
    assert sent(messages=[message, USER, message])["messages"]


def test_the_work_of_anthropics_servers_is_told_as_text_or_left_out() -> None:
    """A conversation that began at Anthropic's: vLLM refused all of it for such a block."""
    hit = {"type": "web_search_result", "title": "Rain", "url": "https://r.example", "encrypted_content": "x"}
    said = {"type": "mcp_tool_result", "tool_use_id": "m", "content": [{"type": "text", "text": "42"}]}
    turns = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [hit]},
        {"type": "code_execution_tool_result", "tool_use_id": "s", "content": {"type": "sealed"}},
        said,
        RESULT,
    ]
    for llamacpp in (True, False):
        (message,) = sent(llamacpp, messages=[{"role": "assistant", "content": turns}])["messages"]
        assert message["content"] == [
            {"type": "text", "text": "Rain\nhttps://r.example"},
            {"type": "text", "text": "42"},
            RESULT,
        ]
        (alone,) = sent(llamacpp, messages=[{"role": "user", "content": turns[:1]}])["messages"]
        assert alone["content"] == [{"type": "text", "text": ""}]
