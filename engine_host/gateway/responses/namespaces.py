"""Tools in groups, as Codex sends those of its servers: llama.cpp passes over them without a word.

Each goes to the engine as `GROUP__NAME`, which is how vLLM does it too, and comes back with both.
"""

from typing import Any

_BETWEEN = "__"


def flat_tools(tools: list[Any]) -> list[Any]:
    """Return the tools with those of each group beside the others."""
    flat: list[Any] = []
    for tool in tools:
        members = _members(tool)
        flat += (
            [tool]
            if members is None
            else [{**one, "name": flat_name(tool["name"], one["name"])} for one in members]
        )
    return flat


def flat_name(group: str, name: str) -> str:
    """Return the name of a tool of a group as an engine knows it."""
    return f"{group}{_BETWEEN}{name}"


def flat_call(call: dict[str, Any]) -> dict[str, Any]:
    """Return a call in a conversation with the name that an engine knows."""
    group, name = call.get("namespace"), call.get("name")
    rest = {field: value for field, value in call.items() if field != "namespace"}
    return (
        {**rest, "name": flat_name(group, name)} if isinstance(group, str) and isinstance(name, str) else rest
    )


def groups(tools: Any) -> dict[str, tuple[str, str]]:
    """Return group and name of each tool in a group, by the name that an engine knows."""
    found: dict[str, tuple[str, str]] = {}
    for tool in tools if isinstance(tools, list) else ():
        for one in _members(tool) or ():
            found[flat_name(tool["name"], one["name"])] = (tool["name"], one["name"])
    return found


def _members(tool: Any) -> list[dict[str, Any]] | None:
    """The functions of a group; None for a tool that is none."""
    if not isinstance(tool, dict) or tool.get("type") != "namespace" or not isinstance(tool.get("name"), str):
        return None
    inner = tool.get("tools")
    return [
        one
        for one in (inner if isinstance(inner, list) else ())
        if isinstance(one, dict) and one.get("type") == "function" and isinstance(one.get("name"), str)
    ]
