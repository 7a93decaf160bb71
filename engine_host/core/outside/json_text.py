"""JSON from outside, read strictly: plain values, or a ValueError that says why not.

The standard library's reader raises RecursionError for a nested text, takes halves of letters, and needs
twice the memory.
"""

import math
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from engine_host.core.outside import files

_MOST = (1 << 63) - 1
# Each token of a stream may be read here, and a pattern took four times as long as the reader.
_ALIKE = bytes.maketrans(b"123456789E", b"000000000e")
_EXPONENTS = (b"0e000", b"0e+000")
_DIGITS_OF_FLOAT, _DIGITS_OF_WHOLE = b"0" * 309, b"0" * 19


def parse(content: bytes | str, most: int | None = None, *, finite: bool = True) -> Any:
    """Return the value in a text, which may have at most `most` commas. Raises ValueError for every other.

    Numbers are finite unless said otherwise (Python's own writer puts `Infinity` and `NaN` into configs of
    models); a whole number may be of any size.
    """
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    if most is not None and raw.count(b",") > most:
        raise ValueError("it holds more values than any such text")
    value = from_json(raw, allow_inf_nan=not finite)
    if finite and _may_hold_huge(raw, _DIGITS_OF_FLOAT) and not _finite(value):
        raise ValueError("a number in it is too large")
    return value


def parse_object(content: bytes | str, most: int | None = None, *, finite: bool = True) -> dict[str, Any]:
    """Return the object in a text. Raises ValueError for every other text."""
    value = parse(content, most, finite=finite)
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    return value


def parse_last_line(printed: bytes) -> dict[str, Any]:
    """Return the object in the last line that is not empty; a shell's start files may print before it.

    Raises ValueError for every other line.
    """
    return parse_object(next((line for line in reversed(printed.split(b"\n")) if line.strip()), b""))


def read_object(path: Path, most: int = 1 << 20) -> dict[str, Any]:
    """Return the object in a regular file of at most `most` bytes. Raises OSError, ValueError."""
    return parse_object(files.read(path, most))


def refuse_huge(content: bytes | str) -> None:
    """Raise ValueError for a text with a number that is not finite, or needs more than 64 bits.

    Who shows such a number, or computes with it, would fail far from here.
    """
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    if _may_hold_huge(raw, _DIGITS_OF_WHOLE) and not _bearable(from_json(raw, allow_inf_nan=False)):
        raise ValueError("a number in it is too large")


def _may_hold_huge(raw: bytes, digits: bytes) -> bool:
    """Return True where a number has so many digits, or an exponent of three; they may stand in a text."""
    alike = raw.translate(_ALIKE)
    return digits in alike or any(exponent in alike for exponent in _EXPONENTS)


def _bearable(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_bearable, value.values()))
    if isinstance(value, list):
        return all(map(_bearable, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or -_MOST <= value <= _MOST


def _finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, list):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
