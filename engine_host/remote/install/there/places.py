"""Folders, files and links of the installed host there."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import tempfile
import time
from typing import Any, Iterator

_PATIENCE = 20.0
RECORD = "install.json"


SWITCHED = "switched"
"""Said in the note of an install once its host has run: what it keeps is somebody's from then on."""
COMPLETE = "complete.json"


UNIT = "sndr-host.service"


class Failed(Exception):  # noqa: N818 - said as what it is
    """A step that did not work: a reason for code, a sentence, and what was seen."""

    def __init__(self, reason: str, message: str, **evidence: Any) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.evidence = evidence


def failure_of(error: Exception) -> Failed:
    """Return whatever stopped a step as a failure with a reason."""
    if isinstance(error, Failed):
        return error
    if isinstance(error, OSError):
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "The disk there is full." if full else "A file there could not be written."
        return Failed(
            "disk_full" if full else "not_writable",
            "The quota of that user there is used up." if error.errno == errno.EDQUOT else what,
            path=str(error.filename or ""),
            errno=error.errno,
            error=str(error.strerror or error),
        )
    said = "%s: %s" % (type(error).__name__, error)
    return Failed("install_failed", "A step there met something that it does not know.", error=said[:500])


class Places:
    """The folders of the program for this user, as the host itself finds them."""

    def __init__(self) -> None:
        self.home = os.path.expanduser("~")
        moved = os.environ.get("SNDR_HOME")
        base = os.path.abspath(os.path.expanduser(moved)) if moved else None
        self.config = os.path.join(base, "config") if base else self._xdg("XDG_CONFIG_HOME", ".config")
        self.data = os.path.join(base, "data") if base else self._xdg("XDG_DATA_HOME", ".local/share")
        self.cache = os.path.join(base, "cache") if base else self._xdg("XDG_CACHE_HOME", ".cache")
        if os.environ.get("SNDR_CACHE"):
            self.cache = os.path.abspath(os.path.expanduser(os.environ["SNDR_CACHE"]))
        self.own = [self.config, self.data, self.cache]
        self.moved_by = dict.fromkeys(self.own, "SNDR_HOME")
        if base is None:
            names = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
            self.moved_by = dict(zip(self.own, names))
        if os.environ.get("SNDR_CACHE"):
            self.moved_by[self.cache] = "SNDR_CACHE"
        if base:
            self.own.append(os.path.join(base, "run"))
        self.root = os.path.join(self.data, "host")
        self.current = os.path.join(self.root, "current")
        self.previous = os.path.join(self.root, "previous")
        self.incoming = os.path.join(self.root, "incoming")
        settings = os.environ.get("XDG_CONFIG_HOME") or os.path.join(self.home, ".config")
        self.unit = os.path.join(settings, "systemd", "user", UNIT)

    def _xdg(self, name: str, usual: str) -> str:
        given = os.environ.get(name, "").strip()
        return os.path.join(given or os.path.join(self.home, usual), "sndr")

    def release(self, name: str) -> str:
        """The folder of a release; a name with anything of a path in it is refused."""
        if not name or name.startswith(".") or set(name) & set("/\\\0"):
            raise Failed("bad_request", "That is no name of a release.", name=name)
        return os.path.join(self.root, name)


class Alone:
    """Keeps a second install into the same folder out: one whose connection was lost may still be at work."""

    def __init__(self, changing: bool) -> None:
        # Outside of that folder, which may come and go while it is held.
        of = hashlib.sha256(os.fsencode(Places().root)).hexdigest()[:12]
        self._path = os.path.join(tempfile.gettempdir(), "sndr-install-%d-%s.lock" % (os.getuid(), of))
        self._changing = changing
        self._file: int | None = None

    def __enter__(self) -> None:
        if not self._changing:
            return
        end = time.monotonic() + _PATIENCE
        while True:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Who held it removes it in the end: then this is the lock of a file that nobody else sees.
                if os.path.samestat(os.fstat(self._file), os.lstat(self._path)):
                    return
            except (BlockingIOError, FileNotFoundError):
                pass
            os.close(self._file)
            self._file = None
            if time.monotonic() > end:
                raise Failed("conflict", "Another install of this user is at work there.")
            time.sleep(0.5)

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.unlink(self._path)
            os.close(self._file)


def missing(path: str) -> Iterator[str]:
    while not os.path.isdir(path):
        yield path
        path = os.path.dirname(path)


def existing(path: str) -> str:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def is_complete(folder: str) -> bool:
    return not os.path.islink(folder) and os.path.isfile(os.path.join(folder, COMPLETE))


def release_of(link: str) -> str | None:
    return os.path.basename(os.readlink(link)) if os.path.islink(link) and os.path.isdir(link) else None


def lead(link: str, name: str) -> None:
    os.replace(beside(link, name), link)


def beside(link: str, name: str, ending: str = ".new") -> str:
    """Make a link to a release beside another, whose place it can take without room on the disk."""
    path = link + ending
    if os.path.islink(path):
        os.remove(path)
    os.symlink(name, path)
    return path


def read(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            value = json.loads(file.read(1 << 20))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def write(path: str, value: dict[str, Any]) -> None:
    try:
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1)
        os.replace(path + ".new", path)
    except OSError:
        with contextlib.suppress(OSError):
            os.remove(path + ".new")
        raise


def size(folder: str) -> int:
    return sum(
        os.lstat(os.path.join(where, name)).st_size for where, _, names in os.walk(folder) for name in names
    )


def tail(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line[:500] for line in file.read().splitlines()[-12:]]
    except OSError:
        return []
