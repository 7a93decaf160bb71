"""The hosts that an ssh configuration names, to be offered; ssh itself decides what each of them means."""

import glob
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from engine_host.core.outside import files
from engine_host.protocol.remote.hosts import Destination

CONFIG_VARIABLE = "SNDR_SSH_CONFIG"
"""The variable that names another configuration than the user's own; it stands for `ssh -F`."""
_LARGEST = 1 << 20
_DEEPEST = 8
_MOST = 1000
_EQUALS = re.compile(r"^(\w+)\s*=")
_DESTINATION: TypeAdapter[str] = TypeAdapter(Destination)


@dataclass(frozen=True)
class ConfiguredHost:
    """A host of the configuration, with what stands below its own name."""

    destination: str
    address: str | None
    user: str | None


def config_file(environment: Mapping[str, str]) -> Path:
    """Return the configuration that ssh is to read: the user's own, or the one that the variable names."""
    return files.expanded(environment.get(CONFIG_VARIABLE) or "~/.ssh/config")


def configured_hosts(path: Path) -> list[ConfiguredHost]:
    """Return the hosts that have a name of their own there, in their order; patterns are none."""
    found: dict[str, dict[str, str]] = {}
    names: list[str] = []
    for word, values in _lines(path, path.parent, 0):
        if word == "host":
            names = [name for name in values if _is_plain(name)]
            for name in names:
                if len(found) < _MOST:
                    found.setdefault(name, {})
        elif word == "match":
            names = []
        elif word in ("hostname", "user") and values:
            for name in names:
                # As in ssh, the first that is said holds.
                found.get(name, {}).setdefault(word, values[0][:300])
    return [ConfiguredHost(name, said.get("hostname"), said.get("user")) for name, said in found.items()]


def suggested_name(destination: str) -> str:
    """Return a name that a host of this destination may have here."""
    place = destination.removeprefix("ssh://").rpartition("@")[2]
    name = re.sub(r"[^a-z0-9]+", "-", place.lower()).strip("-")[:63].strip("-")
    return name if name and name != "local" else f"host-{name}".strip("-")


def _is_plain(name: str) -> bool:
    if any(letter in name for letter in "*?!"):
        return False
    try:
        _DESTINATION.validate_python(name)
    except ValidationError:
        return False
    return True


def _lines(path: Path, below: Path, depth: int) -> Iterator[tuple[str, list[str]]]:
    """Each line as its keyword and values, those of included files in their place."""
    try:
        text = files.read(path, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return
    for line in text.splitlines():
        # `Host=a`, `Host = a` and `Host a` are the same.
        try:
            words = shlex.split(_EQUALS.sub(r"\1 ", line.strip()), comments=True)
        except ValueError:
            continue
        if not words:
            continue
        word, values = words[0].lower(), words[1:]
        if word != "include":
            yield word, values
        elif depth < _DEEPEST:
            for value in values:
                expanded = os.path.expanduser(value)
                for one in sorted(glob.glob(os.path.join(below, expanded)))[:_MOST]:
                    yield from _lines(Path(one), below, depth + 1)
