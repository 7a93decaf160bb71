"""The conversation that a request belongs to, as agents name it: in headers, or in the body."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Claude Code; opencode; Codex; others that keep to one of these.
_HEADERS = ("x-claude-code-session-id", "x-session-id", "session_id", "session-id", "x-session-affinity")
_FIELDS = ("prompt_cache_key", "session_id", "conversation_id")
_MOST = 512
_SESSION = re.compile(r"session_([0-9A-Za-z-]{8,})\Z")
_RANDOM = re.compile(r"\A[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z")


@dataclass(frozen=True)
class Named:
    """A conversation's name as the client wrote it, and the place where it stood."""

    value: str
    source: str

    @property
    def label(self) -> str:
        """The beginning of a random name; of any other nothing, for it may tell of a person."""
        return self.value[:8].lower() if _RANDOM.match(self.value) else ""


def named_conversation(headers: Mapping[str, str], body: Mapping[str, Any]) -> Named | None:
    """Return the conversation that a client names; None where it names none."""
    for header in _HEADERS:
        if value := headers.get(header, "").strip():
            return Named(value[:_MOST], header)
    for field in _FIELDS:
        told = body.get(field)
        if isinstance(told, str) and told.strip():
            return Named(told.strip()[:_MOST], field)
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    if isinstance(user, str) and user.strip():
        # Claude Code puts its session behind the account; the account alone names no conversation.
        session = _SESSION.search(user.strip())
        return Named(session[1][:_MOST] if session else user.strip()[:_MOST], "metadata.user_id")
    return None
