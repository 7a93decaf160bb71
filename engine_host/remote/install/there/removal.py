"""Remove what an install and the runs of its host left; what was there before stays."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import Any

from engine_host.remote.install.there.places import RECORD, SWITCHED, UNIT, Failed, Places, names, read
from engine_host.remote.install.there.programs import QUICK, attempt
from engine_host.remote.install.there.service import (
    end_engines,
    end_outlived,
    refuse_other,
    running_host,
    stop,
)
from engine_host.remote.install.there.staying import end_lingering, hand_over, staying
from engine_host.remote.install.there.wholeness import damage


def abandon(asked: dict[str, Any]) -> dict[str, Any]:
    """Leave nothing of a first install that failed, but an upload that can be resumed."""
    places = Places()
    if asked["drop_uploads"]:
        shutil.rmtree(places.incoming, ignore_errors=True)
    record = read(os.path.join(places.root, RECORD)) or {}
    ran = record.get(SWITCHED) or os.path.islink(places.current)
    if not ran and not names(places.incoming):
        return remove(places)
    return {"removed": [], "kept": []}


def uninstall(asked: dict[str, Any]) -> dict[str, Any]:
    """Stop our host and remove what its install and its runs left; what was there before stays."""
    places = Places()
    record = read(os.path.join(places.root, RECORD))
    if record is None:
        raise Failed("not_found", "Nothing of this program's installer is there.", root=places.root)
    if refuse_other(places) is None:
        end_outlived(places, record)
    if refuse_other(places) is not None:
        whole = damage(os.path.realpath(places.current)) is None
        if whole:
            end_engines(places)
        stop(places, record)
        if not whole:
            # Those that are kept could not be ended before.
            end_outlived(places, record)
    return remove(places)


def remove(places: Places) -> dict[str, Any]:
    record = read(os.path.join(places.root, RECORD)) or {"made": []}
    with contextlib.suppress(OSError):
        os.remove(places.unit + ".new")
    if os.path.exists(places.unit):
        attempt(["systemctl", "--user", "disable", UNIT], QUICK)
        os.remove(places.unit)
        attempt(["systemctl", "--user", "daemon-reload"], QUICK)
        wants = os.path.join(os.path.dirname(places.unit), "default.target.wants")
        if os.path.isdir(wants) and not names(wants):
            os.rmdir(wants)
    if record.get("set_lingering"):
        end_lingering()
    removed, kept = [], []
    # Whatever runs by now was not started by the install: its data stays.
    made = set(record["made"]) if running_host(places) is None else set()
    shutil.rmtree(places.root)
    for path in places.own:
        if path in made and (stays := staying(path)) is not None:
            # A service goes on without the host.
            for name in names(path):
                one = os.path.join(path, name)
                if one == stays:
                    kept.append(one)
                elif os.path.isdir(one) and not os.path.islink(one):
                    shutil.rmtree(one)
                    removed.append(one)
                else:
                    os.remove(one)
                    removed.append(one)
        elif path in made and os.path.isdir(path):
            shutil.rmtree(path)
            removed.append(path)
        elif os.path.isdir(path):
            kept.append(path)
    for path in sorted(made, key=len, reverse=True):
        if os.path.isdir(path) and not names(path):
            os.rmdir(path)
            removed.append(path)
    hand_over(path for path in sorted(made, key=len) if os.path.isdir(path))
    return {"removed": [places.root, *removed], "kept": kept}
