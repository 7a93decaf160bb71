"""Public model ids that every client can carry: in a path, after a provider's name, before a tag."""

import re
import unicodedata

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason

LONGEST = 100
_ALLOWED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OTHERS = re.compile(r"[^A-Za-z0-9._-]+")


def check_id(name: str) -> None:
    """Refuse an id that some client breaks on. Raises HostError(setting_invalid) with one to take instead."""
    wrong = _wrong(name)
    if wrong is None:
        return
    better = suggested(name)
    raise HostError(
        Reason.SETTING_INVALID,
        f"{name[:LONGEST]!r} is no id for a route: {wrong}.",
        cause="Clients take a colon for a tag, a slash for a provider, and put ids into paths and headers.",
        fix=Fix(text=f"Call it {better}.") if better else "Use letters, digits, dots, hyphens, underscores.",
        evidence={"id": name[:LONGEST], "suggested": better},
    )


def suggested(name: str) -> str:
    """Return the nearest id that can be used; empty where nothing of the name is left."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return _OTHERS.sub("-", plain).strip("-._")[:LONGEST].rstrip("-._")


def _wrong(name: str) -> str | None:
    if len(name) > LONGEST:
        return f"it is longer than {LONGEST} characters"
    if ":" in name or "/" in name:
        return "it holds a colon or a slash"
    if not _ALLOWED.fullmatch(name):
        return "it is letters, digits, dots, hyphens and underscores, and begins with a letter or a digit"
    return None
