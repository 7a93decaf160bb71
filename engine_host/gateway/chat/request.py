"""Repairs of a chat request: those of every model's template, and those of the engines."""

from typing import Any

from engine_host.gateway.chat.choice import chosen
from engine_host.gateway.chat.offered import check_offered
from engine_host.gateway.chat.said import check_turns, plain
from engine_host.gateway.chat.tools import with_arguments
from engine_host.gateway.chat.turns import in_order


def repaired(body: dict[str, Any], *, for_llamacpp: bool, for_provider: bool = False) -> dict[str, Any]:
    """Return the request as its engine reads it, the same one where nothing has to change.

    Raises EndpointError 400 for a choice of a tool that is not there; a provider sees to that itself.
    """
    messages = body["messages"]
    if not for_provider:
        messages = plain(messages)
        body = chosen(body, for_llamacpp=for_llamacpp)
    messages = in_order(messages)
    if for_llamacpp:
        messages = _with_arguments(messages)
    return body if messages is body["messages"] else {**body, "messages": messages}


def check(body: dict[str, Any]) -> None:
    """Refuse turns and tools that are none; raises EndpointError 400 with the place."""
    check_turns(body["messages"])
    check_offered(body)


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
