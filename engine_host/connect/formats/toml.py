"""TOML, changed with its comments and its order kept."""

import tomllib
from collections.abc import Collection, MutableMapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from engine_host.connect.formats.tree import FormatError, in_the_way


def read(text: str) -> Any:
    """Return the table of a text. Raises FormatError."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(str(error)) from error


def changed(text: str, want: dict[str, Any], unless_set: Collection[str] = ()) -> str:
    """Return the text with what is wanted in it. Raises FormatError."""
    try:
        document = tomlkit.parse(text)
        _put(document, want, unless_set, "")
        return tomlkit.dumps(document)
    except FormatError:
        raise
    except (TOMLKitError, ValueError, RecursionError) as error:
        raise FormatError(str(error)) from error


def _put(
    table: MutableMapping[str, Any], want: dict[str, Any], unless_set: Collection[str], where: str
) -> None:
    for key, value in want.items():
        there = table.get(key)
        if key in unless_set and there is not None:
            continue
        inner = f"{where}.{key}" if where else key
        if isinstance(value, dict):
            if there is None:
                table[key] = _table(value)
            elif isinstance(there, MutableMapping):
                _put(there, value, (), inner)
            else:
                raise in_the_way(inner)
        elif isinstance(there, MutableMapping | list):
            raise in_the_way(inner)
        elif there is None or type(_plain(there)) is not type(value) or _plain(there) != value:
            table[key] = value


def _table(values: dict[str, Any]) -> Any:
    # A table of tables alone needs no heading of its own.
    table = tomlkit.table(is_super_table=all(isinstance(value, dict) for value in values.values()))
    for key, value in values.items():
        table[key] = _table(value) if isinstance(value, dict) else value
    return table


def _plain(value: Any) -> Any:
    return value.unwrap() if hasattr(value, "unwrap") else value
