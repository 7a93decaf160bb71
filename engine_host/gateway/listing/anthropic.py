"""`/v1/models` as Anthropic's clients read it: by pages, and without lists where they expect objects.

Source: platform.claude.com/docs/en/api/models.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import invalid

_PAGE, _LARGEST_PAGE = 20, 1000


def is_asked_for(headers: Mapping[str, str], query: Mapping[str, str]) -> bool:
    """Return True for a client of Anthropic's API; Claude Code's discovery sends the limit alone."""
    return "anthropic-version" in headers or "limit" in query


def model_entry(target: Target) -> dict[str, Any]:
    """Return one model."""
    return {
        "type": "model",
        "id": target.name,
        "display_name": target.name,
        "created_at": timestamp(target.created_at),
        "lifecycle": "active",
        "max_input_tokens": target.context,
        "max_tokens": target.context,
    }


def model_list(targets: Sequence[Target], query: Mapping[str, str]) -> dict[str, Any]:
    """Return one page of the models. Raises EndpointError(400) for a limit that is none."""
    limit = _limit(query.get("limit"))
    entries = [model_entry(target) for target in targets]
    ids = [entry["id"] for entry in entries]
    first, last = 0, len(entries)
    if (after := query.get("after_id")) in ids:
        first = ids.index(after) + 1
    if (before := query.get("before_id")) in ids:
        last = ids.index(before)
        first = max(first, last - limit)
    page = entries[first:last][:limit]
    return {
        "data": page,
        "has_more": first + len(page) < last if "before_id" not in query else first > 0,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
    }


def timestamp(seconds: float) -> str:
    """Return a time in the form of RFC 3339, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _limit(text: str | None) -> int:
    if text is None:
        return _PAGE
    # More digits than that are no number of models, and Python refuses to read very many.
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= _LARGEST_PAGE):
        raise invalid(f"limit must be a whole number from 1 to {_LARGEST_PAGE}.", param="limit")
    return int(text)
