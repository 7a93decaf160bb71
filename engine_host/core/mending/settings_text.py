"""Find the line of a setting in the text of its file, and take out of the text what cannot be read."""

import difflib
import re
import tomllib
from collections.abc import Iterable

_TABLE = re.compile(r"\s*\[\s*\"?([\w-]+)\"?\s*\]")
_KEY = re.compile(r"\s*\"?([\w.-]+)\"?\s*=")
_MOST_LINES = 50
_FARTHEST = 200
"""Lines between where a fault begins and where it is seen, at most."""
MARK = "# not read: "
"""The beginning of a line that a repair took out of use."""


def line_of(text: str, key: str) -> int | None:
    """Return the number of the line that sets a dotted key, or begins its table; None where none is found."""
    group, _, name = key.partition(".")
    name = name.partition(".")[0]
    inside, begins = "", None
    for number, line in enumerate(text.splitlines(), start=1):
        if table := _TABLE.match(line):
            inside = table[1]
            if inside == group:
                begins = begins or number
        elif found := _KEY.match(line):
            whole = f"{inside}.{found[1]}" if inside else found[1]
            if whole in {key, f"{group}.{name}"} or (not name and whole == group):
                return number
    return begins


def line_at(text: str, number: int | None) -> str:
    """Return one line of a text, cut where it is long; empty where there is none."""
    lines = text.splitlines()
    return lines[number - 1].strip()[:200] if number is not None and 0 < number <= len(lines) else ""


def fault_line(text: str) -> int | None:
    """Return the line at which a text is no TOML; None where it is, or no line can be told."""
    # Loaded where a file is mended: it takes a megabyte of the host's memory.
    import tomlkit
    from tomlkit.exceptions import ParseError, TOMLKitError

    try:
        tomlkit.parse(text)
    except ParseError as error:
        return _begin_of_fault(text, error.line)
    except (TOMLKitError, ValueError, RecursionError):
        return None
    return None


def _begin_of_fault(text: str, seen: int) -> int:
    """Return the line behind the last that all before it are TOML with: what is open is found far behind."""
    lines = text.splitlines()
    # The end of the text is told as line 1.
    last = seen if 1 < seen <= len(lines) else len(lines)
    for good in range(last - 1, max(-1, last - 1 - _FARTHEST), -1):
        try:
            tomllib.loads("\n".join(lines[:good]) + "\n")
        except (ValueError, RecursionError):
            continue
        return good + 1
    return max(1, min(seen, len(lines) or 1))


def what_is_wrong(text: str, said: object) -> str:
    """Return what a parser said of a text, with the line at which the fault begins in place of its own."""
    words = re.sub(r"\s*(at line \d+ col(umn)? \d+|\(at [^)]*\))", "", str(said))
    if "\\x00" in words and "\0" not in text:
        words = "something is not closed before the end of the file"
    line = fault_line(text)
    return words if line is None else f"line {line}: {words}"


def readable(text: str) -> str | None:
    """Return the text with each line that is no TOML made a comment; None where that does not help."""
    import tomlkit
    from tomlkit.exceptions import ParseError, TOMLKitError

    lines = text.splitlines()
    for _ in range(_MOST_LINES):
        now = "\n".join(lines) + "\n"
        try:
            tomlkit.parse(now)
        except ParseError:
            pass
        except (TOMLKitError, ValueError, RecursionError):
            return None
        else:
            return now
        at = fault_line(now)
        while at is not None and at > 1 and (not lines[at - 1].strip() or lines[at - 1].startswith(MARK)):
            # The fault began before what was taken out already.
            at -= 1
        if at is None or lines[at - 1].startswith(MARK):
            return None
        lines[at - 1] = MARK + lines[at - 1]
    return None


def without(text: str, keys: Iterable[str]) -> str:
    """Return a text that is TOML without some settings: dotted names, or the name of a whole table."""
    import tomlkit

    document = tomlkit.parse(text)
    for key in keys:
        group, _, name = key.partition(".")
        if group not in document:
            continue
        table = document[group]
        if not name or not isinstance(table, dict):
            del document[group]
        elif name in table:
            del table[name]
    return tomlkit.dumps(document)


def changed_lines(before: str, after: str) -> str:
    """Return the diff of two texts of a settings file; empty where they are the same."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "settings.toml", "settings.toml, repaired", lineterm=""
    )
    return "\n".join(lines)
