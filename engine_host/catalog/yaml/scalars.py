"""The scalars of the catalogue's YAML that are no words, and how much a file may hold."""

import math
import re
from typing import Any

DEEPEST = 32
# Ten times as many as an exported preset has with all that it needs.
MOST_NODES = 20_000
TAG = "tag:yaml.org,2002:"
TOO_LARGE = object()
_LONGEST_NUMBER = 20
# Fewer than YAML 1.2 has: `0x10`, `.inf` and dates are words.
_SCALARS = (
    ("null", re.compile(r"(?:~|null|Null|NULL|)$"), ("~", "n", "N", "")),
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    ("int", re.compile(r"[-+]?[0-9]+$"), "-+0123456789"),
    ("float", re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"), "-+.0123456789"),
)
BY_FIRST = {
    first: [(TAG + tag, pattern) for tag, pattern, begins in _SCALARS if first in begins]
    for first in {first for _, _, begins in _SCALARS for first in begins}
}


def tag_of(text: str) -> str:
    """Return the tag of a scalar that stands without quotes."""
    for tag, pattern in BY_FIRST.get(text[:1], ()):
        if pattern.match(text):
            return tag
    return f"{TAG}str"


def value_of(text: str, tag: str) -> Any:
    """Return the value of a scalar with its tag, TOO_LARGE for a number that no such file has."""
    kind = tag.removeprefix(TAG)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind not in {"int", "float"}:
        return text
    number = float(text)
    if not math.isfinite(number) or (kind == "int" and len(text) > _LONGEST_NUMBER):
        return TOO_LARGE
    return int(text) if kind == "int" else number
