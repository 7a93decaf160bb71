"""Ollama's requests as OpenAI's: messages, calls, pictures, formats and options; and hostile ones."""

from dataclasses import replace
from typing import Any

import pytest

from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.ollama import request
from tests.unit.gateway.asking import ask

LLAMACPP = Target("e1", "m", 2, 4096, 0.0, socket="unused", images=True)
VLLM = replace(LLAMACPP, native_infill=False)
USER = {"role": "user", "content": "hi"}


def chat(target: Target = LLAMACPP, **more: Any) -> dict[str, Any]:
    """A chat, translated."""
    return request.chat({"model": "m", "messages": [USER], **more}, target)


def test_it_streams_unless_it_is_told_not_to() -> None:
    assert chat()["stream"] is True
    assert chat()["stream_options"] == {"include_usage": True}
    assert chat(stream=False)["stream"] is False
    assert "stream_options" not in chat(stream=False)


def test_likelihoods_are_asked_for() -> None:
    assert "logprobs" not in chat(logprobs=False, top_logprobs=2)
    made = chat(logprobs=True, top_logprobs=2)
    assert (made["logprobs"], made["top_logprobs"]) == (True, 2)
    with pytest.raises(EndpointError, match="top_logprobs"):
        chat(logprobs=True, top_logprobs="two")


def test_options_become_sampling() -> None:
    options = {
        "temperature": 0, "top_k": 20, "top_p": 0.9, "min_p": 0.1, "seed": 7, "num_predict": 12,
        "repeat_penalty": 1.1, "presence_penalty": 0.5, "stop": ["a"], "num_ctx": 8192, "num_gpu": 1,
        "mirostat": 2,
    }  # fmt: skip
    made = chat(options=options)
    assert {name: made.get(name) for name in ("temperature", "top_k", "seed", "max_tokens", "stop")} == {
        "temperature": 0, "top_k": 20, "seed": 7, "max_tokens": 12, "stop": ["a"],
    }  # fmt: skip
    assert made["repeat_penalty"] == 1.1
    assert chat(VLLM, options=options)["repetition_penalty"] == 1.1
    assert "num_ctx" not in made, "the start has said it"
    assert "max_tokens" not in chat(options={"num_predict": -1})
    assert chat(options={"stop": "x"})["stop"] == ["x"]


def test_formats() -> None:
    assert chat(format="json")["response_format"] == {"type": "json_object"}
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    made = chat(format=schema)["response_format"]
    assert (made["type"], made["json_schema"]["schema"]) == ("json_schema", schema)
    assert "response_format" not in chat(format="")
    with pytest.raises(EndpointError):
        chat(format="xml")


def test_thinking() -> None:
    assert chat(think=False)["chat_template_kwargs"] == {"enable_thinking": False}
    assert chat(think="high")["reasoning_effort"] == "high"
    with pytest.raises(EndpointError):
        chat(think="extremely")


def test_calls_and_their_answers_find_one_another() -> None:
    call = {"function": {"name": "rain", "arguments": {"city": "Ústí"}}}
    messages = [
        USER,
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [call, {"function": {"name": "sun"}}],
        },
        {"role": "tool", "tool_name": "sun", "content": "yes"},
        {"role": "tool", "content": "no"},
        {"role": "tool", "content": "nobody asked"},
    ]
    made = request.chat({"messages": messages}, LLAMACPP)["messages"]
    calls = made[1]["tool_calls"]
    assert calls[0]["function"] == {"name": "rain", "arguments": '{"city": "Ústí"}'}
    assert calls[1]["function"]["arguments"] == "{}"
    assert made[1]["reasoning_content"] == "hm"
    assert [one["tool_call_id"] for one in made[2:]] == [calls[1]["id"], calls[0]["id"], "call_0"]


def test_pictures() -> None:
    seen = {"role": "user", "content": "what?", "images": ["/9j/abc", "data:image/gif;base64,x", "iVBORw"]}
    parts = request.chat({"messages": [seen]}, LLAMACPP)["messages"][0]["content"]
    assert [part["image_url"]["url"] for part in parts[1:]] == [
        "data:image/jpeg;base64,/9j/abc", "data:image/gif;base64,x", "data:image/png;base64,iVBORw",
    ]  # fmt: skip
    with pytest.raises(EndpointError) as refused:
        request.chat({"messages": [seen]}, replace(LLAMACPP, images=False))
    assert refused.value.code == "modality_unsupported"


def test_a_picture_is_never_an_address_to_fetch() -> None:
    for text in ("http://169.254.169.254/", "file:///etc/passwd", "data:text/html,x"):
        seen = {"role": "user", "content": "", "images": [text]}
        (part,) = request.chat({"messages": [seen]}, LLAMACPP)["messages"][0]["content"]
        assert part["image_url"]["url"] == f"data:image/png;base64,{text}"


def test_a_prompt_is_a_chat_and_a_raw_one_is_none() -> None:
    made = request.chat_of_prompt({"prompt": "hi", "system": "be brief"}, LLAMACPP)
    assert [one["role"] for one in made["messages"]] == ["system", "user"]
    raw = request.completion({"prompt": "hi", "think": True}, VLLM)
    assert (raw["prompt"], raw["max_tokens"]) == ("hi", None)
    assert "chat_template_kwargs" not in raw
    gap = request.completion({"prompt": "a", "suffix": "b", "options": {"num_predict": 3}}, LLAMACPP)
    assert (gap["suffix"], gap["max_tokens"]) == ("b", 3)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/chat", {"messages": "hi"}),
        ("/api/chat", {"messages": [1]}),
        ("/api/chat", {"messages": [{"content": "x"}]}),
        ("/api/chat", {"messages": [{"role": "user", "content": [1]}]}),
        ("/api/chat", {"messages": [{"role": "user", "content": "x", "images": "abc"}]}),
        ("/api/chat", {"messages": [{"role": "user", "content": "x", "images": [1]}]}),
        ("/api/chat", {"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]}),
        ("/api/chat", {"messages": [{"role": "assistant", "tool_calls": {}}]}),
        ("/api/chat", {"messages": [USER], "options": []}),
        ("/api/chat", {"messages": [USER], "options": {"temperature": "hot"}}),
        ("/api/chat", {"messages": [USER], "options": {"seed": True}}),
        ("/api/chat", {"messages": [USER], "options": {"num_predict": 10**400}}),
        ("/api/chat", {"messages": [USER], "options": {"stop": [1]}}),
        ("/api/chat", {"messages": [USER], "think": 1}),
        ("/api/chat", {"messages": [USER], "format": 1}),
        ("/api/chat", {"messages": [USER], "stream": "yes"}),
        ("/api/chat", {"messages": [USER], "tools": {}}),
        ("/api/chat", {"messages": [USER], "model": 5}),
        ("/api/generate", {"prompt": 1}),
        ("/api/generate", {"prompt": "x", "raw": "no"}),
        ("/api/generate", {"prompt": "x", "suffix": 1}),
        ("/api/generate", {"prompt": "x", "images": {}}),
        ("/api/embed", {}),
        ("/api/embed", {"input": [1]}),
        ("/api/embeddings", {"prompt": ["a"]}),
    ],
)
def test_what_is_no_request_is_refused_in_ollamas_form(world: Any, path: str, body: Any) -> None:
    seen: list[Any] = []
    answer = ask(world, "POST", path, lambda served: seen.append(served.engine), json=body)
    assert answer.status_code == 400, answer.text
    assert isinstance(answer.json()["error"], str)
    assert seen[0].received == []
