"""The bytes of a file of settings as text and back: its mark, its ends of lines and its format kept."""

import json
from collections.abc import Collection
from enum import StrEnum
from importlib import import_module
from types import ModuleType
from typing import Any

from engine_host.connect.formats.tree import FormatError, merged, same

_MARK = b"\xef\xbb\xbf"


class Format(StrEnum):
    """A format of settings; JSON is read with comments."""

    JSON = "json"
    TOML = "toml"
    YAML = "yaml"


_MODULES = {Format.JSON: "jsonc", Format.TOML: "toml", Format.YAML: "yaml"}


def value_of(content: bytes, kind: Format) -> Any:
    """Return what a file says; None for an empty one. Raises FormatError."""
    return _reader(kind).read(_decoded(content)[0])


def changed(content: bytes, kind: Format, want: Any, unless_set: Collection[str] = ()) -> bytes:
    """Return the file with what is wanted in it, and nothing else changed.

    Raises FormatError, also when the new text would say anything but that.
    """
    text, mark, windows = _decoded(content)
    expected = merged(_reader(kind).read(text), want, unless_set)
    new: str = _reader(kind).changed(text, want, unless_set)
    if not same(_reader(kind).read(new), expected):
        raise FormatError("it is written in a way that only you can change safely")
    return mark + (new.replace("\n", "\r\n") if windows else new).encode()


def written(kind: Format, want: Any) -> str:
    """Return what is wanted as a file of its own, to be read and copied by a person."""
    if kind is Format.JSON:
        return json.dumps(want, indent=2, ensure_ascii=False)
    text: str = _reader(kind).changed("", want)
    return text.rstrip("\n")


def _reader(kind: Format) -> ModuleType:
    """Return the module of a format; YAML's costs a fifth of a second, so none is imported before."""
    return import_module(f"engine_host.connect.formats.{_MODULES[kind]}")


def _decoded(content: bytes) -> tuple[str, bytes, bool]:
    """Return the text with plain ends of lines, the mark in front, and True for lines as in Windows."""
    mark = _MARK if content.startswith(_MARK) else b""
    body = content[len(mark) :]
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError("it is no text in UTF-8") from error
    if "\0" in text:
        raise FormatError("it holds a NUL")
    ends = text.count("\r\n")
    windows = bool(ends) and ends == text.count("\n") == text.count("\r")
    return text.replace("\r\n", "\n") if windows else text, mark, windows
