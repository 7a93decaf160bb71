"""The files of a service there: compared, written beside and renamed, brought back, removed."""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import Any

from engine_host.remote.install.there.places import Failed, missing, names, read, write
from engine_host.remote.install.there.staying import SERVICE_RECORD, deployed, hand_over

_BEFORE, _MANIFEST = ".before", "manifest.json"
_NEW = ".sndr-new"
_LONGEST = 256 << 10
_MOST = 4 << 20


class Folders:
    """The places of the files of a service; its name is one word without anything of a path."""

    def __init__(self, name: str) -> None:
        if not name or name.startswith(".") or set(name) & set("/\\\0"):
            raise Failed("bad_request", "That is no name of a service.", name=name)
        home = os.path.expanduser("~")
        config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
        self.home = home
        self.all = deployed()
        self.folder = os.path.join(self.all, name)
        self.units = os.path.join(config, "systemd", "user")
        self.cache = os.path.join(cache, "sndr", "deploy", name)
        self.record = os.path.join(self.folder, SERVICE_RECORD)
        self.before = os.path.join(self.folder, _BEFORE)

    def path(self, place: str, name: str) -> str:
        """The path of a file; one that would lead out of its folder is refused."""
        parts = name.split("/")
        if not all(parts) or any(part in (".", "..") or "\0" in part for part in parts):
            raise Failed("bad_request", "That is no name of a file.", name=name)
        return os.path.join(self.units if place == "units" else self.folder, *parts)


def known(folders: Folders) -> dict[str, Any]:
    """Return what was written down of a service when it was installed; empty for one that is not ours."""
    return read(folders.record) or {}


def begun(folders: Folders) -> dict[str, Any] | None:
    """Return what an install that has not ended yet wrote down of what was before; None where none is."""
    return read(os.path.join(folders.before, _MANIFEST))


def note_lingering(folders: Folders) -> None:
    """Write down that lingering was set by an install that has not ended yet."""
    manifest = begun(folders)
    if manifest is not None:
        write(os.path.join(folders.before, _MANIFEST), {**manifest, "lingering": True})


def digests(record: dict[str, Any]) -> dict[str, str]:
    """The hash of each file as it was written, by its path."""
    files = record.get("files")
    return {str(path): str(sha) for path, sha in files.items()} if isinstance(files, dict) else {}


def changed(folders: Folders) -> list[str]:
    """The files that are neither as they were written, nor as an install that was cut off wrote them."""
    meant = digests(begun(folders) or {})
    written = sorted(digests(known(folders)).items())
    return [path for path, sha in written if _digest(path) not in (sha, meant.get(path, sha))]


def _every(folders: Folders) -> list[str]:
    """All files that were written, those of an install that was cut off too."""
    return sorted({**digests(known(folders)), **digests(begun(folders) or {})})


def compared(folders: Folders, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tell what would become of each file; the text that is there, where it differs and is short."""
    written, meant = digests(known(folders)), digests(begun(folders) or {})
    told = []
    for one in asked:
        path = folders.path(one["place"], one["name"])
        now = _digest(path)
        entry: dict[str, Any] = {"path": path, "state": "same", "text": ""}
        if now is None:
            entry["state"] = "new"
        elif one.get("keep"):
            entry["state"] = "kept"
        elif now != one["sha256"]:
            entry["state"] = "changed" if now in (written.get(path), meant.get(path)) else "by_hand"
            entry["text"] = _text(path)
        told.append(entry)
    return told


def gone(folders: Folders, asked: list[dict[str, Any]]) -> list[str]:
    """The files of an earlier install that are not wanted any more."""
    wanted = {folders.path(one["place"], one["name"]) for one in asked}
    return [path for path in _every(folders) if path not in wanted and os.path.lexists(path)]


def put_files(
    folders: Folders, asked: list[dict[str, Any]], *, replace: bool, **before: Any
) -> dict[str, Any]:
    """Write all files beside, keep those that are there, then rename; `undo_files` brings these back.

    `before` is what else has to be known of it then.
    """
    told = compared(folders, asked)
    by_hand = [one["path"] for one in told if one["state"] == "by_hand"]
    if by_hand and not replace:
        raise Failed("conflict", "Somebody changed files of it there.", paths=by_hand)
    record, again = known(folders), begun(folders)
    old = gone(folders, asked)
    written = [
        (one, entry) for one, entry in zip(asked, told) if entry["state"] in ("new", "changed", "by_hand")
    ]
    wanted = {folders.folder, *(os.path.dirname(entry["path"]) for _, entry in written)}
    new_folders = sorted({path for folder in wanted for path in missing(folder)}, key=len)
    # systemd makes these when the unit starts.
    of_cache = list(missing(folders.cache))
    files = {entry["path"]: one["sha256"] for one, entry in zip(asked, told) if not one.get("keep")}
    manifest = again or {**before, "entries": [], "made": [], "files": {}, "first": not record}
    try:
        for path in new_folders:
            os.mkdir(path, 0o700)
        # What ran before a try that was cut off is what an undo brings back.
        _keep(folders, manifest, [entry["path"] for _, entry in written] + old)
        manifest["made"] += [path for path in (*new_folders, *of_cache) if path not in manifest["made"]]
        manifest["files"] = {**manifest.get("files", {}), **files}
        write(os.path.join(folders.before, _MANIFEST), manifest)
        for one, entry in written:
            _write_beside(entry["path"], one)
        for _, entry in written:
            os.replace(entry["path"] + _NEW, entry["path"])
        for path in old:
            os.remove(path)
    except OSError:
        # Of an earlier try something may run: taking that back is more than bringing back files.
        if again is None and not undo_files(folders)["undone"]:
            drop_empty(new_folders)
        raise
    made = [str(path) for path in record.get("made", []) if isinstance(path, str)]
    made += [path for path in manifest["made"] if path not in made]
    return {"made": made, "written": [entry["path"] for _, entry in written], "removed": old}


def _write_beside(path: str, one: dict[str, Any]) -> None:
    mode = 0o600 if one.get("keep") else 0o755 if one.get("executable") else 0o644
    new = path + _NEW
    if os.path.lexists(new):
        os.remove(new)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(one["text"])
        file.flush()
        os.fsync(file.fileno())
    os.chmod(new, mode)


def _keep(folders: Folders, manifest: dict[str, Any], paths: list[str]) -> None:
    """Copy files that are not kept yet, and note which were there."""
    os.makedirs(folders.before, mode=0o700, exist_ok=True)
    there = {one["path"] for one in manifest["entries"]}
    for number, path in enumerate([path for path in paths if path not in there], len(there)):
        had = os.path.lexists(path)
        if had:
            shutil.copy2(path, os.path.join(folders.before, str(number)), follow_symlinks=False)
        manifest["entries"].append({"path": path, "kept": str(number) if had else None})


def undo_files(folders: Folders) -> dict[str, Any]:
    """Bring back what was there before the last `put_files`, and tell if there was something and it ran.

    `first` says that nothing was there before, and nothing is left.
    """
    manifest = begun(folders)
    if manifest is None:
        # Nothing was changed yet when there is no list of what was kept.
        if not os.path.lexists(os.path.join(folders.before, _MANIFEST)):
            shutil.rmtree(folders.before, ignore_errors=True)
        return {"undone": False, "running": False, "first": False}
    for one in manifest["entries"]:
        path, kept = one["path"], one["kept"]
        for leftover in (path + _NEW, path) if kept is None else (path + _NEW,):
            if os.path.lexists(leftover):
                os.remove(leftover)
        if kept is not None:
            os.replace(os.path.join(folders.before, kept), path)
    shutil.rmtree(folders.before, ignore_errors=True)
    for path in (folders.folder, folders.cache):
        # A folder that was there before may have files of somebody.
        if manifest["first"] and path in manifest["made"]:
            shutil.rmtree(path, ignore_errors=True)
    drop_empty(manifest["made"])
    first = bool(manifest["first"]) and not os.path.lexists(folders.folder)
    return {"undone": True, "running": bool(manifest["running"]), "first": first}


def settle_files(
    folders: Folders, asked: list[dict[str, Any]], facts: dict[str, Any], made: list[str]
) -> None:
    """Keep what was written as right, and forget what was before."""
    files = {folders.path(one["place"], one["name"]): one["sha256"] for one in asked if not one.get("keep")}
    lingering = any((one or {}).get("lingering") for one in (known(folders), begun(folders), facts))
    write(folders.record, {**facts, "files": files, "made": made, "lingering": bool(lingering)})
    shutil.rmtree(folders.before, ignore_errors=True)


def leaving_files(folders: Folders) -> list[str]:
    """The files and folders that go with a service."""
    outside = [path for path in _every(folders) if not path.startswith(folders.folder + os.sep)]
    return [path for path in [*outside, folders.folder, folders.cache] if os.path.lexists(path)]


def remove_files(folders: Folders) -> list[str]:
    """Remove the files of a service, its folder and caches, and the folders that were made for it."""
    record = known(folders)
    removed = []
    for path in leaving_files(folders):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)
        removed.append(path)
    made = record.get("made")
    folders_made = list(map(str, made)) if isinstance(made, list) else []
    drop_empty(folders_made)
    # Those that others use now go with the last of them.
    hand_over(path for path in folders_made if os.path.isdir(path))
    return removed


def drop_empty(paths: list[str]) -> None:
    """Remove folders that were made for a service, the deepest first, where nothing else is in them."""
    for path in sorted(map(str, paths), key=len, reverse=True):
        try:
            os.rmdir(path)
        except OSError:
            continue


def of_ours() -> list[str]:
    """The names of all services with a folder of ours."""
    return [one for one in names(Folders("any").all) if not one.startswith(".")][:200]


def _digest(path: str) -> str | None:
    """The hash of a file; None where there is none, an empty word for what cannot be read or is no file."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read(_MOST)).hexdigest()
    except FileNotFoundError:
        return None
    except OSError:
        return ""


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST)
    except OSError:
        return ""
