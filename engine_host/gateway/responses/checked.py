"""Refuse a request in the Responses form that OpenAI refuses, with the place: engines say no more than that
something is wrong, vLLM with some two hundred sentences about its own classes."""

from typing import Any

from engine_host.gateway.chat.offered import check_choice, check_name
from engine_host.gateway.chat.said import check_content, check_part, check_role
from engine_host.gateway.error_answers import invalid, wrong_kind, wrong_type

_ROLES = ("user", "assistant", "system", "developer")
_TEXTS = {
    "input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal", "summary_text": "text",
    "reasoning_text": "text",
}  # fmt: skip
_OTHERS = ("input_image", "input_file", "input_audio", "computer_screenshot", "encrypted_content")
_FORMATS = ("text", "json_object", "json_schema")
_OBJECTS = ("text", "reasoning")


def check(body: dict[str, Any]) -> None:
    """Refuse what is none; raises EndpointError 400 with the place."""
    given = body["input"]
    if given == []:
        raise invalid("input must hold at least one item.", param="input")
    for place, item in enumerate(given if isinstance(given, list) else ()):
        _check_item(item, f"input[{place}]")
    if not isinstance(body.get("instructions"), str | list | None):
        raise wrong_type("instructions", "a text")
    for name in _OBJECTS:
        if not isinstance(body.get(name), dict | None):
            raise wrong_type(name, "an object")
    _check_format((body.get("text") or {}).get("format"))
    for place, tool in enumerate(body.get("tools") or ()):
        if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
            raise wrong_type(f"tools[{place}]", "an object with a type")
        if tool["type"] in ("function", "custom"):
            check_name(tool, f"tools[{place}]")
    check_choice(body.get("tool_choice"), flat=True)


def _check_item(item: Any, where: str) -> None:
    if not isinstance(item, dict) or not (item.get("type") or item.get("role")):
        raise wrong_type(where, "an object with a type or a role")
    kind = item.get("type", "message")
    if kind == "message":
        check_role(item.get("role"), f"{where}.role", _ROLES)
        content = item.get("content")
        check_content(content, f"{where}.content", may_be_empty=item["role"] == "assistant")
        for number, part in enumerate(content if isinstance(content, list) else ()):
            check_part(part, f"{where}.content[{number}]", _TEXTS, _OTHERS)
    elif kind in ("function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output"):
        if not isinstance(item.get("call_id"), str):
            raise wrong_type(f"{where}.call_id", "a text")
        if not kind.endswith("_output"):
            check_name(item, where)


def _check_format(wanted: Any) -> None:
    if wanted is None:
        return
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind not in _FORMATS:
        raise wrong_kind("text.format", _FORMATS)
    if kind == "json_schema" and not isinstance(wanted.get("schema"), dict):
        raise wrong_type("text.format.schema", "an object")
