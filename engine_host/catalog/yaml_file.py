"""YAML as the catalogue takes it: one document of plain values, each with the line it stands on.

Scalars are read as YAML 1.2 has them (`no` and `1_0` are words), a key that comes twice is an error, and
anchors, aliases and tags are refused: a preset from somebody else may not do more than hold values.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason

MAX_BYTES = 1 << 20
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
    place = where if line is None else f"{where}, line {line}"
    return HostError(
        Reason.PRESET_INVALID,
        f"{place}: {f'{key}: ' if key else ''}{says}.",
        fix=fix or "Correct that line.",
        evidence={"file": where, "line": line, "key": key, "says": says},
    )


def read(path: Path, where: str) -> Document:
    """The document of a file. Raises HostError(preset_invalid)."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise invalid(
            where, None, "", f"it cannot be read: {error.strerror}", "Make the file readable for you."
        ) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise invalid(where, line, "", "it is not UTF-8 text", "Save it as UTF-8.") from error
    return parse(text, where)


def parse(text: str, where: str) -> Document:
    """The document in a text. Raises HostError(preset_invalid)."""
    if len(text.encode()) > MAX_BYTES:
        raise invalid(where, None, "", "it is larger than any such file", "Choose the right file.")
    # The library takes a tenth of a second to import, for which no start of the host waits.
    from engine_host.catalog.yaml_nodes import parse_nodes

    return parse_nodes(text, where)


def dump(data: Mapping[str, Any]) -> str:
    """Return values as YAML in our own form, which `parse` reads back as the same values."""
    from engine_host.catalog.yaml_nodes import round_trip

    written = io.StringIO()
    round_trip().dump(dict(data), written)
    return written.getvalue()


def dotted(path: KeyPath) -> str:
    """A path as people write it: `settings.vllm.context`, `card.evidence[0].pin`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
