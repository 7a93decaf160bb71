"""Bring the items of a Responses conversation into the forms that both engines know."""

import json
from typing import Any

from engine_host.gateway import error_answers as faults
from engine_host.gateway.chat.tools import with_arguments
from engine_host.gateway.responses.namespaces import flat_call
from engine_host.protocol.errors import Reason

Item = dict[str, Any]

_TEXT_TYPES = ("text", "output_text", "input_text")
# Notes about the work of OpenAI's own servers, which no other can do anything with.
_NOTES = (
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
    "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction",
)  # fmt: skip


def known_items(items: list[Any], *, custom_calls: bool = False) -> list[Any]:
    """Return the items as engines know them, without those that say nothing to a model.

    `custom_calls`: the engine knows calls of tools that take a text, and of tools in groups.
    Raises EndpointError 400 for one that stands for what another server has kept.
    """
    found = (
        _known(item, place, custom_calls) if isinstance(item, dict) else item
        for place, item in enumerate(items)
    )
    return [item for item in found if item is not None]


def _known(item: Item, place: int, custom_calls: bool) -> Item | None:
    kind = item.get("type")
    if kind in (None, "message") and isinstance(item.get("role"), str):
        return _message(item)
    if kind == "reasoning":
        return _reasoning(item)
    if kind == "function_call":
        return with_arguments(item if custom_calls else flat_call(item))
    if custom_calls and kind in ("custom_tool_call", "custom_tool_call_output"):
        return item
    if kind == "custom_tool_call":
        text = item.get("input")
        return {
            "type": "function_call",
            "call_id": item.get("call_id"),
            "name": item.get("name"),
            "arguments": json.dumps({"input": text}),
        }
    if kind in ("function_call_output", "custom_tool_call_output"):
        return {**item, "type": "function_call_output", "output": _output(item.get("output"))}
    if kind == "item_reference":
        raise faults.EndpointError(
            400,
            "unsupported",
            f"input[{place}] refers to an earlier answer, and this endpoint keeps none. Send the items "
            "themselves (in the AI SDK: providerOptions.openai.store = false).",
            Reason.UNSUPPORTED,
            f"input[{place}]",
        )
    return None if kind in _NOTES else item


def _message(item: Item) -> Item:
    """A message with its type, and its parts as those who wrote it name them."""
    content = item.get("content")
    assistant = item["role"] == "assistant"
    if isinstance(content, str) and assistant:
        content = [{"type": "output_text", "text": content}]
    elif isinstance(content, list):
        right = "output_text" if assistant else "input_text"
        content = [_part(part, right) for part in content]
    named = {"type": "message"} if assistant else {}
    kept = {name: value for name, value in item.items() if name not in {"type", "id", "status", "phase"}}
    return {**kept, **named, "content": content}


def _part(part: Any, text_type: str) -> Any:
    if isinstance(part, dict) and part.get("type") in _TEXT_TYPES:
        return {"type": text_type, "text": part.get("text")}
    if isinstance(part, dict) and part.get("type") == "refusal":
        # vLLM ends such a request with a 500.
        return {"type": text_type, "text": part.get("refusal")}
    return part


def _reasoning(item: Item) -> Item | None:
    """Reasoning as one text; None for one that only another server can read."""
    for name in ("content", "summary"):
        parts = item.get(name)
        texts = (
            [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        )
        text = "\n".join(one for one in texts if isinstance(one, str) and one)
        if text:
            content = [{"type": "reasoning_text", "text": text}]
            return {"type": "reasoning", "summary": [], "content": content}
    return None


def _output(output: Any) -> Any:
    """The answer of a tool, as a text or as parts with texts."""
    if isinstance(output, str):
        return output
    if isinstance(output, list):
        return [_part(part, "input_text") for part in output]
    return json.dumps(output)
