"""The words that start our programs from outside, quoted for those who read them."""

import os
from collections.abc import Mapping, Sequence

_MOVED = ("SNDR_HOME", "SNDR_CACHE")


def environment_of(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that move this program's folders, where there are any."""
    env = os.environ if given is None else given
    return {name: os.path.abspath(env[name]) for name in _MOVED if env.get(name)}


def exec_value(words: Sequence[str]) -> str:
    """Return words for Exec= of a desktop entry, whose strings are escaped once more than its words."""
    return " ".join(_exec_word(word) for word in words)


def _exec_word(word: str) -> str:
    quoted = "".join("\\" + sign if sign in '"`$\\' else sign for sign in word)
    return '"' + quoted.replace("\\", "\\\\").replace("%", "%%") + '"'


def unit_program(path: str) -> str:
    """Return the first word of ExecStart= of a unit, in which `$` means nothing."""
    return _unit_quoted(path)


def unit_word(word: str) -> str:
    """Return one word for ExecStart= of a unit: `%` is a specifier there, and `$` a variable."""
    return _unit_quoted(word.replace("$", "$$"))


def unit_setting(name: str, value: str) -> str:
    """Return a variable for Environment= of a unit."""
    return _unit_quoted(f"{name}={value}")


def _unit_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
