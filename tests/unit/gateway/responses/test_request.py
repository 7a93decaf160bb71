"""Repairs of a Responses request, over what Codex, the AI SDK and strangers send."""

import json
from typing import Any

import pytest

from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.responses.request import repaired

USER = {"role": "user", "content": "hi"}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "x"}
SEARCH = {"type": "web_search"}
FUNCTION = {"type": "function", "name": "f"}
PATCH = {"type": "custom", "name": "p"}
ALLOWED = {"type": "allowed_tools", "mode": "required", "tools": [SEARCH]}


def sent(**body: Any) -> dict[str, Any]:
    return repaired({"model": "m", **body}, for_llamacpp=True)


def items(*given: Any) -> Any:
    return sent(input=list(given))["input"]


def test_codexs_first_request_has_one_text_of_the_system_and_one_of_the_user() -> None:
    texts = [{"type": "input_text", "text": "p"}]
    developer = {"type": "message", "role": "developer", "content": texts}
    user = {"type": "message", "role": "user", "content": texts}
    body = sent(instructions="be brief", input=[developer, developer, user, USER])
    assert body["instructions"] == "be brief\n\np\n\np"
    gap = {"type": "input_text", "text": "\n\n"}
    assert body["input"] == [{"role": "user", "content": [*texts, gap, {"type": "input_text", "text": "hi"}]}]


def test_the_ai_sdks_second_turn_has_typed_messages() -> None:
    (said,) = items({"role": "assistant", "content": [{"type": "text", "text": "a"}], "id": "msg_1"})
    assert said == {"role": "assistant", "type": "message", "content": [{"type": "output_text", "text": "a"}]}
    (said,) = items({"role": "assistant", "content": "a"})
    assert said["content"] == [{"type": "output_text", "text": "a"}]


def test_reasoning_is_kept_where_it_can_be_read() -> None:
    hidden = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "xyz"}
    shown = {**hidden, "content": [{"type": "reasoning_text", "text": "a"}, {"text": "b"}, 7]}
    summed = {**hidden, "content": [], "summary": [{"type": "summary_text", "text": "s"}]}
    assert items(USER, hidden, CALL, RESULT) == [USER, CALL, RESULT]
    for item, text in ((shown, "a\nb"), (summed, "s")):
        content = [{"type": "reasoning_text", "text": text}]
        assert items(USER, item)[1] == {"type": "reasoning", "summary": [], "content": content}


def test_calls_of_custom_tools_are_calls_of_functions() -> None:
    call = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"}
    output = [{"type": "output_text", "text": "ok"}]
    result = {"type": "custom_tool_call_output", "call_id": "c", "output": output}
    one, other = items(call, result)
    assert (one["type"], json.loads(one["arguments"])) == ("function_call", {"input": "*** Begin"})
    assert other == {
        "type": "function_call_output",
        "call_id": "c",
        "output": [{"type": "input_text", "text": "ok"}],
    }
    assert items({**CALL, "arguments": ""})[0]["arguments"] == "{}"
    assert items({**RESULT, "output": {"a": 1}})[0]["output"] == '{"a": 1}'


def test_notes_of_openais_servers_say_nothing_here() -> None:
    assert items(USER, {"type": "web_search_call", "id": "ws_1", "status": "completed"}) == [USER]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": "x", "previous_response_id": "resp_1"}, "previous_response_id"),
        ({"input": "x", "conversation": {"id": "conv_1"}}, "conversation"),
        ({"input": [USER, {"type": "item_reference", "id": "msg_1"}]}, "input[1]"),
        ({"input": "x", "tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
        ({"input": "x", "tool_choice": {"type": "web_search_preview"}}, "tool_choice"),
        ({"input": "x", "tool_choice": "required"}, "tool_choice"),
        ({"input": "x", "tool_choice": "required", "tools": [SEARCH]}, "tool_choice"),
        ({"input": "x", "tool_choice": "required", "tools": [PATCH]}, "tool_choice"),
        ({"input": "x", "tool_choice": {"type": "custom", "name": "p"}, "tools": [PATCH]}, "tool_choice"),
        ({"input": "x", "tool_choice": ALLOWED, "tools": [SEARCH, FUNCTION]}, "tool_choice"),
        ({"input": "x", "prompt": {"id": "pmpt_1"}}, "prompt"),
    ],
)
def test_what_cannot_be_carried_is_refused(body: dict[str, Any], param: str) -> None:
    with pytest.raises(EndpointError) as refused:
        sent(**body)
    assert (refused.value.status, refused.value.param) == (400, param)


def test_of_the_tools_that_are_allowed_those_of_openais_servers_are_passed_over() -> None:
    allowed = {**ALLOWED, "tools": [SEARCH, FUNCTION]}
    body = sent(input="x", tools=[SEARCH, FUNCTION, {"type": "function", "name": "g"}], tool_choice=allowed)
    assert (body["tools"], body["tool_choice"]) == ([FUNCTION], "required")


def test_the_format_of_the_answer_is_that_of_a_chat() -> None:
    schema = {"type": "json_schema", "name": "w", "strict": True, "schema": {"type": "object"}}
    body = sent(input="x", text={"format": schema, "verbosity": "low"})
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "w", "strict": True, "schema": {"type": "object"}},
    }
    plain = {"type": "json_object"}
    assert sent(input="x", text={"format": plain})["response_format"] == plain
    for text in (None, {}, {"format": {"type": "text"}}, {"format": 7}, {"verbosity": "low"}):
        assert "response_format" not in sent(input="x", text=text)


@pytest.mark.parametrize("for_llamacpp", [True, False])
def test_an_answer_for_later_is_told_at_once(for_llamacpp: bool) -> None:
    assert "background" not in repaired({"input": "x", "background": True}, for_llamacpp=for_llamacpp)


def test_a_named_tool_is_the_only_one() -> None:
    tools = [{"type": "function", "name": "f"}, {"type": "function", "name": "g"}, {"type": "web_search"}]
    for others in ({}, {"parallel_tool_calls": True}):
        body = sent(input="x", tools=tools, tool_choice={"type": "function", "name": "g"}, **others)
        assert (body["tools"], body["tool_choice"]) == ([tools[1]], "required")
        assert body["parallel_tool_calls"] is False, "it has to be called, once"
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}
    body = sent(input="x", tools=tools, tool_choice=allowed)
    assert (body["tools"], body["tool_choice"]) == ([tools[0]], "auto")
    assert "parallel_tool_calls" not in body


def test_what_calls_nothing_has_no_tools() -> None:
    body = sent(input="x", tools=[{"type": "function", "name": "f"}], tool_choice="none")
    assert body == {"model": "m", "input": "x"}


def test_fields_that_are_null_are_left_out() -> None:
    assert sent(input="", tools=None, text=None, instructions=None) == {"model": "m", "input": ""}


@pytest.mark.parametrize(
    "given",
    [
        7,
        None,
        "x",
        [],
        {},
        {"type": 7},
        {"type": "message"},
        {"type": ["reasoning"]},
        {"role": 7, "content": 7},
        {"role": "user", "content": [7, None, {"type": []}]},
        {"role": "system", "content": [7]},
        {"role": "system", "content": {"a": 1}},
        {"type": "reasoning", "content": 7, "summary": "x"},
        {"type": "custom_tool_call"},
        {"type": "unheard_of"},
    ],
)
@pytest.mark.parametrize("llamacpp", [True, False])
def test_items_of_any_form_are_left_to_the_engine(given: Any, llamacpp: bool) -> None:
    body = repaired({"input": [given, USER, given]}, for_llamacpp=llamacpp)
    assert isinstance(body["input"], list)


def test_a_refusal_of_an_earlier_turn_is_a_text() -> None:
    """vLLM ends a request that holds one with a 500."""
    (said,) = items({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]})
    assert said["content"] == [{"type": "output_text", "text": "no"}]


def test_vllm_gets_a_group_of_tools_with_words_of_its_own() -> None:
    group = {"type": "namespace", "name": "n", "tools": []}
    tools = repaired({"model": "m", "input": "a", "tools": [group]}, for_llamacpp=False)["tools"]
    assert tools == [{**group, "description": ""}]


def test_vllm_gets_what_it_reads() -> None:
    form = {"format": {"type": "json_object"}}
    patch = {"type": "custom", "name": "patch", "format": {"type": "grammar"}}
    call = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"}
    hidden = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "xyz"}
    said = {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
    sent_ = {
        "input": [USER, hidden, said, call, RESULT],
        "tools": [CALL, patch],
        "tool_choice": None,
        "text": form,
    }
    body = repaired(sent_, for_llamacpp=False)
    assert body["input"] == [USER, {**said, "type": "message"}, call, RESULT]
    assert body["tools"] == [CALL, {"type": "custom", "name": "patch"}]
    assert set(body) == {"input", "tools", "text"}
    late = {"input": [USER, {"role": "system", "content": "note"}]}
    assert repaired(late, for_llamacpp=False)["input"] == [{"role": "user", "content": "hi\n\nnote"}]


@pytest.mark.parametrize("body", [{"top_logprobs": 3}, {"include": ["message.output_text.logprobs"]}])
def test_log_probabilities_are_refused_with_where_they_are(body: dict[str, Any]) -> None:
    with pytest.raises(EndpointError) as raised:
        sent(input="x", **body)
    assert (raised.value.status, raised.value.code, raised.value.source) == (400, "unsupported", "sndr")
    assert raised.value.param == next(iter(body))
    assert "/v1/chat/completions" in raised.value.message


def test_no_log_probabilities_are_no_reason_to_refuse() -> None:
    assert "top_logprobs" not in sent(input="x", top_logprobs=0, include=["reasoning.encrypted_content"])
