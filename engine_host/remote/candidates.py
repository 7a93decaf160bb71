"""The hosts that an ssh configuration names, to be offered; ssh itself decides what each of them means."""

import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from engine_host.core.outside.ssh_config import config_lines
from engine_host.protocol.remote.hosts import Destination

_MOST = 1000
_DESTINATION: TypeAdapter[str] = TypeAdapter(Destination)


@dataclass(frozen=True)
class ConfiguredHost:
    """A host of the configuration, with what stands below its own name."""

    destination: str
    address: str | None
    user: str | None


def configured_hosts(path: Path) -> list[ConfiguredHost]:
    """Return the hosts that have a name of their own there, in their order; patterns are none."""
    found: dict[str, dict[str, str]] = {}
    names: list[str] = []
    for word, values in config_lines(path):
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
