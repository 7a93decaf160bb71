"""A disk that is full when a test says so: a tiny tmpfs, or a limit on the size of files."""

import contextlib
import resource
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SmallDisk:
    """A folder on a disk of 256 KiB; `real` is False where only the size of files could be limited."""

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
    command = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False, timeout=20).returncode == 0
    except OSError:
        mounted = False
    try:
        yield SmallDisk(folder, mounted)
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True, timeout=20)
