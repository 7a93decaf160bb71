"""The host's side of an engine's log: a pipe, and the process at its end that writes the log down."""

import asyncio
import contextlib
import fcntl
import logging
import os
import select
import stat
import subprocess
import time
from collections.abc import Collection
from pathlib import Path

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import full_system
from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.engines.process import log_writer
from engine_host.engines.process.reaper_main import OWNER_VARIABLE
from engine_host.engines.served_lines import ServedLines
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

_log = logging.getLogger(__name__)
LARGEST_LOG = 32 << 20
"""Bytes of a log; with the one before it, twice as many."""
# A writer that dies at once, again and again, is not started for ever: so many times in so many seconds.
_MOST_STARTS, _WITHIN = 5, 60.0
_PATIENCE = 2.0
# Writers of engines that go on without this object: this process stays their parent and collects them.
_left: list[subprocess.Popen[bytes]] = []


class LogPipe:
    """A pipe for an engine's output; its writer outlives this host, and is replaced should it die.

    The host holds the reading end, so that an engine whose writer was killed meets no broken pipe.
    """

    def __init__(
        self, path: Path, served: ServedLines, reading: int, writing: int, *, withhold: bool
    ) -> None:
        self.path = path
        self._served = served
        self._reading = reading
        self._writing = writing
        self._withhold = withhold
        self._writer: subprocess.Popen[bytes] | None = None
        self._starts: list[float] = []

    @classmethod
    def create(cls, path: Path, served: ServedLines) -> "LogPipe":
        """Make the log anew, with a writer. Raises HostError(disk_full), HostError(not_writable)."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        except OSError as error:
            raise atomic_file.saving_failed(path, error) from error
        pipe = cls(path, served, *os.pipe(), withhold=False)
        try:
            pipe._start()
        except OSError as error:
            pipe.close()
            raise HostError(
                Reason.ENGINE_START_FAILED,
                tr("The writer of the engine's log could not be started: {error}.", error=error.strerror),
                cause=full_system(),
                fix="Try again in a minute.",
                evidence={"errno": error.errno},
            ) from error
        return pipe

    @classmethod
    def of_engine(cls, path: Path, served: ServedLines, pid: int) -> "LogPipe | None":
        """The pipe of an engine that is there; None where its output goes elsewhere or nobody may look."""
        try:
            output = f"/proc/{pid}/fd/1"
            if not stat.S_ISFIFO(os.stat(output).st_mode):
                return None
            # Requests may have come to it already: a new writer withholds from its start.
            return cls(path, served, os.open(output, os.O_RDONLY), -1, withhold=True)
        except OSError:
            return None

    @property
    def writing(self) -> int:
        """The end for the engine."""
        return self._writing

    async def withhold(self, pid: int) -> None:
        """Have only the named lines written down, from what this engine prints next.

        Raises HostError(not_writable).
        """
        try:
            if self._writing >= 0:
                await asyncio.to_thread(self._mark, self._writing)
                self.engine_ended()
            else:
                writing = os.open(f"/proc/{pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
                try:
                    await asyncio.to_thread(self._mark, writing)
                finally:
                    os.close(writing)
        except OSError as error:
            raise HostError(
                Reason.NOT_WRITABLE,
                tr(
                    "The log {path} is not being written: {error}.",
                    path=self.path,
                    error=error.strerror or error,
                ),
                cause="Its writer hangs, most likely at a disk that does not answer.",
                fix="Look at that disk, and start the engine again.",
                evidence={"path": str(self.path)},
            ) from error
        self._withhold = True

    @staticmethod
    def _mark(writing: int) -> None:
        """Say to the writer, in the stream, that requests may come. Raises OSError."""
        if not select.select([], [writing], [], _PATIENCE)[1]:
            raise TimeoutError("the pipe is full")
        os.write(writing, log_writer.MARK + b"\n")

    def ensure(self) -> None:
        """Start another writer if there is none."""
        if self._reading < 0 or self.written_by_somebody():
            return
        self._starts = [at for at in self._starts if time.monotonic() - at < _WITHIN]
        if len(self._starts) < _MOST_STARTS:
            _log.warning("the writer of %s was ended from outside; starting another", self.path)
            try:
                self._start()
            except OSError as error:
                _log.warning("it could not be started: %s", error.strerror)
        else:
            _log.error("the writer of %s ended %d times in a minute: off", self.path, len(self._starts))
            # Better a broken pipe, which engines survive, than one that nobody empties.
            self.close()

    def written_by_somebody(self) -> bool:
        """Return True while a writer is at work: it holds the pipe locked."""
        if self._writer is not None and self._writer.poll() is None:
            return True
        if self._reading < 0:
            return False
        try:
            # Opened anew, because a lock belongs to what was opened.
            handle = os.open(f"/proc/self/fd/{self._reading}", os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    def engine_ended(self) -> None:
        """Let go of the engine's end, so that the writer sees the end of the stream."""
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1

    def close(self) -> None:
        """Let go of both ends; the writer goes on as long as the engine prints."""
        self.engine_ended()
        if self._reading >= 0:
            os.close(self._reading)
            self._reading = -1
        if self._writer is not None:
            _left.append(self._writer)
            self._writer = None
        _left[:] = [writer for writer in _left if writer.poll() is None]

    def _start(self) -> None:
        self._starts.append(time.monotonic())
        rules, giving = os.pipe()
        try:
            with os.fdopen(giving, "wb") as file:
                file.write(self._served.written())
            command = [*command_of(OwnProgram.LOG_WRITER), str(self.path), str(LARGEST_LOG), str(rules)]
            self._writer = subprocess.Popen(
                command + (["withhold"] if self._withhold else []),
                stdin=self._reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(rules,),
                # Without the owner's mark: it ends by itself, after the last line.
                env={name: value for name, value in os.environ.items() if name != OWNER_VARIABLE},
                start_new_session=True,
                cwd="/",
            )
        finally:
            os.close(rules)


def remove_log(path: Path) -> None:
    """Remove a log and the one before it."""
    for name in (path, path.with_name(f"{path.name}.1"), path.with_name(f"{path.name}.part")):
        with contextlib.suppress(OSError):
            name.unlink(missing_ok=True)


def prune_logs(folder: Path, kept: int, engines: Collection[str]) -> None:
    """Keep the newest logs of earlier runs, and those of engines that may still write theirs."""
    logs = sorted(folder.glob("*.log"), key=lambda log: log.stat().st_mtime)
    for log in logs[:-kept]:
        if log.stem not in engines:
            remove_log(log)
