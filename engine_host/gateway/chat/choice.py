"""Say which tools of a chat may be called, in the one way that every engine reads.

llama.cpp takes a named `tool_choice` for `auto`, and lets a model write a call as text where none may be
made; vLLM answers that with nothing, refuses an empty list of tools, and does not know `allowed_tools`.
"""

from typing import Any

from engine_host.gateway import error_answers as faults
from engine_host.gateway.chat.tools import only
from engine_host.protocol.errors import Reason

_FORCED = ("required", "any")
_OLD_NAMES = {"functions": "tools", "function_call": "tool_choice"}
"""Fields of 2023 that no engine here reads any more, and what has taken their place."""


def chosen(body: dict[str, Any], *, for_llamacpp: bool) -> dict[str, Any]:
    """Keep the tools that may be called, and say whether one has to be; the same where that is so.

    Raises EndpointError 400 for a choice that cannot be kept.
    """
    for old, new in _OLD_NAMES.items():
        if body.get(old) not in (None, [], "none"):
            raise faults.EndpointError(
                400, "unsupported", f"{old} is not read any more. Use {new}.", Reason.UNSUPPORTED, old
            )
    choice = body.get("tool_choice")
    names, mode = _named(choice, for_llamacpp=for_llamacpp)
    if names is not None:
        body = {**body, "tools": only(body.get("tools"), names, name_of), "tool_choice": mode}
        if isinstance(choice, dict) and choice.get("type") == "function":
            # One call of it is meant; the engine would let a model call it again and again.
            body = {**body, "parallel_tool_calls": False}
    if mode in _FORCED and not body.get("tools"):
        raise faults.invalid(
            f"tool_choice is {mode}, and the request has no tools.", param="tool_choice", code="invalid_value"
        )
    if mode == "none" or not body.get("tools"):
        # Of no tools a client may leave the choice to the model all the same; vLLM refuses that.
        return _without(body, "tools", "tool_choice", "parallel_tool_calls")
    if for_llamacpp and mode in _FORCED:
        # The engine would write the format and call nothing, and no answer could have both.
        return _without(body, "response_format", "json_schema", "grammar")
    return body


def name_of(tool: Any) -> Any:
    """Return the name of a tool, None where it has none."""
    function = tool.get("function") if isinstance(tool, dict) else None
    return function.get("name") if isinstance(function, dict) else None


def _named(choice: Any, *, for_llamacpp: bool) -> tuple[list[Any] | None, Any]:
    """Return the names of the tools that alone may be called, None for all, and what is to be done."""
    if not isinstance(choice, dict):
        return None, choice
    kind = choice.get("type")
    told = choice.get(kind) if isinstance(kind, str) else None
    if kind == "function" and isinstance(told, dict) and for_llamacpp:
        return [told.get("name")], "required"
    if kind == "allowed_tools" and isinstance(told, dict) and isinstance(told.get("tools"), list):
        return [name_of(tool) for tool in told["tools"]], told.get("mode", "auto")
    return None, choice


def _without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    if not any(name in body for name in names):
        return body
    return {name: value for name, value in body.items() if name not in names}
