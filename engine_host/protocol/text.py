"""Strings from outside that are written down for somebody else's parser, checked where they come in."""

import re
import unicodedata
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field

# Control characters, line and paragraph separators, halves of a pair: YAML, unit files, shells and terminals
# each end a line or a comment at some of them.
_BREAKS = {"Cc", "Zl", "Zp", "Cs"}
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


def first_break(text: str) -> str | None:
    """Return the first character that no parser carries through one line, or None."""
    return next((letter for letter in text if unicodedata.category(letter) in _BREAKS), None)


def _one_line(text: str) -> str:
    if (found := first_break(text)) is not None:
        raise ValueError(f"it holds {found!r}, and is one line of plain text")
    return text


def _paragraphs(text: str) -> str:
    _one_line(text.replace("\n", " "))
    return text


def _file_name(text: str) -> str:
    _one_line(text)
    parts = text.split("/")
    odd = any(part in ("", ".", "..") or part.startswith("~") for part in parts)
    if odd or "\\" in text or PurePosixPath(text).is_absolute():
        raise ValueError("it is a path below the model's folder, without .. and not absolute")
    return text


def _repository(text: str) -> str:
    if not _REPOSITORY.fullmatch(text) or ".." in text or "--" in text:
        raise ValueError("it is ORGANISATION/MODEL in letters, digits, dots, hyphens and underscores")
    return text


Text = Annotated[str, Field(min_length=1), AfterValidator(_paragraphs)]
"""Text for people, in one or several lines."""
Line = Annotated[str, Field(min_length=1), AfterValidator(_one_line)]
"""Text for people that stands in one line."""
FileName = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_file_name)]
"""A file below a folder that the reader chooses; never above it."""
Repository = Annotated[str, AfterValidator(_repository)]
"""A repository of Hugging Face: ORGANISATION/MODEL."""
