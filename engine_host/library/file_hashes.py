"""Hashes of files on this machine: computed when somebody asks, remembered while a file is not written to."""

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.outside.files import open_regular
from engine_host.core.store import Store

_KIND = "checked file"
_KEPT = 5000
_PIECE = 8 << 20


@dataclass(frozen=True, slots=True)
class Hashes:
    """The SHA-256 of a content, and the hash (SHA-1) that git has for it."""

    sha256: str
    git: str

    def is_called(self, promised: str) -> bool:
        """Tell whether a hash, of either kind by its length, is this content's."""
        return promised == (self.sha256 if len(promised) == 64 else self.git)


class Hashing:
    """Both hashes of a content that comes in pieces; its size in bytes is known before."""

    def __init__(self, size: int) -> None:
        self._sha256 = hashlib.sha256()
        # Nothing rests on its strength: git's name of a small file tells what was damaged on its way.
        self._git = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)

    def add(self, piece: bytes) -> None:
        """Take a piece."""
        self._sha256.update(piece)
        self._git.update(piece)

    @property
    def hashes(self) -> Hashes:
        """The hashes of what was taken."""
        return Hashes(self._sha256.hexdigest(), self._git.hexdigest())


class FileHashes:
    """Remembers hashes in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def known(self, path: Path) -> Hashes | None:
        """Return the hashes of a file as it is now, if they were ever computed. Raises HostError."""
        kept = self._store.get(_KIND, os.path.realpath(path))
        if kept is None:
            return None
        try:
            remembered = json.loads(kept)
            if remembered["mark"] != _mark(path):
                return None
            return Hashes(str(remembered["sha256"]), str(remembered.get("git", "")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def remember(self, path: Path, hashes: Hashes) -> None:
        """Keep the hashes of a file as it is now. Raises HostError."""
        try:
            mark = _mark(path)
        except OSError:
            return
        body = json.dumps({"mark": mark, "sha256": hashes.sha256, "git": hashes.git})
        self._store.put(_KIND, os.path.realpath(path), time.time(), body)
        self._store.prune(_KIND, _KEPT)


def hash_file(path: Path, tell: Callable[[int], None], stopped: Callable[[], bool]) -> Hashes | None:
    """Hash a file, None where it was stopped; blocks. `tell` gets the bytes read. Raises OSError."""
    with open_regular(path) as source:
        found, done = Hashing(os.fstat(source.fileno()).st_size), 0
        while piece := source.read(_PIECE):
            if stopped():
                return None
            found.add(piece)
            done += len(piece)
            tell(done)
    return found.hashes


def _mark(path: Path) -> list[int]:
    """Changes when a file is written to. Raises OSError."""
    state = path.stat()
    return [state.st_size, state.st_mtime_ns, state.st_ino]
