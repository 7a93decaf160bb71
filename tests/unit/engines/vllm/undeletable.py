"""A file that this user really cannot delete: in a folder without write permission, or immutable for root."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def undeletable(file: Path) -> Iterator[None]:
    """The file stays wherever its folder is moved; skips the test where the disk has no such thing."""
    if os.geteuid() == 0:
        if subprocess.run(["chattr", "+i", str(file)], capture_output=True, check=False).returncode:
            pytest.skip("root cannot be kept from deleting files on this disk")
        held = os.open(file, os.O_RDONLY)
        try:
            yield
        finally:
            now = os.readlink(f"/proc/self/fd/{held}")
            subprocess.run(["chattr", "-i", now], check=True)
            os.close(held)
        return
    folder = os.open(file.parent, os.O_RDONLY)
    os.fchmod(folder, 0o500)
    try:
        yield
    finally:
        os.fchmod(folder, 0o700)
        os.close(folder)
