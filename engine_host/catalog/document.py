"""A file of the catalogue as values with their lines, and the error for one that cannot be used."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file; `lines` has the line of every key and list item, by its path."""

    text: str
    data: dict[str, Any]
    lines: Mapping[KeyPath, int]

    def line(self, path: KeyPath) -> int | None:
        """The line of a key, or of the nearest one around it that is there."""
        for end in range(len(path), 0, -1):
            if (found := self.lines.get(path[:end])) is not None:
                return found
        return None


def invalid(where: str, line: int | None, key: str, says: str, fix: str = "") -> HostError:
    """The error for a file that cannot be used; `where` names the file."""
    place = where if line is None else tr("{where}, line {line}", where=where, line=line)
    return HostError(
        Reason.PRESET_INVALID,
        tr("{place}: {what}{says}.", place=place, what=f"{key}: " if key else "", says=says),
        fix=fix or "Correct that line.",
        evidence={"file": where, "line": line, "key": key, "says": says},
    )


def dotted(path: KeyPath) -> str:
    """A path as people write it: `settings.vllm.context`, `card.evidence[0].pin`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
