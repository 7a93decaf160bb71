"""The look at a machine before an install; nothing is changed."""

from __future__ import annotations

import ctypes
import glob
import json
import os
import platform
import shutil
import tempfile
from typing import Any

from engine_host.remote.install.there.places import (
    RECORD,
    Places,
    existing,
    is_complete,
    names,
    read,
    release_of,
    size,
)
from engine_host.remote.install.there.programs import NO_PROGRAMS, QUICK, attempt, own_variables, pip, user
from engine_host.remote.install.there.service import engines, has_services, lingers, outlived, running_host
from engine_host.remote.install.there.staying import services, staying
from engine_host.remote.install.there.wholeness import damaged

OPENMP = "libgomp.so.1"
"""What the prebuilt llama.cpp needs of the system and its package does not bring."""
_MOST_MODELS = 200
_MOST_PYTHONS = 16
# Where people and tools put Pythons that no PATH of a login without a terminal leads to.
_PYTHONS = (
    "~/.local/bin/python3.1[1-3]",
    "~/.local/share/uv/python/cpython-3.1[1-3]*/bin/python3",
    "~/.pyenv/versions/3.1[1-3].*/bin/python3",
    "~/*conda*/bin/python3",
    "~/m*forge*/bin/python3",
    "/opt/*conda*/bin/python3",
    "/opt/m*forge*/bin/python3",
    "/opt/python/3.1[1-3]*/bin/python3",
)
_ASK_PYTHON = (
    "import importlib.util as u, json, sys; print(json.dumps([list(sys.version_info[:3]), sys.executable, "
    "u.find_spec('ensurepip') is not None, u.find_spec('pip') is not None, u.find_spec('venv') is not None]))"
)


def probe(asked: dict[str, Any]) -> dict[str, Any]:
    """Tell what an install needs to know; nothing is changed."""
    places = Places()
    found = _interpreters(asked["interpreters"])
    wrong, living, managed = damaged(places), engines(places), has_services()
    whole = [name for name in names(places.root) if is_complete(os.path.join(places.root, name))]
    return {
        "home": places.home,
        "user": user(),
        "node": platform.node(),
        "system": platform.system(),
        "machine": platform.machine(),
        "libc": list(platform.libc_ver()),
        "pythons": found,
        "root": places.root,
        "unit": places.unit,
        "environment": own_variables(),
        "free": shutil.disk_usage(existing(places.root)).free,
        "noexec": bool(os.statvfs(existing(places.root)).f_flag & getattr(os, "ST_NOEXEC", 0)),
        "unwritable": _unwritable(places, managed),
        "gpus": _gpus(),
        "index": _index(found, asked.get("small_package")),
        "systemd": managed,
        "lingers": lingers(),
        "record": read(os.path.join(places.root, RECORD)),
        "current": release_of(places.current),
        "previous": release_of(places.previous),
        "releases": [name for name in whole if name not in wrong],
        "damaged": wrong,
        "installed": os.path.islink(places.current),
        "incoming": {
            name: os.path.getsize(os.path.join(places.incoming, name)) for name in names(places.incoming)
        },
        "running": running_host(places),
        "engines": outlived(places) if living is None else living,
        "silent": living is None,
        "own_data": [path for path in places.own if os.path.isdir(path)],
        "staying": [path for path in map(staying, places.own) if path is not None],
        "services": services(),
        "models": _models(os.path.join(places.data, "models")),
        "lacks_openmp": _lacks(OPENMP),
    }


def _models(folder: str) -> list[dict[str, Any]]:
    """The models that were sent or fetched into the folder of the host, with their bytes."""
    paths = [os.path.join(folder, name) for name in names(folder)[:_MOST_MODELS] if not name.startswith(".")]
    return [
        {"path": path, "size": size(path) if os.path.isdir(path) else os.lstat(path).st_size}
        for path in paths
    ]


def _unwritable(places: Places, managed: bool) -> list[dict[str, Any]]:
    """Return the folders that an install or its host makes files in and cannot, why, and whether it must."""
    wanted = [(places.root, places.moved_by[places.data], True)]
    if managed:
        wanted.append((os.path.dirname(places.unit), "XDG_CONFIG_HOME", True))
    # A host runs without these: it keeps no settings, or fetches again what a cache would hold.
    wanted += [(one, places.moved_by[one], False) for one in (places.config, places.cache)]
    found: dict[str, dict[str, Any]] = {}
    for folder, variable, needed in wanted:
        path, why = _obstacle(folder)
        if why:
            found.setdefault(path, {"path": path, "why": why, "variable": variable, "needed": needed})
    return list(found.values())


def _obstacle(folder: str) -> tuple[str, str]:
    """Return what keeps files out of a folder that may not be there yet; no reason where nothing does."""
    while not os.path.isdir(folder):
        # A link whose target is gone, such as to another disk, is in the way as a file is.
        if os.path.lexists(folder):
            return folder, "no-folder"
        folder = os.path.dirname(folder)
    if os.access(folder, os.W_OK | os.X_OK):
        return folder, ""
    return folder, "read-only" if os.statvfs(folder).f_flag & os.ST_RDONLY else "not-theirs"


def _lacks(library: str) -> bool:
    """Tell whether the system has no such library, as its programs look for it."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return True
    return False


def _interpreters(names: list[str]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    on_path = [path for path in map(shutil.which, names) if path is not None]
    elsewhere = [path for place in _PYTHONS for path in sorted(glob.glob(os.path.expanduser(place)))]
    for path in [*on_path, *elsewhere[:_MOST_PYTHONS]]:
        said = attempt([path, "-I", "-c", _ASK_PYTHON], QUICK)
        if said is None or said.returncode != 0:
            continue
        version, executable, ensurepip, pip, venv = json.loads(said.stdout)
        found.setdefault(
            executable,
            {"path": executable, "version": version, "ensurepip": ensurepip, "pip": pip, "venv": venv},
        )
    return list(found.values())


def _index(pythons: list[dict[str, Any]], small: str | None) -> dict[str, Any]:
    """Try whether packages can be had there: one small package of the lock is downloaded, by its hash."""
    with_pip = [one for one in pythons if one["pip"]]
    if small is None or not with_pip:
        return {"reachable": None, "said": ""}
    folder = tempfile.mkdtemp(prefix="sndr-index-")
    try:
        lock = os.path.join(folder, "one.lock")
        with open(lock, "w", encoding="utf-8") as file:
            file.write(small)
        said = attempt(
            [
                *pip(with_pip[0]["path"], "download", "--no-deps", "--retries", "0", "--timeout", "8"),
                *("-d", folder, "-r", lock),
            ],
            60.0,
            NO_PROGRAMS,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if said is None:
        return {"reachable": False, "said": "pip did not end in a minute"}
    lines = said.stderr.strip().splitlines()
    return {"reachable": said.returncode == 0, "said": lines[-1] if lines else ""}


def _gpus() -> list[dict[str, str]]:
    program = shutil.which("nvidia-smi")
    query = "--query-gpu=name,driver_version,memory.total"
    said = attempt([program, query, "--format=csv,noheader,nounits"], QUICK) if program else None
    if said is None or said.returncode != 0:
        return []
    rows = [[cell.strip() for cell in line.split(",")] for line in said.stdout.splitlines()]
    return [dict(zip(("name", "driver", "mebibytes"), row)) for row in rows if len(row) == 3]
