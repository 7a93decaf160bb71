"""The files of a report as they are collected, and masked at the end; what is missing is named."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from engine_host.client.diagnostics.mask import Mask

MOST = 16 << 20
"""Letters that one file may have."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._/~-]+")


@dataclass(frozen=True)
class ReportFile:
    """One file of a report, as it will be in the zip."""

    name: str
    text: str

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        return self.text.encode("utf-8", "replace")


@dataclass(frozen=True)
class Missing:
    """A file that the report lacks, and why."""

    name: str
    why: str


class Collected:
    """Files and what is missing as they come in, masked once all is known that a mask has to know."""

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self._made: list[tuple[str, Callable[[], str]]] = []
        self._missing: list[Missing] = []

    def add_text(self, name: str, text: str) -> None:
        """Add a file of text."""
        self._made.append((name, lambda: self.mask.text(text)))

    def add_value(self, name: str, value: BaseModel | dict[str, Any] | list[Any]) -> None:
        """Add a file of JSON."""
        plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        self._made.append(
            (name, lambda: json.dumps(self.mask.value(plain), ensure_ascii=False, indent=2) + "\n")
        )

    def add_lines(self, name: str, values: Iterable[dict[str, Any]]) -> None:
        """Add a file with one JSON value a line; of more than a file may have, the last ones."""
        kept = list(values)
        self._made.append((name, lambda: self._lines(name, kept)))

    def lack(self, name: str, why: str) -> None:
        """Say that a file is missing."""
        self._missing.append(Missing(name, why))

    def masked(self) -> tuple[tuple[ReportFile, ...], tuple[Missing, ...]]:
        """Return the files, and what is missing, as anybody may read them."""
        files = []
        for name, make in self._made:
            text = make()
            if len(text) > MOST:
                self.lack(name, f"It has {len(text):,} letters, more than the {MOST:,} that a report takes.")
            else:
                files.append(ReportFile(self._name(name), text))
        missing = (Missing(self._name(one.name), self.mask.text(one.why)) for one in self._missing)
        return tuple(files), tuple(missing)

    def _lines(self, name: str, values: list[dict[str, Any]]) -> str:
        lines = [json.dumps(self.mask.value(one), ensure_ascii=False) + "\n" for one in values]
        kept, room = 0, MOST
        for line in reversed(lines):
            room -= len(line)
            if room < 0:
                self.lack(name, f"Its first {len(lines) - kept:,} lines are left out: it would be too long.")
                break
            kept += 1
        return "".join(lines[len(lines) - kept :])

    def _name(self, name: str) -> str:
        return _NOT_IN_NAMES.sub("_", self.mask.text(name))
