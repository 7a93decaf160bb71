"""Fetches what a service needs there, and starts, asks, stops and removes it."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import socket
import subprocess
from typing import Any

from engine_host.deploy.watchdog_program import asked as checks_of
from engine_host.remote.install.there.places import Failed, names, read
from engine_host.remote.install.there.programs import QUICK, attempt, run
from engine_host.remote.install.there.staying import end_lingering
from engine_host.remote.services.there.files import (
    Folders,
    begun,
    changed,
    compared,
    gone,
    known,
    leaving_files,
    note_lingering,
    of_ours,
    put_files,
    remove_files,
    settle_files,
    undo_files,
)
from engine_host.remote.services.there.managers import (
    STOPPING,
    SYSTEMD,
    TOOLS,
    container,
    containers,
    ends_with_session,
    lasting,
    need,
    path_of_units,
    service,
    systemctl,
    units,
    usable,
)

_LOG = "fetch.log"
# A template alone cannot be started, and is no service.
_OWN_UNIT = r"[A-Za-z0-9][A-Za-z0-9:_.\\-]{0,190}\.service"
_DAYS = 3 * 86400.0
_STARTING = 300.0


def inspect(given: dict[str, Any]) -> dict[str, Any]:
    """Look at everything that an install would touch; nothing is changed."""
    folders, manager, name = Folders(given["name"]), given["manager"], given["name"]
    record = known(folders)
    now = service(manager, name)
    user, lingers = lasting()
    needs = [path for path in given.get("needs", []) if not os.path.exists(os.path.expanduser(path))]
    programs = {one: shutil.which(one, path=path_of_units()) for one in given.get("programs", [])}
    image = given.get("image")
    return {
        "home": folders.home,
        "folder": folders.folder,
        "usable": usable(manager),
        "files": compared(folders, given["files"]),
        "gone": gone(folders, given["files"]),
        "preset": str(record.get("preset") or ""),
        "manager": record.get("manager"),
        "unfinished": begun(folders) is not None,
        "service": now,
        "user": user,
        "lingers": lingers if ends_with_session(manager) else None,
        "missing": needs,
        "programs": programs,
        "image": bool(image and _image(manager, image)),
        "sent": os.path.isfile(given.get("sent_to") or "/nonexistent"),
        "taken": _taken(int(given["port"])) and now["state"] in ("stopped", "failed", "unknown"),
        "free": shutil.disk_usage(_existing(folders.folder)).free,
    }


def survey(_given: dict[str, Any]) -> dict[str, Any]:
    """List the units and containers of this user, with what is known of ours."""
    told = [usable(one) for one in (SYSTEMD, *TOOLS)]
    listed: list[dict[str, Any]] = []
    for one in told:
        if one["usable"]:
            manager = one["manager"]
            own = [one for one in names(Folders("any").units) if re.fullmatch(_OWN_UNIT, one)]
            listed += units("*.service", *own) if manager == SYSTEMD else containers(manager)
    working = {one["manager"] for one in told if one["usable"]}
    ours: dict[tuple[str, str], dict[str, Any]] = {}
    for name in of_ours():
        folders = Folders(name)
        record = known(folders)
        manager = record.get("manager")
        if manager not in (SYSTEMD, *TOOLS):
            continue
        ours[manager, name] = _ours(folders, record)
        if manager in working and not any((one["manager"], one["name"]) == (manager, name) for one in listed):
            listed.append(service(manager, name))
        elif manager not in working:
            listed.append({"manager": manager, "name": name, "state": "unknown", "detail": "not to be asked"})
    return {
        "managers": told,
        "services": [
            {**one, **ours.get((one["manager"], one["name"]), {})}
            for one in listed
            if (one.get("there", True) or (one["manager"], one["name"]) in ours)
            and not _watches(one["name"], ours)
        ],
    }


def _watches(name: str, ours: dict[tuple[str, str], dict[str, Any]]) -> bool:
    """Tell whether a unit only runs the checks of a service of ours."""
    end = "-watchdog"
    return name.endswith(end) and (SYSTEMD, name[: -len(end)]) in ours


def show(given: dict[str, Any]) -> dict[str, Any]:
    """Tell of one service."""
    folders = Folders(given["name"])
    record = known(folders)
    need(given["manager"])
    own = _ours(folders, record) if record.get("manager") == given["manager"] else {}
    return {**service(given["manager"], given["name"]), **own}


def _ours(folders: Folders, record: dict[str, Any]) -> dict[str, Any]:
    state = read(os.path.join(folders.folder, "watchdog.json")) or {}
    shown = {one: record.get(one) for one in ("title", "preset", "model", "engine", "address")}
    return {**shown, "ours": True, "changed": changed(folders), "watchdog": state.get("state")}


def put(given: dict[str, Any]) -> dict[str, Any]:
    """Write the files of a service."""
    folders = Folders(given["name"])
    now = service(given["manager"], given["name"])
    running = now["state"] in ("running", "starting", "restarting")
    volume = given["manager"] == SYSTEMD or _volume(given["manager"], given["name"])
    before = {"running": running, "enabled": now.get("enabled"), "volume": volume}
    return put_files(folders, given["files"], replace=given["replace"], **before)


def fetch(given: dict[str, Any]) -> dict[str, Any]:
    """Fetch what the service needs: the model by its script, or the image; `progress` reads on meanwhile."""
    folders = Folders(given["name"])
    if given["what"] == "model":
        argv = ["bash", os.path.join(folders.folder, "download.sh")]
    else:
        need(given["manager"])
        argv = [given["manager"], "pull", "--", given["image"]]
        if _image(given["manager"], given["image"]):
            return {"fetched": False}
    log = os.path.join(folders.folder, _LOG)
    # The program's words go into a file, as a person may ask for them while it runs.
    words = ["bash", "-c", 'log=$1; shift; exec "$@" >"$log" 2>&1', "fetch", log, *argv]
    said = attempt(words, _DAYS)
    lines = _tail(log)
    with contextlib.suppress(FileNotFoundError):
        os.remove(log)
    if said is None or said.returncode != 0:
        full = any("no space left" in line.lower() for line in lines)
        raise Failed(
            "disk_full" if full else "download_failed",
            "The %s could not be fetched." % given["what"],
            exit=None if said is None else said.returncode,
            lines=lines,
        )
    return {"fetched": True}


def progress(given: dict[str, Any]) -> dict[str, Any]:
    """Tell how far a fetch is: its last words."""
    return {"lines": _tail(os.path.join(Folders(given["name"]).folder, _LOG))}


def start(given: dict[str, Any]) -> dict[str, Any]:
    """Start what was written: a unit with its watchdog, or a container in the place of the one before."""
    folders, manager = Folders(given["name"]), given["manager"]
    need(manager)
    lingering = False
    if ends_with_session(manager) and given["enable"] and lasting()[1] is False:
        said = attempt(["loginctl", "enable-linger"], QUICK)
        lingering = said is not None and said.returncode == 0 and lasting()[1] is True
        if lingering:
            note_lingering(folders)
    _begin(folders, manager, given["name"], start=given["start"], enable=given["enable"])
    return {"lingering": lingering}


def _begin(folders: Folders, manager: str, name: str, *, start: bool, enable: bool) -> None:
    if manager != SYSTEMD:
        if start:
            run(["bash", os.path.join(folders.folder, "start.sh")], _STARTING, "engine_start_failed")
        return
    _unit_run("daemon-reload")
    unit, timer = name + ".service", name + "-watchdog.timer"
    _unit_run("enable" if enable else "disable", unit, timer)
    _unit_run("daemon-reload")
    if start:
        systemctl("reset-failed", unit)
        _unit_run("restart", unit, timer, seconds=STOPPING)


def act(given: dict[str, Any]) -> dict[str, Any]:
    """Do something with a service of ours."""
    folders, name, manager, action = (
        Folders(given["name"]),
        given["name"],
        given["manager"],
        given["action"],
    )
    _need_ours(folders, manager)
    need(manager)
    if manager != SYSTEMD:
        if action == "start" and not container(manager, name)["there"]:
            run(["bash", os.path.join(folders.folder, "start.sh")], _STARTING, "engine_start_failed")
        elif action in ("start", "stop", "restart"):
            run([manager, action, name], STOPPING, "engine_start_failed")
        else:
            raise Failed("unsupported", "A container is not enabled or disabled.", manager=manager)
        return {}
    unit, timer = name + ".service", name + "-watchdog.timer"
    if action in ("start", "restart"):
        systemctl("reset-failed", unit)
        _unit_run(action, unit, timer, seconds=STOPPING)
    else:
        # The watchdog goes first: it would take the end for a failure.
        _unit_run(action, timer, unit, seconds=STOPPING)
    if action in ("enable", "disable"):
        # What it says of a unit file stays as it was until it reads it again.
        _unit_run("daemon-reload")
    return {}


def answers(given: dict[str, Any]) -> dict[str, Any]:
    """Ask a service once what its watchdog asks: is it well, what does it serve, and for one token."""
    folders, manager = Folders(given["name"]), given["manager"]
    now = service(manager, given["name"])
    check = given.get("check") or known(folders).get("check")
    if not isinstance(check, dict):
        raise Failed("not_found", "It is not known how to ask that service.", name=given["name"])
    key = str(check.get("key_variable") or "")
    if key:
        os.environ[key] = _secret(folders, key)
    names = ("address", "health", "path", "body", "model")
    asked = argparse.Namespace(
        **{one: str(check[one]) for one in names}, key_variable=key, answer_seconds=60.0
    )
    told = [{"name": one.name, "ok": one.ok, "detail": one.detail[:300]} for one in checks_of(asked)]
    return {
        "answered": all(one["ok"] for one in told) and now["state"] == "running",
        "checks": told,
        "service": now,
        "start_seconds": check.get("start_seconds", 600),
    }


def settle(given: dict[str, Any]) -> dict[str, Any]:
    """Keep what was written as right."""
    settle_files(Folders(given["name"]), given["files"], given["facts"], given["made"])
    return {}


def undo(given: dict[str, Any]) -> dict[str, Any]:
    """Take back what an install did, and let run again what ran before."""
    folders, name, manager = Folders(given["name"]), given["name"], given["manager"]
    before = begun(folders)
    if before is None:
        # Nothing was written yet: what runs is what ran before.
        return undo_files(folders)
    _end(manager, name)
    told = undo_files(folders)
    if manager == SYSTEMD:
        systemctl("daemon-reload")
        if not told["running"]:
            systemctl("reset-failed", name + ".service")
    elif before["first"] and not before.get("volume", True):
        attempt([manager, "volume", "rm", name + "-cache"], QUICK)
    enabled = bool(before.get("enabled", told["running"]))
    if told["running"] or (enabled and not before["first"] and manager == SYSTEMD):
        _begin(folders, manager, name, start=told["running"], enable=enabled)
    if before.get("lingering"):
        end_lingering(name)
    return told


def leaving(given: dict[str, Any]) -> dict[str, Any]:
    """Tell what a removal would remove; nothing is changed."""
    folders = Folders(given["name"])
    _need_ours(folders, given["manager"])
    need(given["manager"])
    return {"service": show(given), "paths": leaving_files(folders)}


def remove(given: dict[str, Any]) -> dict[str, Any]:
    """End a service of ours, and remove all that came with it."""
    folders, name, manager = Folders(given["name"]), given["name"], given["manager"]
    record = known(folders)
    _need_ours(folders, manager)
    need(manager)
    by_hand = [path for path in changed(folders) if os.path.lexists(path)]
    if by_hand and not given["replace"]:
        raise Failed("conflict", "Somebody changed files of it there.", paths=by_hand)
    _end(manager, name)
    if manager != SYSTEMD:
        attempt([manager, "volume", "rm", name + "-cache"], QUICK)
    removed = remove_files(folders)
    if manager == SYSTEMD:
        systemctl("daemon-reload")
        systemctl("reset-failed", name + ".service")
    if record.get("lingering"):
        end_lingering(name)
    left = service(manager, name)
    if left["state"] in ("running", "starting", "restarting"):
        raise Failed("install_failed", "It does not end.", name=name, state=left["state"])
    return {"removed": removed}


def _end(manager: str, name: str) -> None:
    """End a service however it is, and let nothing start it again."""
    if manager == SYSTEMD:
        units = (name + "-watchdog.timer", name + "-watchdog.service", name + ".service")
        systemctl("disable", units[0], units[2], seconds=QUICK)
        systemctl("stop", *units, seconds=STOPPING)
        return
    if container(manager, name).get("there"):
        attempt([manager, "stop", name], STOPPING)
        attempt([manager, "rm", "--force", name], STOPPING)


def _need_ours(folders: Folders, manager: str) -> None:
    if known(folders).get("manager") != manager:
        raise Failed("not_found", "That service is not one of ours.", name=os.path.basename(folders.folder))


def _unit_run(*words: str, seconds: float = QUICK) -> None:
    run(["systemctl", "--user", *words], seconds, "engine_start_failed")


def _volume(manager: str, name: str) -> bool:
    said = attempt([manager, "volume", "inspect", name + "-cache"], QUICK)
    return said is not None and said.returncode == 0


def _image(manager: str, image: str) -> bool:
    said = attempt([manager, "image", "inspect", "--format", "{{.Id}}", image], QUICK)
    return said is not None and said.returncode == 0


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _existing(path: str) -> str:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _secret(folders: Folders, variable: str) -> str:
    """The value that a person filled in for a variable; it is used there and told nobody."""
    try:
        with open(os.path.join(folders.folder, "secrets.env"), encoding="utf-8") as file:
            lines = file.read(1 << 16).splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    found = [line.partition("=")[2] for line in lines if line.startswith(variable + "=")]
    return found[-1].strip().strip("\"'") if found else ""


def _tail(path: str) -> list[str]:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4000))
            text = file.read(4000).decode("utf-8", "replace")
    except OSError:
        return []
    return [line[-300:] for line in text.replace("\r", "\n").splitlines() if line.strip()][-12:]


def ended(said: subprocess.CompletedProcess[str] | None) -> str:
    """Tell how a program ended, in a few words."""
    if said is None:
        return "it is missing, or did not end in time"
    lines = said.stderr.strip().splitlines()
    return lines[-1][:300] if lines else "exit code %d" % said.returncode
