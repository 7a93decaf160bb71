"""Services of ours there beside the host: where their files are, and that they outlive a logout."""

from __future__ import annotations

import os
from typing import Any, Iterable

from engine_host.remote.install.there.places import RECORD, Places, names, read, write
from engine_host.remote.install.there.programs import QUICK, attempt

SERVICE_RECORD = ".sndr-service.json"
_DEPLOYED = "deploy"


def deployed() -> str:
    """The folder with a folder for each service."""
    return os.path.join(os.path.expanduser("~"), ".local", "share", "sndr", _DEPLOYED)


def services() -> list[dict[str, Any]]:
    """The services that were installed, by what was written down of each."""
    found = [(name, read(_record_of(name))) for name in names(deployed())[:200] if not name.startswith(".")]
    return [{"name": name, "manager": str(record.get("manager"))} for name, record in found if record]


def staying(folder: str) -> str | None:
    """The part of a folder of the host that belongs to services, if there is one."""
    path = os.path.join(folder, _DEPLOYED)
    return path if names(path) else None


def hand_over(made: Iterable[str]) -> None:
    """Let the last service that goes remove these folders, too."""
    for one in services()[:1]:
        record = read(_record_of(one["name"])) or {}
        before = record.get("made")
        known = before if isinstance(before, list) else []
        more = [path for path in made if path not in known]
        write(_record_of(one["name"]), {**record, "made": [*known, *more]})


def end_lingering(of: str = "") -> None:
    """End lingering that was set for `of`; where something else of ours needs it, it is that one's now."""
    for one in services():
        if one["name"] != of:
            path = _record_of(one["name"])
            write(path, {**(read(path) or {}), "lingering": True})
            return
    places = Places()
    path = os.path.join(places.root, RECORD)
    record = read(path)
    if record is not None and os.path.exists(places.unit):
        write(path, {**record, "set_lingering": True})
    elif not _others_start(os.path.dirname(places.unit), of):
        attempt(["loginctl", "disable-linger"], QUICK)


def _others_start(units: str, of: str) -> bool:
    """Tell whether this user has units of its own that start with the machine."""
    own = (of + ".service", of + "-watchdog.timer")
    wanting = [one for one in names(units) if one.endswith((".wants", ".requires"))]
    return any(name not in own for one in wanting for name in names(os.path.join(units, one)))


def _record_of(name: str) -> str:
    return os.path.join(deployed(), name, SERVICE_RECORD)
