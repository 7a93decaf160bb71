"""YAML as the catalogue takes it: one document of plain values, each with the line it stands on.

Scalars are read as YAML 1.2 has them (`no` and `1_0` are words), a key that comes twice is an error, and
anchors, aliases and tags are refused: a preset from somebody else may not do more than hold values.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason

MAX_BYTES = 1 << 20
_DEEPEST = 32
_LONGEST_NUMBER = 20
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says; `lines` has the line of every key and list item, by its path."""

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
    lines: dict[KeyPath, int] = {}
    try:
        data = _Reader(yaml.parse(text, Loader=yaml.SafeLoader), lines, where).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        says = str(error.problem or error.context or "it is not YAML")
        raise invalid(where, None if mark is None else mark.line + 1, "", says) from error
    except yaml.YAMLError as error:
        raise invalid(where, None, "", f"it is not YAML: {error}") from error
    return Document(text, data, lines)


def dump(data: Mapping[str, Any]) -> str:
    """Values as YAML in our own form, which `parse` reads back as the same values."""
    text: str = yaml.dump(
        dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False
    )
    return text


def dotted(path: KeyPath) -> str:
    """A path as people write it: `settings.vllm.context`, `card.evidence[0].pin`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


class _Reader:
    """Builds the values of one document from the parser's events."""

    def __init__(self, events: Iterator[Any], lines: dict[KeyPath, int], where: str) -> None:
        self._events = events
        self._lines = lines
        self._where = where

    def document(self) -> dict[str, Any]:
        while not isinstance(event := next(self._events), yaml.NodeEvent):
            if isinstance(event, yaml.StreamEndEvent):
                raise invalid(self._where, 1, "", "it is empty")
        if not isinstance(event, yaml.MappingStartEvent):
            raise invalid(self._where, _line(event), "", "it must be keys and values")
        table = self._table(event, ())
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                raise invalid(self._where, _line(event), "", "a second document begins here", "Remove it.")
        return table

    def _value(self, event: Any, path: KeyPath) -> Any:
        if len(path) > _DEEPEST:
            raise self._wrong(event, path[:3], "it is nested too deeply")
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise self._wrong(event, path, "anchors and aliases are not allowed")
        if event.tag is not None:
            raise self._wrong(event, path, "tags are not allowed")
        if isinstance(event, yaml.MappingStartEvent):
            return self._table(event, path)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Any] = []
            while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
                self._lines[(*path, len(items))] = _line(event)
                items.append(self._value(event, (*path, len(items))))
            return items
        return self._scalar(event, path)

    def _table(self, event: Any, path: KeyPath) -> dict[str, Any]:
        table: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self._wrong(event, path, "a key must be a word")
            key = str(event.value)
            if key in table:
                raise self._wrong(event, (*path, key), "this key is there already", "Remove one of them.")
            self._lines[(*path, key)] = _line(event)
            table[key] = self._value(next(self._events), (*path, key))
        return table

    def _scalar(self, event: Any, path: KeyPath) -> Any:
        text = str(event.value)
        if event.style is not None:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INT.fullmatch(text):
            if len(text) > _LONGEST_NUMBER:
                raise self._wrong(event, path, "the number is too large")
            return int(text)
        if not _FLOAT.fullmatch(text):
            return text
        number = float(text)
        if not math.isfinite(number):
            raise self._wrong(event, path, "the number is too large")
        return number

    def _wrong(self, event: Any, path: KeyPath, says: str, fix: str = "") -> HostError:
        return invalid(self._where, _line(event), dotted(path), says, fix)


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


_Dumper = type("_Dumper", (yaml.SafeDumper,), {"ignore_aliases": lambda _self, _data: True})


def _quoted(dumper: Any, text: str) -> Any:
    plain = text not in _WORDS and not _INT.fullmatch(text) and not _FLOAT.fullmatch(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else "'")


yaml.add_representer(str, _quoted, Dumper=_Dumper)
