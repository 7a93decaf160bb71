"""Releases there: made from what was uploaded, and switched to."""

from __future__ import annotations

import contextlib
import os
import shutil
import tarfile
import time
import zipfile
from typing import Any

from engine_host.remote.install.there.places import (
    COMPLETE,
    RECORD,
    SWITCHED,
    Failed,
    Places,
    beside,
    failure_of,
    is_complete,
    lead,
    missing,
    names,
    read,
    release_of,
    size,
    tail,
    write,
)
from engine_host.remote.install.there.programs import LONG, NO_PROGRAMS, QUICK, check_caller, pip, run, sndr
from engine_host.remote.install.there.service import answering, launch, refuse_other, start, stop
from engine_host.remote.install.there.wholeness import damage, note_files

_LEAST_FREE = 4 << 20
"""Bytes without which a host does not start: its database, its log, its notes."""


def begin(asked: dict[str, Any]) -> dict[str, Any]:
    """Make the folders, remember what was not there before, and clear what an install that broke off left."""
    places = Places()
    record = read(os.path.join(places.root, RECORD))
    if record is None:
        wanted = [*places.own, os.path.dirname(places.unit)]
        made = [path for one in wanted for path in missing(one)]
        record = {"made": sorted(set(made), key=len), "service": None, "set_lingering": False}
    os.makedirs(places.incoming, mode=0o700, exist_ok=True)
    write(os.path.join(places.root, RECORD), record)
    # The first part of a file has the name of the whole, as the program that receives files gives it.
    wanted_now = {name for whole in asked["files"] for name in (whole, "." + whole + ".sndr-part")}
    for name in names(places.incoming):
        if name not in wanted_now:
            os.remove(os.path.join(places.incoming, name))
    free = shutil.disk_usage(places.root).free
    if free < asked["needs"]:
        raise Failed(
            "disk_full",
            "The disk there has too little room.",
            free=free,
            needed=asked["needs"],
            path=places.root,
        )
    return {"incoming": places.incoming}


def environment(asked: dict[str, Any]) -> dict[str, Any]:
    """Make the release's own Python environment out of what was uploaded."""
    places = Places()
    whole = places.release(asked["release"])
    if damage(whole) is None:
        return {"was_there": True}
    # Beside a damaged one: a host may run from it, and it stays where this fails.
    target = whole + ".new"
    wheel = os.path.join(places.incoming, os.path.basename(asked["wheel"]))
    bundle = os.path.join(places.incoming, os.path.basename(asked["bundle"])) if asked["bundle"] else None
    shutil.rmtree(target, ignore_errors=True)
    try:
        without = ["--without-pip"] if bundle else []
        run([asked["python"], "-m", "venv", *without, target], LONG, "install_failed", NO_PROGRAMS)
        own = os.path.join(target, "bin", "python")
        packages = run(
            [own, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], QUICK, "install_failed"
        )
        if bundle:
            _unpack(bundle, packages.strip())
        else:
            lock = os.path.join(target, "host.lock")
            with open(lock, "w", encoding="utf-8") as file:
                file.write(asked["lock"])
            run([*pip(own, "install"), "-r", lock], LONG, "download_failed", NO_PROGRAMS)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages.strip())
        program = os.path.join(target, "bin", "sndr")
        with open(program, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nexec "$(dirname "$(readlink -f "$0")")/python" -P -m engine_host "$@"\n')
        os.chmod(program, 0o755)
        said = sndr(target, ["version", "--json"])
        note_files(target)
        write(os.path.join(target, COMPLETE), {"at": time.time(), "version": said, "python": asked["python"]})
        shutil.rmtree(whole, ignore_errors=True)
        os.replace(target, whole)
    except BaseException:
        # Half an environment is of no use to anybody, and may be what fills the disk.
        shutil.rmtree(target, ignore_errors=True)
        raise
    return {"was_there": False, "version": said, "size": size(whole)}


def switch(asked: dict[str, Any]) -> dict[str, Any]:
    """Lead `current` to a release and start it; where it does not answer, the one before comes back."""
    places = Places()
    target = places.release(asked["release"])
    if not is_complete(target):
        raise Failed("not_found", "That release is not installed there.", release=asked["release"])
    refuse_other(places)
    if (free := shutil.disk_usage(places.root).free) < _LEAST_FREE:
        # Nothing could be started any more, not even what runs now.
        full = {"free": free, "needed": _LEAST_FREE, "path": places.root}
        raise Failed("disk_full", "The disk there is full, and nothing was changed.", **full)
    led = os.path.basename(os.readlink(places.current)) if os.path.islink(places.current) else None
    before = release_of(places.current)
    record = read(os.path.join(places.root, RECORD)) or {}
    another = led is not None and led != asked["release"]
    # Made while nothing has changed yet: on a full disk it could not be made any more.
    link_back = beside(places.current, str(led), ".before") if another else None
    service = record.get("service") or "plain"
    try:
        stop(places, record)
        lead(places.current, asked["release"])
        told = start(places, record, asked["unit"])
        version = answering(places, target, told.get("pid"))
    except Exception as error:
        failure = failure_of(error)
        stop(places, record)
        if failure.reason == "verification_failed" and shutil.disk_usage(places.root).free < _LEAST_FREE:
            # Its host can neither write its files nor say so in its log.
            failure = Failed("disk_full", "The new host cannot start: the disk is full.", **failure.evidence)
        failure.evidence["log"] = tail(os.path.join(places.root, "host.log"))
        failure.evidence["back_on"] = None
        if link_back is not None:
            os.replace(link_back, places.current)
        if link_back is not None and before is not None:
            try:
                answering(places, places.release(str(before)), launch(places, service))
                failure.evidence["back_on"] = before
            except Exception as again:  # noqa: BLE001 - the first failure is the one to tell
                failure.evidence["back_failed"] = failure_of(again).message
        elif led is None and os.path.islink(places.current):
            os.remove(places.current)
        raise failure from error
    # On a disk that is full by now the link says the same.
    with contextlib.suppress(OSError):
        write(os.path.join(places.root, RECORD), {**record, SWITCHED: True})
    if link_back is not None and before is not None:
        os.replace(link_back, places.previous)
    elif link_back is not None:
        os.remove(link_back)
    kept = {asked["release"], release_of(places.previous)}
    for name in names(places.root):
        folder = os.path.join(places.root, name)
        # Others, what a killed step left of one, and what was uploaded.
        if name not in kept and os.path.isdir(folder) and not os.path.islink(folder):
            shutil.rmtree(folder, ignore_errors=True)
    return {"before": before, "version": version, **told}


def demo(asked: dict[str, Any]) -> dict[str, Any]:
    """Let the bundled model answer a question there, and stop it again."""
    target = os.path.realpath(Places().current)
    sndr(target, ["run", "--demo", "--detach", "--json"], seconds=180.0, reason="verification_failed")
    try:
        answer = sndr(target, ["chat", "--json", asked["question"]], reason="verification_failed")
    finally:
        sndr(target, ["stop", "sndr-demo", "--json"], reason="verification_failed")
    return {"answer": answer}


def _unpack(bundle: str, folder: str) -> None:
    with tarfile.open(bundle) as archive:
        for member in archive:
            check_caller()
            inside = os.path.normpath(os.path.join(folder, member.name))
            if not (member.isreg() or member.isdir()) or not inside.startswith(folder + os.sep):
                raise Failed(
                    "verification_failed", "The packages hold a file that leads elsewhere.", name=member.name
                )
            archive.extract(member, folder, set_attrs=member.isreg())
