"""A disk that is full when a test says so: a tiny tmpfs, or a limit on the size of files."""

import contextlib
import ctypes
import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Of <sys/mount.h>: gone at once from the tree, and for good when its last file is closed.
MNT_DETACH = 2


@dataclass(frozen=True)
class SmallDisk:
    """A folder on a disk of 4 MiB; `real` is False where only the size of files could be limited."""

    folder: Path
    real: bool

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Nothing more fits while this holds."""
        if not self.real:
            soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            return
        ballast = self.folder / "ballast"
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * 4096)
        try:
            yield
        finally:
            ballast.unlink()


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    """Mount a tiny disk where this user may."""
    folder.mkdir(parents=True)
    library = ctypes.CDLL(None)
    path = os.fsencode(folder)
    mounted = sys.platform == "linux" and library.mount(b"tmpfs", path, b"tmpfs", 0, b"size=4m,mode=700") == 0
    try:
        yield SmallDisk(folder, mounted)
    finally:
        if mounted:
            assert library.umount2(path, MNT_DETACH) == 0
