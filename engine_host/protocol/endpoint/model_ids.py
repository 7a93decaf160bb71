"""Public model ids that every client can carry: in a path, after a provider's name, before a tag."""

import re
import unicodedata

LONGEST_ID = 100
_ALLOWED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OTHERS = re.compile(r"[^A-Za-z0-9._-]+")


def fault_of_id(name: str) -> str | None:
    """Return what some client breaks on in an id, as the end of a sentence; None for a good one."""
    if len(name) > LONGEST_ID:
        return f"it is longer than {LONGEST_ID} characters"
    if ":" in name or "/" in name:
        return "it holds a colon or a slash"
    if not _ALLOWED.fullmatch(name):
        return "it is letters, digits, dots, hyphens and underscores, and begins with a letter or a digit"
    return None


def suggested_id(name: str) -> str:
    """Return the nearest id that can be used; empty where nothing of the name is left."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return _OTHERS.sub("-", plain).strip("-._")[:LONGEST_ID].rstrip("-._")
