"""The command line that makes the same change to a preset as the window."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from sndr_gui.models.presets.form import is_variation, shown

_NAMED = ("format", "id", "extends")
# What no value of a file is equal to.
_ABSENT = object()


def show_command(preset: str) -> str:
    """Return the command line that shows a preset."""
    return shlex.join(["sndr", "presets", "show", preset])


def new_command(preset: str, data: Mapping[str, Any] | None) -> str:
    """Return the command line that saves a preset of one's own for the first time."""
    values = None if data is None else _flat({k: v for k, v in data.items() if k not in _NAMED})
    if values is None or data is None or not is_variation(data) or "extends" not in data:
        return shlex.join(["sndr", "presets", "save", f"{preset}.yaml"])
    words = ["sndr", "presets", "vary", str(data["extends"]), preset]
    for key, value in values.items():
        words += ["--title", str(value)] if key == "title" else ["--set", _given(key, value)]
    return shlex.join(words)


def change_command(preset: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """Return the command line that changes a saved preset; `before` is what its file says now."""
    old, new = _flat(before) if before is not None else None, _flat(after) if after is not None else None
    if old is None or new is None:
        return shlex.join(["sndr", "presets", "save", f"{preset}.yaml", "--replace"])
    words = [_given(key, value) for key, value in new.items() if old.get(key, _ABSENT) != value]
    for key in old:
        words += ["--unset", key] if key not in new else []
    return shlex.join(["sndr", "presets", "set", preset, *words]) if words else show_command(preset)


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any] | None:
    """Return values by their dotted places, settings by their names; None where there are lists of tables."""
    found: dict[str, Any] = {}
    for key, value in data.items():
        place = f"{prefix}{key}"
        if isinstance(value, Mapping):
            inner = _flat(value, "" if place == "settings" else f"{place}.")
            if inner is None:
                return None
            found |= inner
        elif isinstance(value, list) and any(isinstance(one, Mapping | list) for one in value):
            return None
        else:
            found[place] = value
    return found


def _given(key: str, value: Any) -> str:
    """Return NAME=VALUE as the command line takes it."""
    if isinstance(value, list):
        inner = ", ".join(f'"{one}"' for one in value)
        return f"{key}=[{inner}]"
    if value is None:
        return f"{key}=null"
    return f"{key}={str(value).lower() if isinstance(value, bool) else shown(value)}"
