"""Finds what is damaged of the releases there: files as they were made, and a Python that runs them."""

from __future__ import annotations

import json
import os

from engine_host.remote.install.there.places import COMPLETE, Places, is_complete, names, write
from engine_host.remote.install.there.programs import QUICK, attempt

_FILES = "files.json"
_LONGEST = 16 << 20


def note_files(release: str) -> None:
    """Write down the files of a release that was just made, with their bytes."""
    write(os.path.join(release, _FILES), {"files": dict(_files(release))})


def damaged(places: Places) -> dict[str, str]:
    """Return what is wrong with each release there, by its name; those that are whole are left out."""
    found = {name: os.path.join(places.root, name) for name in names(places.root)}
    known = {name: path for name, path in found.items() if is_complete(path)}
    for link in (places.current, places.previous):
        if os.path.islink(link):
            name = os.path.basename(os.readlink(link))
            known[name] = os.path.join(places.root, name)
    wrong = {name: damage(path) for name, path in known.items()}
    return {name: why for name, why in wrong.items() if why is not None}


def damage(release: str) -> str | None:
    """Return what is wrong with a release, or None where it is whole."""
    if not is_complete(release):
        return "%s is missing" % (COMPLETE if os.path.isdir(release) else "its folder")
    for name, size in _noted(release).items():
        try:
            now = os.lstat(os.path.join(release, name)).st_size
        except OSError:
            return "%s is missing" % name
        if now != size:
            return "%s was changed" % name
    python = os.path.join(release, "bin", "python")
    if not os.access(python, os.X_OK):
        return "its Python, %s, is missing or may not be run" % os.path.realpath(python)
    said = attempt([python, "-P", "-m", "engine_host", "version", "--json"], QUICK)
    if said is None or said.returncode == 0:
        # One that takes long is slow, which a new one would be too.
        return None
    lines = said.stderr.strip().splitlines()[-1:] or ["it ended with %d" % said.returncode]
    return "it does not run (%s)" % lines[0][:300]


def _files(release: str) -> list[tuple[str, int]]:
    found = []
    for where, _, names_there in os.walk(release):
        for name in names_there:
            path = os.path.join(where, name)
            # Compiled files come and go with the programs that read them.
            if not os.path.islink(path) and os.path.basename(where) != "__pycache__":
                found.append((os.path.relpath(path, release), os.lstat(path).st_size))
    return sorted(found)


def _noted(release: str) -> dict[str, int]:
    """Return the files that were written down; none for a release of a version that wrote down none."""
    try:
        with open(os.path.join(release, _FILES), encoding="utf-8") as file:
            noted = json.loads(file.read(_LONGEST))["files"]
        return {str(name): int(size) for name, size in noted.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
