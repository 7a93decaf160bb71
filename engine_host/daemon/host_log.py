"""The host's own log: a file that is rotated, and the buffer that the window reads."""

import asyncio
import contextlib
import logging
import logging.handlers
import sys
from collections.abc import Iterator
from pathlib import Path

from engine_host.core import atomic_file
from engine_host.core.bounds.cut_text import cut_text
from engine_host.core.log_buffer import LogBuffer, LogBufferHandler
from engine_host.core.paths import Folders
from engine_host.daemon.repeated_records import RepeatedRecords
from engine_host.protocol.events import EventBase, JobDoneEvent, MarkEvent
from engine_host.protocol.jobs import Job, JobState
from engine_host.protocol.telemetry import Mark, MarkKind

_log = logging.getLogger(__name__)

_BAD = {MarkKind.DIED, MarkKind.OUT_OF_MEMORY, MarkKind.PATCH_FAILED}
_LONGEST = 20_000
"""Characters of a record with its traceback; a huge one must not push out the file's other lines."""


class _Cut(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text, cut with a mark; the name of a file may hold bytes that are none."""
        text = cut_text(super().format(record), _LONGEST)
        return text.encode("utf-8", "backslashreplace").decode()


class LogFile(logging.handlers.RotatingFileHandler):
    """Lines that the disk does not take are counted, and the count is told as soon as it takes some again.

    Raises OSError where the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=5_000_000, backupCount=3, encoding="utf-8", errors="backslashreplace")
        self._lost = 0
        self._reason = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; what was lost before it stands before it."""
        if lost := self._lost:
            self._lost = 0
            told = "%d lines are lost: %s", (lost, self._reason)
            super().emit(logging.LogRecord(__name__, logging.WARNING, "", 0, *told, None))
            if self._lost:
                self._lost = lost + 1
                return
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Count what could not be written; a defect in a message is told as ever."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        self._lost += 1
        self._reason = error.strerror or str(error)
        # What is left in its buffer would be tried, and fail, again and again.
        stream, self.stream = self.stream, None
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()

    def close(self) -> None:
        """Close the file, full disk or not."""
        with contextlib.suppress(OSError):
            super().close()


@contextlib.contextmanager
def host_log(folders: Folders, log_buffer: LogBuffer, level: str) -> Iterator[None]:
    """Write what is logged to the file and the buffer, without repeating it.

    Raises HostError(not_writable), HostError(disk_full).
    """
    try:
        folders.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        to_file = LogFile(folders.logs / "host.log")
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


def tell_in_log(event: EventBase) -> None:
    """Write a line for each engine that started, was ready, was refused or ended, and for each job's end.

    No prompt and no key is in these events.
    """
    if isinstance(event, MarkEvent):
        # What came again has its line.
        if event.mark.times == 1:
            _mark(event.mark)
    elif isinstance(event, JobDoneEvent):
        _job(event.job)


def _mark(mark: Mark) -> None:
    level = logging.WARNING if mark.kind in _BAD else logging.INFO
    _log.log(level, "%s%s", mark.text, f" ({mark.engine})" if mark.engine else "")


def _job(job: Job) -> None:
    seconds = (job.ended_at or job.created_at) - (job.started_at or job.created_at)
    if job.error is not None:
        _log.warning("%s: %s after %.1f s: %s", job.title, job.error.reason.value, seconds, job.error.message)
    elif job.state is JobState.CANCELLED:
        _log.info("%s: cancelled after %.1f s", job.title, seconds)
    else:
        _log.info("%s: done after %.1f s", job.title, seconds)
