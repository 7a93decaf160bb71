"""One engine process: started in its own group, followed through its log file, ended for certain."""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import unstartable_program
from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.engines.process import reaper_main
from engine_host.engines.process.birth import born
from engine_host.engines.process.log_pipe import LogPipe
from engine_host.engines.process.log_reader import CHUNK, LogReader
from engine_host.engines.process.working import Working
from engine_host.engines.served_lines import NO_LINES, ServedLines
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.telemetry.machine import ProcessMemory, process_memory

_log = logging.getLogger(__name__)
_POLL = 0.05
_SECOND_TERM = 0.5
# How long trackers of shared memory may clean up after the others.
_TRACKERS = 3.0
# How often a look is taken at the writer of the log, and how long it may take to the last line.
_LOOK = 0.5
_LAST_LINES = 3.0


@dataclass(frozen=True)
class ProcessRecord:
    """The identity of a process; `born` tells it from a later one with the same pid."""

    pid: int
    born: str


class EngineProcess:
    """A process that we started, or one of an earlier run of the host that we found again."""

    def __init__(
        self, record: ProcessRecord, log: Path, pipe: LogPipe | None, child: subprocess.Popen[bytes] | None
    ) -> None:
        self.record = record
        self.log = log
        self._pipe = pipe
        self._child = child
        self._ended = asyncio.Event()
        self._ended_at = self._looked = time.monotonic()
        self._watch = asyncio.create_task(self._wait_for_end(), name=f"watch-{record.pid}")

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        *,
        keep: bool,
        without: tuple[str, ...] = (),
        served: ServedLines = NO_LINES,
    ) -> "EngineProcess":
        """Start a process whose output is written to the log file, whoever else dies.

        It inherits our environment less the variables whose names begin with one of `without`. Once requests
        may come, `served` are the lines that are written down.

        Raises HostError(engine_start_failed), HostError(disk_full), HostError(not_writable).
        """
        pipe = LogPipe.create(log, served)
        owner = 0 if keep else os.getpid()
        if keep:
            without = (*without, reaper_main.OWNER_VARIABLE)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(without)}
        command = [*command_of(OwnProgram.OWNED), str(owner), "--", *argv]
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=pipe.writing,
                stderr=pipe.writing,
                env={**inherited, **environment},
                start_new_session=True,
                cwd="/",
            )
        except OSError as error:
            pipe.close()
            raise HostError(
                Reason.ENGINE_START_FAILED,
                tr("The engine could not be started: {error}.", error=error.strerror),
                cause=unstartable_program(),
                fix="Give another path, or install it again.",
                evidence={"argv": list(argv), "errno": error.errno},
            ) from error
        return cls(ProcessRecord(child.pid, born(child.pid) or ""), log, pipe, child)

    @classmethod
    def adopt(
        cls, record: ProcessRecord, log: Path, served: ServedLines = NO_LINES
    ) -> "EngineProcess | None":
        """The process of an earlier run, or None when it is gone or its number belongs to another now."""
        if not record.born or born(record.pid) != record.born:
            return None
        pipe = LogPipe.of_engine(log, served, record.pid)
        if pipe is None:
            _log.warning("pid %d writes its log itself: texts of requests may be in %s", record.pid, log)
        return cls(record, log, pipe, None)

    @property
    def pid(self) -> int:
        """The process, also the number of its group."""
        return self.record.pid

    @property
    def running(self) -> bool:
        """True if the process has not ended."""
        return not self._ended.is_set()

    @property
    def exit_code(self) -> int | None:
        """Exit code, negative for a signal; None while it runs and for a process that was adopted."""
        return self._child.poll() if self._child else None

    async def ended(self) -> None:
        """Wait for the end of the process."""
        await self._ended.wait()

    async def stop(self, grace: float = 5.0, *, leader_only: bool = False) -> None:
        """End the whole group: SIGTERM, another one soon after, then SIGKILL after `grace` seconds.

        llama-server waits after the first SIGTERM for clients with an open stream; the second ends it.
        `leader_only`: one SIGTERM, to the leader alone, which then ends its children in order.
        """
        if grace > 0:
            terms = (grace,) if leader_only else (min(_SECOND_TERM, grace), grace - _SECOND_TERM)
            for seconds in terms:
                self._signal(signal.SIGTERM, leader_only=leader_only)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(seconds, 0.0)):
                        await self._ended.wait()
                if not self.running:
                    break
        # A child of the engine may outlive its leader; the group is ours until it is empty.
        await asyncio.to_thread(reaper_main.kill_but_trackers, self.pid)
        await self._ended.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TRACKERS):
                while await asyncio.to_thread(reaper_main.living, self.pid):  # noqa: ASYNC110
                    await asyncio.sleep(_POLL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def memory(self) -> ProcessMemory | None:
        """Memory of the process and its children; None when it cannot be read."""
        return process_memory(self.pid)

    def working(self) -> Working:
        """Return a look at whether it works."""
        return Working(self.pid)

    async def withhold_requests(self) -> None:
        """From here on requests may come: of what is printed only known lines are written down.

        Raises HostError(not_writable).
        """
        if self._pipe is not None and self.running:
            await self._pipe.withhold(self.pid)

    async def lines(self) -> AsyncIterator[list[str]]:
        """Batches of whole new lines of the log, until the process has ended and all was read.

        What is printed without an end of line comes in pieces, so that it never fills the memory. Of a long
        log of a process that was found again come the beginning, which tells of its start, and the end; a
        line between them says how much was left out.
        """
        rest = b""
        try:
            log = LogReader(self.log)
        except OSError as error:
            _log.warning("the log %s cannot be followed: %s", self.log, error.strerror)
            await self._ended.wait()
            return
        with contextlib.closing(log):
            skips = self._child is None and log.size > 2 * CHUNK
            while True:
                complete = self._log_is_complete()
                chunk = log.read()
                if chunk:
                    *whole, rest = (rest + chunk).split(b"\n")
                    if len(rest) >= CHUNK:
                        whole, rest = [*whole, rest], b""
                    lines = [line.decode("utf-8", "replace").rstrip("\r") for line in whole]
                    if skips:
                        left_out = len(rest) + log.skip_to_last_lines()
                        lines.append(f"[{left_out} bytes are left out here; the whole log is {self.log}]")
                        skips, rest = False, b""
                    if lines:
                        yield lines
                        # A long log has the next batch at once; whoever else waits has a turn before it.
                        await asyncio.sleep(0)
                    continue
                if complete:
                    break
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_POLL):
                        await (self._ended.wait() if self.running else asyncio.sleep(_POLL))
        if rest:
            yield [rest.decode("utf-8", "replace")]

    async def log_written(self) -> None:
        """Wait until the log of a process that ended is complete."""
        while not self._log_is_complete():  # noqa: ASYNC110
            await asyncio.sleep(_POLL)

    def _log_is_complete(self) -> bool:
        """Return True when nothing more will be written; until then see to it that somebody writes."""
        now = time.monotonic()
        if self.running:
            if self._pipe is not None and now - self._looked >= _LOOK:
                self._looked = now
                self._pipe.ensure()
            return False
        # A child of it that went elsewhere may hold the pipe for ever.
        late = now - self._ended_at > _LAST_LINES
        return late or self._pipe is None or not self._pipe.written_by_somebody()

    async def release(self) -> None:
        """Stop watching; the process itself goes on."""
        self._watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._watch
        if not self.running:
            await self.log_written()
        if self._pipe is not None:
            self._pipe.close()

    def _signal(self, number: signal.Signals, *, leader_only: bool) -> None:
        if self.running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                (os.kill if leader_only else os.killpg)(self.pid, number)

    async def _wait_for_end(self) -> None:
        try:
            descriptor = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else -1
        except OSError:
            descriptor = -1
        try:
            if descriptor >= 0:
                loop = asyncio.get_running_loop()
                readable = asyncio.Event()
                loop.add_reader(descriptor, readable.set)
                try:
                    await readable.wait()
                finally:
                    loop.remove_reader(descriptor)
            # Polling is the fallback where the system has no pidfd; with one, this ends at its first look.
            while born(self.pid) is not None and (  # noqa: ASYNC110
                self._child is None or self._child.poll() is None
            ):
                await asyncio.sleep(_POLL)
            if self._child is not None:
                self._child.wait()
            self._ended_at = time.monotonic()
            self._ended.set()
            if self._pipe is not None:
                self._pipe.engine_ended()
        finally:
            if descriptor >= 0:
                os.close(descriptor)
