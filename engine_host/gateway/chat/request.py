"""Repairs of a chat request: those of every model's template, and those of llama.cpp."""

from typing import Any

from engine_host.gateway.chat.tools import only, with_arguments
from engine_host.gateway.chat.turns import in_order

_FORCED = ("required", "any")


def repaired(body: dict[str, Any], *, for_llamacpp: bool) -> dict[str, Any]:
    """Return the request as its engine reads it, the same one where nothing has to change.

    Raises EndpointError 400 for a choice of a tool that is not there.
    """
    messages = in_order(body["messages"])
    if for_llamacpp:
        messages = _with_arguments(messages)
        body = _chosen(body)
    return body if messages is body["messages"] else {**body, "messages": messages}


def _chosen(body: dict[str, Any]) -> dict[str, Any]:
    """Keep the tools that may be called, and say whether one has to be."""
    choice = body.get("tool_choice")
    names: list[Any] | None = None
    mode: Any = choice
    if isinstance(choice, dict):
        kind = choice.get("type")
        named = choice.get(kind) if isinstance(kind, str) else None
        if kind == "function" and isinstance(named, dict):
            names, mode = [named.get("name")], "required"
            # One call of it is meant; the engine would let a model call it again and again.
            body = {"parallel_tool_calls": False, **body}
        elif kind == "allowed_tools" and isinstance(named, dict):
            allowed = named.get("tools")
            names = [_name(tool) for tool in allowed] if isinstance(allowed, list) else None
            mode = named.get("mode", "auto")
    if names is not None:
        body = {**body, "tools": only(body.get("tools"), names, _name), "tool_choice": mode}
    if mode in _FORCED and body.get("tools") and body.get("response_format"):
        # The engine would write the format and call nothing, and no answer could have both.
        body = {name: value for name, value in body.items() if name != "response_format"}
    return body


def _name(tool: Any) -> Any:
    function = tool.get("function") if isinstance(tool, dict) else None
    return function.get("name") if isinstance(function, dict) else None


def _with_arguments(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give every call in the conversation arguments that are JSON."""
    repaired_: list[dict[str, Any]] = []
    changed = False
    for message in messages:
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            whole = [_call(call) for call in calls]
            if whole != calls:
                message, changed = {**message, "tool_calls": whole}, True
        repaired_.append(message)
    return repaired_ if changed else messages


def _call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    return {**call, "function": with_arguments(function)} if isinstance(function, dict) else call
