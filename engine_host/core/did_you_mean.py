"""Suggest existing names for one that was not found."""

import difflib
import re
from collections.abc import Iterable

from engine_host.protocol.errors import Fix
from engine_host.protocol.language import tr

_ALIKE = 0.6
_LONGEST = 200
_LONG = 8
_SHORT = 3
_NUMBERS = re.compile(r"\d+")


def near_names(query: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The nearest of the known names, best first.

    Names that begin with the whole text come first, the shortest ahead: an end that was left out changes
    nothing of what was typed, and one other letter may be another thing. Then comes what is most alike.
    """
    query = query[:_LONGEST]
    names = sorted(set(known), key=lambda name: (len(name), name))
    longer = [name for name in names if name.lower().startswith(query.lower())] if query else []
    lower = [name.lower() for name in names]
    alike = difflib.get_close_matches(query.lower(), lower, max(len(names), 1), _ALIKE)
    written = {name.lower(): name for name in names}
    near = (written[name] for name in alike if is_near(query.lower(), name))
    return list(dict.fromkeys([*longer, *near]))[:most]


def meant_or(otherwise: Fix, query: str, known: Iterable[str], see: str | None = None) -> Fix:
    """Return the next action for a name that is not there: the nearest ones, or what else is to be done.

    `see` is the command that lists them where the other one does something else.
    """
    near = near_names(query, known, 3)
    if not near:
        return otherwise
    return Fix(text=tr("Did you mean {near}?", near=" or ".join(near)), command=see or otherwise.command)


def is_near(query: str, name: str) -> bool:
    """Return True if one may have been typed for the other: a slip in four letters, in three of long names.

    One is allowed at least. A slip is a letter too many, too few or another one, or two that changed
    places. By the share of common letters alone short words are all alike, so of three letters the first
    has to be right.
    """
    length = max(len(query), len(name))
    if length <= _SHORT and query[:1] != name[:1] and sorted(query) != sorted(name):
        return False
    return _slips(query, name) <= max(1, length // (4 if length < _LONG else 3))


def _slips(one: str, other: str) -> int:
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        before, above, row = row, before, [i]
        for j, b in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and (a, one[i - 2]) == (other[j - 2], b):
                cost = min(cost, above[j - 2] + 1)
            row.append(cost)
    return row[-1]


def same_numbers(query: str, name: str) -> bool:
    """Return True if every number in `query` is in `name`: an RTX 3080 is no 5080, however alike."""
    return set(_NUMBERS.findall(query)) <= set(_NUMBERS.findall(name))
