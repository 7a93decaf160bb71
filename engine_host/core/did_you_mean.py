"""Suggest existing names for one that was not found."""

import difflib
import re
from collections.abc import Iterable

_ALIKE = 0.6
_NUMBERS = re.compile(r"\d+")


def near_names(query: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The nearest of the known names, best first.

    Names that begin with the whole text come first, the shortest ahead: an end that was left out changes
    nothing of what was typed, and one other letter may be another thing. Then comes what is most alike.
    """
    names = sorted(set(known), key=lambda name: (len(name), name))
    longer = [name for name in names if name.lower().startswith(query.lower())] if query else []
    lower = [name.lower() for name in names]
    alike = difflib.get_close_matches(query.lower(), lower, max(len(names), 1), _ALIKE)
    written = {name.lower(): name for name in names}
    return list(dict.fromkeys([*longer, *(written[name] for name in alike)]))[:most]


def same_numbers(query: str, name: str) -> bool:
    """Return True if every number in `query` is in `name`: an RTX 3080 is no 5080, however alike."""
    return set(_NUMBERS.findall(query)) <= set(_NUMBERS.findall(name))
