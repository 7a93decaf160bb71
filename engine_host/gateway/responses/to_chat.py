"""Write a Responses request as a chat, for a provider that has no Responses."""

from typing import Any

from engine_host.gateway import error_answers as faults
from engine_host.gateway.chat.turns import in_order, system_text
from engine_host.protocol.errors import Reason

_SAME = ("model", "temperature", "top_p", "stream", "parallel_tool_calls", "response_format", "user", "seed")
_CHOICES = ("auto", "none", "required")
_TEXTS = ("input_text", "output_text", "text", "refusal")

Message = dict[str, Any]


def as_chat(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request that is repaired already as a chat of the same words; reasoning is left out.

    Raises EndpointError 400 for a part of a message that a chat has not.
    """
    chat = {name: body[name] for name in _SAME if name in body}
    if body.get("max_output_tokens") is not None:
        chat["max_tokens"] = body["max_output_tokens"]
    instructions = body.get("instructions")
    before = [{"role": "system", "content": instructions}] if isinstance(instructions, str) else []
    given = body.get("input")
    said = [{"role": "user", "content": given}] if isinstance(given, str) else _messages(given)
    chat["messages"] = in_order([*before, *said])
    tools = [made for tool in _list(body.get("tools")) if (made := _tool(tool)) is not None]
    if tools:
        chat["tools"] = tools
        if body.get("tool_choice") in _CHOICES:
            chat["tool_choice"] = body["tool_choice"]
    reasoning = body.get("reasoning")
    if isinstance(reasoning, dict) and isinstance(reasoning.get("effort"), str):
        chat["reasoning_effort"] = reasoning["effort"]
    if body.get("stream"):
        chat["stream_options"] = {"include_usage": True}
    return chat


def _messages(items: object) -> list[Message]:
    """The messages of a conversation: calls belong to what the model said before them."""
    found: list[Message] = []
    for item in _list(items):
        if not isinstance(item, dict):
            continue
        kind = item.get("type")
        if kind == "function_call":
            if not found or found[-1]["role"] != "assistant":
                found.append({"role": "assistant", "content": ""})
            function = {"name": item.get("name"), "arguments": item.get("arguments") or "{}"}
            call = {"id": item.get("call_id"), "type": "function", "function": function}
            found[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            content = _text(item.get("output"))
            found.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": content})
        elif isinstance(item.get("role"), str):
            said = item.get("content")
            told = _text(said) if item["role"] == "assistant" else _parts(said)
            found.append({"role": item["role"], "content": told})
    return found


def _text(content: object) -> str:
    return content if isinstance(content, str) else system_text(_list(content))


def _parts(content: object) -> Any:
    """The words of a user: a text where it is one, else texts and pictures."""
    parts = [_part(part) for part in _list(content) if isinstance(part, dict)]
    if isinstance(content, str):
        return content
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _part(part: dict[str, Any]) -> dict[str, Any]:
    kind = part.get("type")
    if kind in _TEXTS:
        return {"type": "text", "text": part.get("text") or ""}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        detail = {"detail": part["detail"]} if isinstance(part.get("detail"), str) else {}
        return {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
    raise faults.EndpointError(
        400,
        "unsupported",
        f"The provider has no /v1/responses, and a chat cannot hold a part of type {str(kind)[:100]!r}.",
        Reason.UNSUPPORTED,
        "input",
    )


def _tool(tool: object) -> dict[str, Any] | None:
    """A function; None for every other tool, of which a chat knows nothing."""
    if not isinstance(tool, dict) or tool.get("type") != "function":
        return None
    names = ("name", "description", "parameters", "strict")
    function = {name: tool[name] for name in names if tool.get(name) is not None}
    return {"type": "function", "function": function}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
