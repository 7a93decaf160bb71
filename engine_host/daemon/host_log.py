"""The host's own log: a file that is rotated, and the buffer that the window reads."""

import asyncio
import contextlib
import logging
import logging.handlers
from collections.abc import Iterator

from engine_host.core import atomic_file
from engine_host.core.bounds.cut_text import cut_text
from engine_host.core.log_buffer import LogBuffer, LogBufferHandler
from engine_host.core.paths import Folders
from engine_host.daemon.repeated_records import RepeatedRecords

_LONGEST = 20_000
"""Characters of a record with its traceback; a huge one must not push out the file's other lines."""


class _Cut(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text, cut with a mark; the name of a file may hold bytes that are none."""
        text = cut_text(super().format(record), _LONGEST)
        return text.encode("utf-8", "backslashreplace").decode()


@contextlib.contextmanager
def host_log(folders: Folders, log_buffer: LogBuffer, level: str) -> Iterator[None]:
    """Write what is logged to the file and the buffer, without repeating it.

    Raises HostError(not_writable), HostError(disk_full).
    """
    try:
        folders.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        to_file = logging.handlers.RotatingFileHandler(
            folders.logs / "host.log",
            maxBytes=5_000_000,
            backupCount=3,
            encoding="utf-8",
            errors="backslashreplace",
        )
    except OSError as error:
        raise atomic_file.saving_failed(folders.logs / "host.log", error) from error
    loop = asyncio.get_running_loop()
    to_buffer = LogBufferHandler(log_buffer, loop)
    to_file.setFormatter(_Cut("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    to_buffer.setFormatter(_Cut("%(name)s: %(message)s"))
    counted = RepeatedRecords((to_file, to_buffer), loop)
    root = logging.getLogger()
    before = root.level
    root.setLevel(level.upper())
    # httpx tells of every poll of an engine at INFO, uvicorn of its own start twice.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    root.addHandler(counted)
    try:
        yield
    finally:
        root.removeHandler(counted)
        for handler in (counted, to_file, to_buffer):
            handler.close()
        root.setLevel(before)
