"""The command of a start with something changed: what a person copies to try it."""

import shlex

from engine_host.protocol.engine_settings.table import SETTINGS

_WORDS = "extra_arguments"


def with_setting(command: str, name: str, value: str) -> str:
    """Return the command with a setting, in place of what it says of it."""
    return _joined([*_kept(shlex.split(command), name), ("--set", f"{name}={value}")])


def with_variable(command: str, name: str, value: str) -> str:
    """Return the command with a variable of the engine's processes besides."""
    pairs = [
        pair
        for pair in _pairs(shlex.split(command))
        if pair[:1] != ("--env",) or pair[1].partition("=")[0] != name
    ]
    return _joined([*pairs, ("--env", f"{name}={value}")])


def without_argument(command: str, flag: str) -> str | None:
    """Return the command without a flag of the engine itself and its value; None where it has none."""
    words = _pairs(shlex.split(command))
    given = [place for place, pair in enumerate(words) if _argument(pair).partition("=")[0] == flag]
    if not given:
        return None
    left_out = set(given)
    for place in given:
        value = _argument(words[place + 1]) if place + 1 < len(words) else ""
        if "=" not in _argument(words[place]) and value and not value.startswith("-"):
            left_out.add(place + 1)
    return _joined([pair for place, pair in enumerate(words) if place not in left_out])


def _kept(words: list[str], name: str) -> list[tuple[str, ...]]:
    option = SETTINGS[name].option
    return [
        pair
        for pair in _pairs(words)
        if not (pair[0] == "--set" and pair[1].partition("=")[0] == name)
        and not (option and pair[0] == option)
    ]


def _pairs(words: list[str]) -> list[tuple[str, ...]]:
    """Split a command into its words, where an option of a start stays with its value."""
    pairs: list[tuple[str, ...]] = []
    options = {row.option for row in SETTINGS.values() if row.option} | {"--set", "--env"}
    rest = iter(words)
    for word in rest:
        value = next(rest, None) if word in options else None
        pairs.append((word,) if value is None else (word, value))
    return pairs


def _argument(pair: tuple[str, ...]) -> str:
    """Return the word that a pair gives to the engine itself; empty for another one."""
    name, _, value = pair[-1].partition("=")
    return value if pair[0] == "--set" and len(pair) > 1 and name == _WORDS else ""


def _joined(pairs: list[tuple[str, ...]]) -> str:
    return shlex.join(word for pair in pairs for word in pair)
