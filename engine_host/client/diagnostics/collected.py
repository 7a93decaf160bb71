"""The files of a report as they are collected: each is masked on its way in, and what is missing is named."""

import json
import re
from collections.abc import Iterable
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
    """Files and what is missing; nothing comes in but through the mask."""

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.files: list[ReportFile] = []
        self.missing: list[Missing] = []

    def add_text(self, name: str, text: str) -> None:
        """Add a file of text."""
        self._add(name, self.mask.text(text))

    def add_value(self, name: str, value: BaseModel | dict[str, Any] | list[Any]) -> None:
        """Add a file of JSON."""
        self._add(name, json.dumps(self._plain(value), ensure_ascii=False, indent=2) + "\n")

    def add_lines(self, name: str, values: Iterable[dict[str, Any]]) -> None:
        """Add a file with one JSON value a line; of more than a file may have, the last ones."""
        lines = [json.dumps(self._plain(one), ensure_ascii=False) + "\n" for one in values]
        kept, room = 0, MOST
        for line in reversed(lines):
            room -= len(line)
            if room < 0:
                self.lack(name, f"Its first {len(lines) - kept:,} lines are left out: it would be too long.")
                break
            kept += 1
        self._add(name, "".join(lines[len(lines) - kept :]))

    def lack(self, name: str, why: str) -> None:
        """Say that a file is missing."""
        self.missing.append(Missing(self._name(name), self.mask.text(why)))

    def _plain(self, value: Any) -> Any:
        return self.mask.value(value.model_dump(mode="json") if isinstance(value, BaseModel) else value)

    def _add(self, name: str, text: str) -> None:
        if len(text) > MOST:
            self.lack(name, f"It has {len(text):,} letters, more than the {MOST:,} that a report takes.")
            return
        self.files.append(ReportFile(self._name(name), text))

    def _name(self, name: str) -> str:
        return _NOT_IN_NAMES.sub("_", self.mask.text(name))
