"""Messages with their values in them.

`{name}` is a value, `{size:.1f}` one with a form as Python's own, `{bytes:gib}` and `{bytes:mib}` sizes
without their unit; lists are joined by commas. A part in brackets is left out where one of its values is
missing.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from engine_host.protocol.language.numbers import formed, written

PLACE = re.compile(r"\{([a-z_][a-z0-9_]*)(?::([^{}]*))?\}")
_UNITS = {"gib": 2**30, "mib": 2**20}
_ENDING = re.compile(r"(\{(\w+)\})\.(?=\s|$)")
_OPTIONAL = re.compile(r"\[([^\[\]]*\{[^\[\]]*)\]")


@lru_cache(maxsize=4096)
def places(message: str) -> frozenset[str]:
    """Return the names in a message that stand for values."""
    return frozenset(name for name, _form in PLACE.findall(message))


def filled(message: str, values: Mapping[str, Any], language: str = "en") -> str:
    """Return a message with its values, numbers with the signs of the language.

    Raises KeyError where one is missing.
    """

    def part(found: re.Match[str]) -> str:
        return found[1] if all(values[name] not in (None, "") for name in places(found[1])) else ""

    # Words of another program may be a sentence already.
    message = _ENDING.sub(lambda found: found[1] if is_sentence(values.get(found[2])) else found[0], message)
    said = PLACE.sub(
        lambda place: _formed(values[place[1]], place[2] or "", language), _OPTIONAL.sub(part, message)
    )
    # Where the last value is empty, the blank before it is left.
    return said if message.endswith(" ") else said.rstrip(" ")


def is_sentence(value: object) -> bool:
    """Tell whether a value is a text that has its full stop."""
    return isinstance(value, str) and value.endswith((".", "!", "?", "。", "！", "？"))


def _formed(value: Any, form: str, language: str) -> str:
    if form in _UNITS:
        return written(f"{value / _UNITS[form]:.{1 if form == 'gib' else 0}f}", language)
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    if not form:
        return str(value)
    return formed(value, form, language) if isinstance(value, (int, float)) else format(value, form)
