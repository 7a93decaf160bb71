"""Variables of a start: each a word, NAME=VALUE; a file of the catalogue may write them as a table."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LONGEST, _MOST = 4096, 100


def variable(word: str) -> tuple[str, str]:
    """Return the name and the value of a variable. Raises ValueError for a word that is none."""
    name, equals, value = word.partition("=")
    if not equals or not _NAME.fullmatch(name):
        raise ValueError(f"a variable is NAME=VALUE, a name has letters, digits and _: {word[:80]!r} is none")
    if len(value) > _LONGEST or _CONTROL.search(value):
        raise ValueError(f"the value of {name} is longer than {_LONGEST} or has a line break in it")
    return name, value


def variables_of(words: Iterable[str]) -> dict[str, str]:
    """Return variables by name; of two of one name the later holds. Raises ValueError."""
    return dict(map(variable, words))


def merged(words: Iterable[str]) -> tuple[str, ...]:
    """Return the same words with each name once. Raises ValueError."""
    return tuple(f"{name}={value}" for name, value in variables_of(words).items())


def words_of(given: Any) -> Any:
    """Return a table of variables as words; anything else as it is, for the type to judge.

    Raises ValueError for a value in it that is no text and no number.
    """
    if isinstance(given, list):
        # What is read strictly has a tuple here.
        return tuple(given)
    if not isinstance(given, Mapping):
        return given
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(f"the value of {str(name)[:80]} is no text; write it in quotes")
    return tuple(f"{name}={value}" for name, value in given.items())


def checked(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words, each name once. Raises ValueError for one that is no variable, and for too many."""
    if len(words) > _MOST:
        raise ValueError(f"these are more than {_MOST} variables")
    return merged(words)
