"""Checks of requests that are about tokens; what passes is read by both engines."""

from collections.abc import Mapping
from typing import Any

from engine_host.gateway.error_answers import invalid
from engine_host.gateway.openai.bodies import check_chat

_LARGEST_TOKEN = 1 << 31
_FLAGS = (
    "add_special", "parse_special", "with_pieces", "add_special_tokens", "return_token_strs",
    "add_generation_prompt", "continue_final_message",
)  # fmt: skip


def check_tokenize(body: dict[str, Any]) -> None:
    """Refuse a request without a text, or with one that is none; raises EndpointError 400."""
    _check_flags(body)
    if "messages" in body:
        check_template(body)
        return
    name = "content" if "content" in body else "prompt"
    text = body.get(name)
    mixed = isinstance(text, list) and all(isinstance(one, str) or _is_token(one) for one in text)
    if not isinstance(text, str) and not (name == "content" and mixed):
        raise invalid(
            "content or prompt must be a text, or messages a list.", param=name, code="invalid_type"
        )


def check_detokenize(body: Mapping[str, Any]) -> None:
    """Refuse a request without token numbers; raises EndpointError 400."""
    tokens = body.get("tokens")
    if not isinstance(tokens, list) or not all(map(_is_token, tokens)):
        raise invalid("tokens must be a list of whole numbers from 0.", param="tokens", code="invalid_type")


def check_template(body: dict[str, Any]) -> None:
    """Refuse a request without messages; raises EndpointError 400."""
    _check_flags(body)
    check_chat(body)
    kwargs = body.get("chat_template_kwargs")
    if kwargs is not None and not isinstance(kwargs, dict):
        raise invalid(
            "chat_template_kwargs must be an object.", param="chat_template_kwargs", code="invalid_type"
        )


def _check_flags(body: Mapping[str, Any]) -> None:
    for name in _FLAGS:
        if body.get(name) is not None and not isinstance(body[name], bool):
            raise invalid(f"{name} must be true or false.", param=name, code="invalid_type")


def _is_token(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST_TOKEN
