"""Say with the tools of a request alone which of them may be called, for engines that read no names.

llama.cpp takes a named `tool_choice` for `auto`, and one that names no tool as well.
"""

import json
from collections.abc import Collection
from typing import Any

from engine_host.gateway import error_answers as faults

_SHOWN = 20
_LONGEST_NAME = 100


def only(tools: Any, names: Collection[Any], name_of: Any) -> list[Any]:
    """Return the tools with these names; raises EndpointError 400 for a name that none has."""
    known = {}
    for tool in tools if isinstance(tools, list) else ():
        name = name_of(tool)
        if isinstance(name, str):
            known[name] = tool
    wrong = [name for name in names if not isinstance(name, str) or name not in known]
    if wrong:
        there = ", ".join(name[:_LONGEST_NAME] for name in list(known)[:_SHOWN]) or "none"
        raise faults.invalid(
            f"tool_choice names {str(wrong[0])[:_LONGEST_NAME]!r}, which is not among the tools. "
            f"The tools of this request: {there}.",
            param="tool_choice",
        )
    return [known[name] for name in names]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _wrapped(text: str) -> str:
    """Return as an object what a model wrote and is no JSON: each further turn holds it."""
    return json.dumps({"arguments": text}, ensure_ascii=False) if text.strip() else "{}"


def with_arguments(call: dict[str, Any], field: str = "arguments") -> dict[str, Any]:
    """Return a call whose arguments are JSON: some models write none, or nothing at all."""
    arguments = call.get(field)
    if isinstance(arguments, str):
        return call if _is_json(arguments) else {**call, field: _wrapped(arguments)}
    if isinstance(arguments, dict):
        return {**call, field: json.dumps(arguments)}
    return call
