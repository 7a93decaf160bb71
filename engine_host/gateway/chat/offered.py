"""Refuse tools and choices of a tool that engines take for something else, or leave out without a word."""

from typing import Any

from engine_host.gateway.error_answers import EndpointError, invalid, wrong_type
from engine_host.protocol.errors import Reason

_CHOICES = ("none", "auto", "required", "any")
_LONGEST_SHOWN = 40


def check_offered(body: dict[str, Any]) -> None:
    """Check the tools of a chat and which of them may be called; raises EndpointError 400 with the place."""
    for place, tool in enumerate(body.get("tools") or ()):
        where = f"tools[{place}]"
        kind = tool.get("type", "function") if isinstance(tool, dict) else None
        if not isinstance(kind, str):
            raise wrong_type(where, "an object with a type")
        if kind != "function":
            raise EndpointError(
                400,
                "unsupported",
                f"{where}.type is {kind[:_LONGEST_SHOWN]!r}; engines here call functions alone.",
                Reason.UNSUPPORTED,
                f"{where}.type",
            )
        check_name(tool.get("function"), f"{where}.function")
    check_choice(body.get("tool_choice"))


def check_choice(choice: Any, *, flat: bool = False) -> None:
    """Refuse a choice that is none; `flat`: one of a function has its name at its top."""
    if isinstance(choice, dict):
        kind = choice.get("type")
        if not isinstance(kind, str):
            raise wrong_type("tool_choice", "an object with a type")
        if kind == "function":
            check_name(
                choice if flat else choice.get("function"), "tool_choice" + ("" if flat else ".function")
            )
    elif choice is not None and choice not in _CHOICES:
        raise invalid(
            f"tool_choice must be none, auto, required, or an object that names a tool; it is "
            f"{str(choice)[:_LONGEST_SHOWN]!r}.",
            param="tool_choice",
        )


def check_name(named: Any, param: str) -> None:
    """Refuse what has no name; raises EndpointError 400."""
    if not isinstance(named, dict):
        raise wrong_type(param, "an object with a name")
    if not isinstance(named.get("name"), str) or not named["name"]:
        raise wrong_type(f"{param}.name", "a text")
