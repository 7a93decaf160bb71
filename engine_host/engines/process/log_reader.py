"""Reads a log on while it is written, also over the beginning of another file in its place."""

import os
from pathlib import Path

CHUNK = 1 << 18


class LogReader:
    """The bytes of a log, from its beginning; raises OSError where it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")

    @property
    def size(self) -> int:
        """The bytes in the file that is read now."""
        return os.fstat(self._file.fileno()).st_size

    def read(self) -> bytes:
        """Return what comes next; nothing where all was read.

        A writer begins another file when one is full. Where it did so twice since the last look, what only
        the file between them held is said to be missing.
        """
        if chunk := self._file.read(CHUNK):
            return chunk
        if self._file.tell() > self.size:
            self._file.seek(0)  # It could not be put aside and was emptied.
            return self._file.read(CHUNK)
        try:
            there = os.stat(self._path).st_ino
            if there == os.fstat(self._file.fileno()).st_ino:
                return b""
            following = self._path.open("rb")
        except OSError:
            return b""  # It was removed, or is just being replaced.
        # Between the read and the look more may have been written to the old one.
        if chunk := self._file.read(CHUNK):
            following.close()
            return chunk
        gap = "" if self._is_the_one_before() else f"[lines are missing here; the log is {self._path}]\n"
        self._file.close()
        self._file = following
        return gap.encode() + self._file.read(CHUNK)

    def skip_to_last_lines(self) -> int:
        """Go on to the lines at the end, at most `CHUNK` bytes; return the bytes that were passed over."""
        before = self._file.tell()
        start = max(before, self.size - CHUNK)
        # One byte earlier: a line that begins exactly there is whole.
        self._file.seek(start - 1)
        if not self._file.readline(CHUNK).endswith(b"\n"):
            self._file.seek(start)
        return self._file.tell() - before

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _is_the_one_before(self) -> bool:
        try:
            before = os.stat(self._path.with_name(f"{self._path.name}.1"))
        except OSError:
            return False
        return before.st_ino == os.fstat(self._file.fileno()).st_ino
