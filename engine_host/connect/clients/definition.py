"""One client of the endpoint: how it is found, what it is told, and in which files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from engine_host.connect.facts import ANY_KEY, KEY_VARIABLE, Facts
from engine_host.connect.formats.text import Format
from engine_host.connect.formats.tree import Place
from engine_host.connect.machine import Machine
from engine_host.protocol.endpoint.connect import ClientKind

TITLE = "SNDR Control Center"
PROVIDER = "sndr"
"""The name under which the endpoint stands among a client's providers."""


class Dialect(StrEnum):
    """The form of the endpoint that a client speaks."""

    CHAT = "chat completions"
    RESPONSES = "responses"
    MESSAGES = "messages"


@dataclass(frozen=True)
class ConfigFile:
    """A file of a client's settings.

    `wanted` is what is put into it, `address` where in it the endpoint's address stands; keys at the top in
    `unless_set` are left alone where the person has set them.
    """

    format: Format
    path: Callable[[Machine], Path]
    wanted: Callable[[Facts], Any]
    address: Place = ()
    unless_set: frozenset[str] = frozenset()


def _no_fields(_facts: Facts) -> Mapping[str, str]:
    return {}


def _no_lines(_facts: Facts) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class Snippet:
    """A text to copy: its language, and where it goes."""

    place: str
    language: str
    text: str


def _no_snippets(_facts: Facts) -> tuple[Snippet, ...]:
    return ()


@dataclass(frozen=True)
class Client:
    """A client; `name` is what the command line calls it.

    `programs` are looked for in PATH; `folders` and `patterns` (below the home folder) show by being there
    that it is installed. `fields` are those of a form of its own, `first_request` the tokens of the first
    request that was measured. `impossible` says why it cannot work, where it cannot.
    """

    name: str
    title: str
    kind: ClientKind
    dialect: Dialect = Dialect.CHAT
    programs: tuple[str, ...] = ()
    folders: Callable[[Machine], tuple[Path, ...]] = field(default=lambda _machine: ())
    patterns: tuple[str, ...] = ()
    files: tuple[ConfigFile, ...] = ()
    fields: Callable[[Facts], Mapping[str, str]] = _no_fields
    snippets: Callable[[Facts], tuple[Snippet, ...]] = _no_snippets
    notes: Callable[[Facts], tuple[str, ...]] = _no_lines
    first_request: int | None = None
    impossible: str = ""


def key_or_variable(facts: Facts) -> str:
    """Return a key for a field: any one where none is needed, else the variable that holds it."""
    return f"${KEY_VARIABLE}" if facts.key_needed else ANY_KEY
