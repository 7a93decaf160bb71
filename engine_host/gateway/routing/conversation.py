"""The conversation that a request belongs to, as far as its client says, so that one engine keeps it."""

from collections.abc import Mapping
from typing import Any

_HEADERS = ("x-claude-code-session-id", "x-session-id", "session_id")
_FIELD = "prompt_cache_key"
_LONGEST = 200


def conversation_of(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """Return the client's own name for a conversation; empty where it gives none."""
    for name in _HEADERS:
        if headers.get(name):
            return headers[name][:_LONGEST]
    told = body.get(_FIELD)
    return told[:_LONGEST] if isinstance(told, str) else ""
