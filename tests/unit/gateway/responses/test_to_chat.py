"""A Responses request as a chat: the same words, calls and tools; what a chat cannot hold is refused."""

from typing import Any

import pytest

from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.responses.request import repaired
from engine_host.gateway.responses.to_chat import as_chat


def chat(**body: Any) -> dict[str, Any]:
    return as_chat(repaired({"model": "m", **body}, for_llamacpp=True))


def test_a_text_with_instructions() -> None:
    made = chat(input="hi", instructions="be short", max_output_tokens=5, stream=True, store=False)
    assert made == {
        "model": "m", "max_tokens": 5, "stream": True, "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": "be short"}, {"role": "user", "content": "hi"}],
    }  # fmt: skip


def test_a_conversation_with_calls_and_pictures() -> None:
    made = chat(
        input=[
            {"role": "developer", "content": "one"},
            {"role": "user", "content": [
                {"type": "input_text", "text": "what is it?"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"},
            ]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "see"}]},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": ""},
            {"type": "function_call", "call_id": "c2", "name": "feel", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1",
             "output": [{"type": "input_text", "text": "x"}]},
            {"type": "function_call_output", "call_id": "c2", "output": "y"},
        ],
        tools=[
            {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": True},
            {"type": "web_search"},
        ],
        tool_choice="required",
        reasoning={"effort": "low"},
    )  # fmt: skip
    assert made["messages"][0] == {"role": "system", "content": "one"}
    assert made["messages"][1]["content"][1] == {
        "type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"},
    }  # fmt: skip
    turn = made["messages"][2]
    assert (turn["content"], [call["id"] for call in turn["tool_calls"]]) == ("see", ["c1", "c2"])
    assert [one["content"] for one in made["messages"][3:]] == ["x", "y"]
    function = {"name": "look", "parameters": {"type": "object"}, "strict": True}
    assert made["tools"] == [{"type": "function", "function": function}]
    assert (made["tool_choice"], made["reasoning_effort"]) == ("required", "low")


def test_the_format_of_the_answer() -> None:
    wanted = {"type": "json_schema", "name": "x", "schema": {"type": "object"}}
    made = chat(input="hi", text={"format": wanted})
    assert made["response_format"]["json_schema"] == {"name": "x", "schema": {"type": "object"}}


def test_a_part_that_no_chat_has_is_refused() -> None:
    with pytest.raises(EndpointError, match="input_file"):
        chat(input=[{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}])


@pytest.mark.parametrize("given", [[], [{}], [{"type": "message"}], [{"role": "user"}], [{"type": 7}]])
def test_odd_items_break_nothing(given: Any) -> None:
    assert isinstance(as_chat({"model": "m", "input": given})["messages"], list)
