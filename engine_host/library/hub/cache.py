"""The layout of Hugging Face's cache, so that every program that knows it finds a model in place.

`models--ORG--NAME/blobs/HASH` are the files, `snapshots/COMMIT/NAME` links to them, `refs/REVISION` says
which commit a revision was when it was asked for.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine_host.core import atomic_file

_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_OLLAMA_BLOB = re.compile(r"sha256-([0-9a-f]{64})")
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def cache_folder(environment: Mapping[str, str], home: Path | None = None) -> Path:
    """Return the folder of the hub's cache, as the hub's own tools find it."""
    if given := environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE"):
        return Path(given).expanduser()
    if given := environment.get("HF_HOME"):
        return Path(given).expanduser() / "hub"
    cache = environment.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else (home or Path.home()) / ".cache") / "huggingface" / "hub"


def free_bytes(folder: Path) -> int | None:
    """Return the bytes that may be written to the disk of a folder, existing or not; None if unknown."""
    for place in (folder, *folder.parents):
        with contextlib.suppress(OSError):
            return shutil.disk_usage(place).free
    return None


class RepositoryCache:
    """The folder of one repository in such a cache."""

    def __init__(self, root: Path, repository: str) -> None:
        self._root = root
        self.folder = root / f"models--{repository.replace('/', '--')}"

    def blob(self, name: str) -> Path:
        """Return the place of a file's content."""
        return self.folder / "blobs" / name

    def part(self, name: str) -> Path:
        """Return the place of a content that is not whole yet."""
        return self.folder / "blobs" / f"{name}.incomplete"

    def snapshot(self, commit: str) -> Path:
        """Return the folder that has the files of a commit by their names."""
        return self.folder / "snapshots" / commit

    def publish(self, commit: str, revision: str, blobs: Mapping[str, str]) -> None:
        """Give whole contents their names, all of one commit; `blobs` are names of contents by file.

        Raises OSError, HostError(disk_full), HostError(not_writable).
        """
        snapshot = self.snapshot(commit)
        for name, blob in blobs.items():
            link = snapshot / name
            link.parent.mkdir(parents=True, exist_ok=True)
            target = os.path.relpath(self.blob(blob), link.parent)
            if link.is_symlink() and os.readlink(link) == target:
                continue
            fresh = link.with_name(f".{link.name}.{os.getpid()}.new")
            with contextlib.suppress(FileNotFoundError):
                fresh.unlink()
            fresh.symlink_to(target)
            fresh.replace(link)
        # A commit that was asked for by itself is kept by a reference of that name: whoever looks for the
        # main branch alone would pass over it.
        atomic_file.write(self.folder / "refs" / revision, commit, 0o644)

    def discard(self, blob: str) -> None:
        """Remove a content, whole or not, but for one that a snapshot leads to or another program brings.

        Raises OSError. What is no name of a content is nobody's to remove.
        """
        places = (self.part(blob), self.blob(blob))
        if not _BLOB.fullmatch(blob) or not any(map(os.path.lexists, places)):
            return
        with self.held(blob) as ours:
            if ours and blob not in self._linked():
                for place in places:
                    place.unlink(missing_ok=True)

    def _linked(self) -> set[str]:
        """Return the names of the contents that snapshots lead to. Raises OSError."""
        snapshots = self.folder / "snapshots"
        found: set[str] = set()
        if snapshots.exists():
            for parent, _folders, names in os.walk(snapshots, onerror=_raise):
                links = (Path(parent, name) for name in names)
                found |= {Path(os.readlink(one)).name for one in links if one.is_symlink()}
        return found

    @contextlib.contextmanager
    def held(self, blob: str) -> Iterator[bool]:
        """Keep every other program from a content meanwhile; False where one has it already."""
        folder = self._root / ".locks" / self.folder.name
        folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(folder / f"{blob}.lock", flags, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
            yield True
        finally:
            os.close(handle)


def _raise(error: OSError) -> None:
    raise error


def hash_in_name(path: Path) -> str | None:
    """Return the hash that a file's place promises: a blob of the hub's cache or of Ollama's; None elsewhere.

    64 digits are SHA-256, 40 are git's own.
    """
    real = Path(os.path.realpath(path))
    if real.parent.name != "blobs":
        return None
    if ollama := _OLLAMA_BLOB.fullmatch(real.name):
        return ollama[1]
    return real.name if _BLOB.fullmatch(real.name) else None
