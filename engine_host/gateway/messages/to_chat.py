"""Write a Messages request as a chat, for what llama.cpp's own route leaves out.

That is the form of the answer, and its progress with a long prompt.
"""

import json
from typing import Any

from engine_host.gateway.chat.turns import system_text

_SAME = ("model", "max_tokens", "temperature", "top_p", "top_k", "stream", "chat_template_kwargs")
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def wanted_format(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return the form that a request wants of its answer, as a chat says it; None for none."""
    config = body.get("output_config")
    wanted = config.get("format") if isinstance(config, dict) else None
    wanted = wanted or body.get("output_format")
    if not isinstance(wanted, dict) or wanted.get("type") != "json_schema":
        return None
    schema = {"name": "answer", "strict": True, "schema": wanted.get("schema")}
    return {"type": "json_schema", "json_schema": schema}


def as_chat(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request that is repaired already as a chat of the same words."""
    chat = {name: body[name] for name in _SAME if name in body}
    system = body.get("system")
    before = [{"role": "system", "content": system_text(system)}] if isinstance(system, str | list) else []
    chat["messages"] = [*before, *(part for message in body["messages"] for part in _parts(message))]
    tools = body.get("tools")
    if isinstance(tools, list) and tools:
        chat["tools"] = [_tool(tool) for tool in tools]
    choice = body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else None
    if isinstance(choice, dict) and isinstance(kind, str) and kind in _CHOICES:
        chat["tool_choice"] = _CHOICES[kind]
        if choice.get("disable_parallel_tool_use"):
            chat["parallel_tool_calls"] = False
    if isinstance(body.get("stop_sequences"), list):
        chat["stop"] = body["stop_sequences"]
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and isinstance(thinking.get("budget_tokens"), int):
        chat["thinking_budget_tokens"] = thinking["budget_tokens"]
    if body.get("stream"):
        chat["stream_options"] = {"include_usage": True}
    return chat


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of a chat that one message is: the answers of tools are messages of their own."""
    content = message.get("content")
    if not isinstance(content, list):
        return [message]
    blocks = [block for block in content if isinstance(block, dict)]
    answers = [_answer(block) for block in blocks if block.get("type") == "tool_result"]
    said = [part for block in blocks if (part := _part(block)) is not None]
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    thought = "".join(str(block.get("thinking", "")) for block in blocks if block.get("type") == "thinking")
    if not said and not calls and not thought:
        return answers
    turn: dict[str, Any] = {"role": message.get("role"), "content": said or ""}
    if calls:
        turn["tool_calls"] = calls
    if thought:
        turn["reasoning_content"] = thought
    return [*answers, turn]


def _part(block: dict[str, Any]) -> dict[str, Any] | None:
    """A text or a picture; None for every other block."""
    if block.get("type") == "text":
        return {"type": "text", "text": block.get("text")}
    source = block.get("source")
    if block.get("type") != "image" or not isinstance(source, dict):
        return None
    url = source.get("url")
    if source.get("type") == "base64":
        url = f"data:{source.get('media_type', 'image/jpeg')};base64,{source.get('data', '')}"
    return {"type": "image_url", "image_url": {"url": url}}


def _answer(block: dict[str, Any]) -> dict[str, Any]:
    content = block.get("content")
    if isinstance(content, list):
        content = [part for one in content if isinstance(one, dict) and (part := _part(one)) is not None]
    return {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": content or ""}


def _call(block: dict[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
    function = {"name": block.get("name"), "arguments": arguments}
    return {"id": block.get("id"), "type": "function", "function": function}


def _tool(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return tool
    function = {
        "name": tool.get("name"),
        "description": tool.get("description") or "",
        "parameters": tool.get("input_schema") or {},
    }
    return {"type": "function", "function": function}
