"""Refuse a request in Anthropic's form that Anthropic refuses, and an engine would read as something else.

llama.cpp leaves out blocks, choices and forms that it does not know without a word.
"""

from collections.abc import Iterable
from typing import Any

from engine_host.gateway.chat.said import check_content, check_part, check_role
from engine_host.gateway.error_answers import invalid, wrong_kind, wrong_type

_ROLES = ("user", "assistant", "system")
"""Claude Code has messages of the system among the others."""
_TEXTS = {"text": "text"}
_BLOCKS = (
    "image", "document", "search_result", "thinking", "redacted_thinking", "tool_use", "tool_result",
    "server_tool_use", "mcp_tool_use", "container_upload", "compaction", "tool_reference",
)  # fmt: skip
RESULTS = "_tool_result"
"""The end of the types of what tools of Anthropic's servers answered, of which there are more each year."""
_CHOICES = ("auto", "any", "tool", "none")
_LISTED = {"tool_use": ("id", "name"), "tool_result": ("tool_use_id",)}


def check(body: dict[str, Any]) -> None:
    """Refuse what is none; raises EndpointError 400 with the place."""
    for place, message in enumerate(body["messages"]):
        where = f"messages[{place}]"
        check_role(message["role"], f"{where}.role", (*_ROLES, "developer"))
        content = message.get("content")
        check_content(
            content, f"{where}.content", may_be_empty=message["role"] == "assistant" and content == []
        )
        for number, block in enumerate(content if isinstance(content, list) else ()):
            _check_block(block, f"{where}.content[{number}]")
    system = body.get("system")
    if system is not None:
        check_content(system, "system", may_be_empty=True)
        for number, block in enumerate(system if isinstance(system, list) else ()):
            check_part(block, f"system[{number}]", _TEXTS, ())
    stop = body.get("stop_sequences")
    if stop is not None and not (isinstance(stop, list) and all(isinstance(one, str) for one in stop)):
        raise wrong_type("stop_sequences", "a list of texts")
    _check_tools(body.get("tools"))
    _check_choice(body)
    _check_format(body)


def _check_block(block: Any, where: str) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if isinstance(kind, str) and kind.endswith(RESULTS):
        return
    check_part(block, where, _TEXTS, _BLOCKS)
    for name in _LISTED.get(str(kind), ()):
        if not isinstance(block.get(name), str):
            raise wrong_type(f"{where}.{name}", "a text")


def _check_tools(tools: Iterable[Any] | None) -> None:
    names: set[str] = set()
    for place, tool in enumerate(tools or ()):
        name = tool.get("name") if isinstance(tool, dict) else None
        # A set of tools of a server has a type and no name.
        if name is None and isinstance(tool, dict) and tool.get("type") not in (None, "custom"):
            continue
        if not isinstance(name, str) or not name:
            raise wrong_type(f"tools[{place}].name", "a text")
        if name in names:
            raise invalid(
                f"tools[{place}].name is {name[:100]!r}, as another tool's of this request: names of tools "
                "must be unique.",
                param=f"tools[{place}].name",
            )
        names.add(name)


def _check_choice(body: dict[str, Any]) -> None:
    choice = body.get("tool_choice")
    if choice is None:
        return
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind not in _CHOICES:
        raise wrong_kind("tool_choice", _CHOICES)
    if kind == "tool" and not isinstance(choice.get("name"), str):
        raise wrong_type("tool_choice.name", "a text")
    if kind in ("any", "tool") and not body.get("tools"):
        raise invalid(f"tool_choice is {kind}, and the request has no tools.", param="tool_choice")


def _check_format(body: dict[str, Any]) -> None:
    config = body.get("output_config")
    if config is not None and not isinstance(config, dict):
        raise wrong_type("output_config", "an object")
    for param, wanted in (
        ("output_config.format", (config or {}).get("format")),
        ("output_format", body.get("output_format")),
    ):
        if wanted is None:
            continue
        if not isinstance(wanted, dict) or wanted.get("type") != "json_schema":
            raise invalid(f"{param} must be an object whose type is json_schema.", param=param)
        if not isinstance(wanted.get("schema"), dict):
            raise wrong_type(f"{param}.schema", "an object")
    if body.get("thinking") is not None and not isinstance(body["thinking"], dict):
        raise wrong_type("thinking", "an object")
