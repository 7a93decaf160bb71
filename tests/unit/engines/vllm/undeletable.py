"""A file that this user really cannot delete: in a folder without write permission, or immutable for root."""

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Of <linux/fs.h>.
GET_FLAGS, SET_FLAGS, IMMUTABLE = 0x80086601, 0x40086602, 0x10


@contextlib.contextmanager
def undeletable(file: Path) -> Iterator[None]:
    """The file stays wherever its folder is moved; skips the test where the disk has no such thing."""
    if os.geteuid() == 0:
        held = os.open(file, os.O_RDONLY)
        try:
            if not _immutable(held, True):
                pytest.skip("root cannot be kept from deleting files on this disk")
            try:
                yield
            finally:
                assert _immutable(held, False)
        finally:
            os.close(held)
        return
    folder = os.open(file.parent, os.O_RDONLY)
    os.fchmod(folder, 0o500)
    try:
        yield
    finally:
        os.fchmod(folder, 0o700)
        os.close(folder)


def _immutable(file: int, on: bool) -> bool:
    """Set the flag that `chattr +i` sets; False where the disk has none."""
    flags = bytearray(8)
    try:
        fcntl.ioctl(file, GET_FLAGS, flags)
        was = int.from_bytes(flags[:4], sys.byteorder)
        now = was | IMMUTABLE if on else was & ~IMMUTABLE
        fcntl.ioctl(file, SET_FLAGS, now.to_bytes(8, sys.byteorder))
    except OSError:
        return False
    return True
