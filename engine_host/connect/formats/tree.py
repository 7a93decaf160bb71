"""Settings as a tree: what a file says after what is wanted was put into it, whatever its format."""

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

Tree = Any
Place = tuple[str | Mapping[str, str], ...]
"""The way to a value: names of keys, and for an entry of a list what it is known by, `*` for any text."""
MOST_NESTED = 60


class FormatError(ValueError):
    """A text that is not in its format, or that cannot be changed without touching what is the person's."""


def identity(entry: Mapping[str, Tree]) -> tuple[str, Tree]:
    """Return the key by which an entry of a list is known, and its value."""
    key = "id" if "id" in entry else "name"
    return key, entry[key]


def is_entries(value: Tree) -> bool:
    """Return True for a list of entries, each of which is known by a key."""
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)


def merged(have: Tree, want: Tree, unless_set: Collection[str] = (), where: str = "") -> Tree:
    """Return what was there with what is wanted in it.

    Keys and entries that are not wanted stay. A plain list that is there stays, and so do the keys at the
    top that are in `unless_set`. Raises FormatError where a value of another kind stands in the way.
    """
    if isinstance(want, dict):
        if have is None:
            have = {}
        if not isinstance(have, dict):
            raise in_the_way(where)
        result = dict(have)
        for key, value in want.items():
            if key in unless_set and have.get(key) is not None:
                continue
            result[key] = merged(have.get(key), value, (), f"{where}.{key}" if where else key)
        return result
    if is_entries(want):
        if have is None:
            have = []
        if not isinstance(have, list):
            raise in_the_way(where)
        entries = list(have)
        for entry in want:
            at = index_of(entries, entry)
            if at is None:
                entries.append(entry)
            else:
                entries[at] = merged(entries[at], entry, (), where)
        return entries
    if isinstance(want, list):
        return have if isinstance(have, list) else want
    if isinstance(have, dict | list):
        raise in_the_way(where)
    return want


def index_of(entries: Sequence[Tree], wanted: Mapping[str, Tree]) -> int | None:
    """Return the place of the entry that is known by the same key; None where there is none."""
    key, value = identity(wanted)
    for place, entry in enumerate(entries):
        if isinstance(entry, dict) and entry.get(key) == value:
            return place
    return None


def at(tree: Tree, place: Place) -> Tree:
    """Return the value at a place; None where there is none."""
    for step in place:
        if isinstance(step, str):
            tree = tree.get(step) if isinstance(tree, dict) else None
        elif isinstance(tree, list):
            known = step
            tree = next(
                (
                    entry
                    for entry in tree
                    if isinstance(entry, dict)
                    and all(fnmatchcase(str(entry.get(key)), value) for key, value in known.items())
                ),
                None,
            )
        else:
            return None
    return tree


def same(one: Tree, other: Tree) -> bool:
    """Return True for two values that say the same; 1, 1.0 and true are three values."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def in_the_way(where: str) -> FormatError:
    """Return the error for a value that is of another kind than the client's own settings have there."""
    return FormatError(f"the value of {where or 'the file'} is of another kind than it should be")
