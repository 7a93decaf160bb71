"""One file of the catalogue: read, checked against its schema, with a fault for everything that is wrong."""

import difflib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from engine_host.catalog.document import Document, KeyPath, dotted
from engine_host.catalog.yaml.file import read
from engine_host.core.errors import HostError
from engine_host.protocol.allowed import refusal
from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import (
    EngineEntry,
    EntryKind,
    HardwareEntry,
    ModelEntry,
    PresetEntry,
    PresetVariation,
    ProfileEntry,
)
from engine_host.protocol.language import tr
from engine_host.protocol.presets import CatalogFault, EntryOrigin

Entry = EngineEntry | HardwareEntry | ModelEntry | ProfileEntry | PresetEntry | PresetVariation
E = TypeVar("E", bound=BaseModel)
# So many faults of one file are told; who reads them begins with the first.
_MOST_FAULTS = 100

_TYPES: dict[EntryKind, type[Entry]] = {
    EntryKind.ENGINE: EngineEntry,
    EntryKind.HARDWARE: HardwareEntry,
    EntryKind.MODEL: ModelEntry,
    EntryKind.PROFILE: ProfileEntry,
    EntryKind.PRESET: PresetEntry,
}


@dataclass(frozen=True)
class Loaded(Generic[E]):
    """An entry with the file it is from; `file` is its name as people are shown it."""

    entry: E
    document: Document
    path: Path
    file: str
    origin: EntryOrigin

    @property
    def digest(self) -> str:
        """Changes when the text does."""
        return digest(self.document.text)

    def line(self, *path: str | int) -> int | None:
        """The line of a key."""
        return self.document.line(path)

    def fault(
        self, path: KeyPath, message: str, fix: str = "", severity: Severity = Severity.ERROR
    ) -> CatalogFault:
        """A fault at a key of this file."""
        return CatalogFault(
            severity=severity,
            file=self.file,
            line=self.document.line(path),
            key=dotted(path),
            message=message,
            fix=fix,
        )


def digest(text: str) -> str:
    """Return the first 16 hex digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def load(
    kind: EntryKind, path: Path, file: str, origin: EntryOrigin
) -> Loaded[Any] | tuple[CatalogFault, ...]:
    """The entry of a file, or what is wrong with it."""
    try:
        document = read(path, file)
    except HostError as error:
        return (fault_of(error),)
    return check(kind, document, path, file, origin)


def check(
    kind: EntryKind, document: Document, path: Path, file: str, origin: EntryOrigin
) -> Loaded[Any] | tuple[CatalogFault, ...]:
    """The entry in a document, or what is wrong with it."""
    schema: type[Entry] = _TYPES[kind]
    if kind is EntryKind.PRESET and "extends" in document.data:
        schema = PresetVariation
    try:
        # As JSON, strictly: "8" is no number and 8 is no text, but a list is a tuple.
        entry = schema.model_validate_json(json.dumps(document.data), strict=True, extra="forbid")
    except ValidationError as error:
        return tuple(_faults(error, schema, document, file))
    return Loaded(entry, document, path, file, origin)


def fault_of(error: HostError) -> CatalogFault:
    """An error of the YAML reader as a fault."""
    evidence = error.problem.evidence
    return CatalogFault(
        severity=Severity.ERROR,
        file=str(evidence.get("file", "")),
        line=evidence.get("line"),
        key=str(evidence.get("key", "")),
        message=str(evidence.get("says", error.problem.message)),
        fix=error.problem.fix.text if error.problem.fix else "",
    )


def _faults(
    error: ValidationError, schema: type[BaseModel], document: Document, file: str
) -> Iterator[CatalogFault]:
    seen: set[tuple[KeyPath, str]] = set()
    entries = error.errors(include_url=False)
    for entry in entries[:_MOST_FAULTS]:
        path = _in_document(entry["loc"], document)
        if entry["type"] == "extra_forbidden":
            message, fix = tr("there is no such key"), _nearest(entry["loc"], schema)
        elif entry["type"] == "missing":
            path = (*path, str(entry["loc"][-1]))
            message, fix = tr("this key is missing"), "Add it."
        else:
            message, fix = _plain(entry, schema), "Correct it."
        if (path, message) not in seen:
            seen.add((path, message))
            yield CatalogFault(
                severity=Severity.ERROR,
                file=file,
                line=document.line(path),
                key=dotted(path),
                message=message,
                fix=fix,
            )
    if (more := len(entries) - _MOST_FAULTS) > 0:
        message = tr("{more:,} more places are wrong", more=more)
        yield CatalogFault(severity=Severity.ERROR, file=file, message=message, fix="Begin with the first.")


def _in_document(loc: tuple[int | str, ...], document: Document) -> KeyPath:
    """The keys of a validator's location; it also names the members of unions, which no file has."""
    path: KeyPath = ()
    for part in loc:
        if (*path, part) in document.lines:
            path = (*path, part)
    return path


def _plain(entry: Any, schema: type[BaseModel]) -> str:
    message, value = refusal(entry, schema), entry["input"]
    if isinstance(value, dict | list):
        return message
    return tr(
        "{message} (it is {json})",
        message=message,
        json=json.dumps(value, ensure_ascii=False, default=str)[:80],
    )


@cache
def _schema(kind: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a kind of entries: making it takes longer than reading a file."""
    return kind.model_json_schema()


def _nearest(loc: tuple[int | str, ...], schema: type[BaseModel]) -> str:
    known = _known_keys(loc[:-1], _schema(schema))
    close = difflib.get_close_matches(str(loc[-1]), known, n=1)
    if close:
        return f"Did you mean {close[0]}?"
    return f"Known here: {', '.join(known)}." if known else "Remove it."


def _known_keys(loc: tuple[int | str, ...], root: dict[str, Any]) -> list[str]:
    """The keys that a schema has at a location."""
    nodes = [root]
    for part in loc:
        following: list[dict[str, Any]] = []
        for node in _options(nodes, root):
            if isinstance(part, int):
                following += [node["items"]] if isinstance(node.get("items"), dict) else []
            elif part in node.get("properties", {}):
                following.append(node["properties"][part])
            elif isinstance(node.get("additionalProperties"), dict):
                following.append(node["additionalProperties"])
        nodes = following or nodes
    return sorted({name for node in _options(nodes, root) for name in node.get("properties", {})})


def _options(nodes: list[dict[str, Any]], root: dict[str, Any]) -> list[dict[str, Any]]:
    """The schemas behind references and unions."""
    found: list[dict[str, Any]] = []
    for node in nodes:
        if "$ref" in node:
            found += _options([root["$defs"][node["$ref"].rsplit("/", 1)[-1]]], root)
        elif "anyOf" in node:
            found += _options(node["anyOf"], root)
        else:
            found.append(node)
    return found
