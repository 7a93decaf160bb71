"""Checks of Ollama's requests, before anything of them is translated."""

from typing import Any

from engine_host.gateway.error_answers import invalid
from engine_host.gateway.openai.bounds import check_bounds

KINDS: dict[str, tuple[type, ...]] = {
    "options": (dict,),
    "system": (str,),
    "raw": (bool,),
    "images": (list,),
    "format": (str, dict),
    "think": (bool, str),
    "keep_alive": (str, int, float),
    "truncate": (bool,),
}
_NAMES = {
    dict: "an object", str: "a text", bool: "true or false", list: "a list", int: "a number",
    float: "a number",
}  # fmt: skip


def check_chat(body: dict[str, Any]) -> None:
    """Refuse a chat whose messages are none; raises EndpointError 400. Without messages it only loads."""
    _check_kinds(body)
    messages = body.get("messages")
    if messages is None:
        return
    if not isinstance(messages, list):
        raise invalid("messages must be a list.", param="messages", code="invalid_type")
    for place, message in enumerate(messages):
        _check_message(f"messages[{place}]", message)


def check_generate(body: dict[str, Any]) -> None:
    """Refuse a prompt that is no text; raises EndpointError 400. Without a prompt it only loads."""
    _check_kinds(body)
    if not isinstance(body.get("prompt", ""), str | None):
        raise invalid("prompt must be a text.", param="prompt", code="invalid_type")
    _check_images("images", body.get("images"))


def check_embed(body: dict[str, Any]) -> None:
    """Refuse a request without texts to embed; raises EndpointError 400."""
    _check_kinds(body)
    name = "input" if "input" in body else "prompt"
    value = body.get(name)
    texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
    if not isinstance(value, str) and not (name == "input" and texts):
        raise invalid(f"{name} must be a text or a list of texts.", param=name, code="invalid_type")


def _check_message(place: str, message: object) -> None:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise invalid(f"{place} must be an object with a role.", param=place, code="invalid_type")
    for name in ("content", "thinking", "tool_name", "name"):
        if not isinstance(message.get(name), str | None):
            raise invalid(f"{place}.{name} must be a text.", param=f"{place}.{name}", code="invalid_type")
    _check_images(f"{place}.images", message.get("images"))
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list) or not all(_is_call(call) for call in calls):
        place = f"{place}.tool_calls"
        raise invalid(f"{place} must be a list of calls with a name.", param=place, code="invalid_type")


def _is_call(call: object) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _check_images(place: str, images: object) -> None:
    if images is None:
        return
    if not isinstance(images, list) or not all(isinstance(one, str) for one in images):
        raise invalid(f"{place} must be a list of texts in base64.", param=place, code="invalid_type")


def _check_kinds(body: dict[str, Any]) -> None:
    for name, kinds in KINDS.items():
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(dict.fromkeys(_NAMES[kind] for kind in kinds))
            raise invalid(f"{name} must be {wanted}.", param=name, code="invalid_type")
    check_bounds(body.get("options") or {}, "options.")
