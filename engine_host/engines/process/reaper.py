"""The host's side of the reaper: a small process that cleans up should the host be killed."""

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import time
from pathlib import Path
from typing import IO

from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.engines.process import reaper_main

_log = logging.getLogger(__name__)
# One that dies at once, again and again, is not started for ever: so many times in so many seconds.
_MOST_STARTS, _WITHIN = 5, 60.0


class Reaper:
    """Tells the reaper process which groups and files are ours; starts it again should it die."""

    def __init__(self, mark: str) -> None:
        """`mark` is what this host's children carry in their environment, as `SNDR_OWNER`."""
        self._mark = mark
        self._process: subprocess.Popen[bytes] | None = None
        self._commands: IO[bytes] | None = None
        self._groups: dict[int, tuple[int | None, Path]] = {}
        self._files: list[Path] = []
        self._starts: list[float] = []
        self._followed: tuple[asyncio.AbstractEventLoop, int] | None = None

    @property
    def pid(self) -> int | None:
        """The reaper's process, while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def watch(self, group: int, socket: Path) -> None:
        """End this process group when the host dies, and remove the socket it listened on."""
        self._groups[group] = (reaper_main.start_ticks(group), socket)
        self._send(_watch(group, *self._groups[group]))

    def forget(self, group: int) -> None:
        """Leave this process group alone from now on."""
        if group in self._groups:
            del self._groups[group]
            self._send({"forget": group})

    def remove_with_host(self, path: Path) -> None:
        """Remove this file when the host dies."""
        self._files.append(path)
        self._send({"file": str(path)})

    def ensure(self) -> None:
        """Start the reaper again if it was killed; it learns everything anew."""
        if self.pid is None:
            self._start()

    def close(self) -> None:
        """Release everything and end the reaper; for an orderly end of the host."""
        self._unfollow()
        process, self._process = self._process, None
        if process is None or self._commands is None:
            return
        with contextlib.suppress(OSError):
            self._commands.write(b'{"release": true}\n')
            self._commands.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self) -> None:
        self._unfollow()
        self._starts = [at for at in self._starts if time.monotonic() - at < _WITHIN] + [time.monotonic()]
        if self._process is not None:
            _log.warning("the reaper (pid %d) was ended from outside; starting another", self._process.pid)
            if self._commands:
                with contextlib.suppress(OSError):
                    self._commands.close()
        # All that it has to know is in the pipe before it lives, should the host be killed in between.
        reading, writing = os.pipe()
        self._commands = os.fdopen(writing, "wb")
        self._write({"owner": self._mark})
        for group, (started, socket) in self._groups.items():
            self._write(_watch(group, started, socket))
        for path in self._files:
            self._write({"file": str(path)})
        self._process = subprocess.Popen(
            command_of(OwnProgram.REAPER),
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        os.close(reading)
        self._follow(self._process.pid)

    def _follow(self, pid: int) -> None:
        """Have the loop say when the reaper ends: without one, a killed host would leave its engines."""
        try:
            loop = asyncio.get_running_loop()
            handle = os.pidfd_open(pid)
        except (AttributeError, OSError, RuntimeError):
            return  # Elsewhere it is started again at the next change.
        self._followed = loop, handle
        loop.add_reader(handle, self._on_end)

    def _unfollow(self) -> None:
        if self._followed is None:
            return
        loop, handle = self._followed
        self._followed = None
        loop.remove_reader(handle)
        os.close(handle)

    def _on_end(self) -> None:
        self._unfollow()
        recent = [at for at in self._starts if time.monotonic() - at < _WITHIN]
        if len(recent) < _MOST_STARTS:
            self._start()
        else:
            _log.error(
                "the reaper ended %d times in a minute: off until the next change",
                len(recent),
            )

    def _send(self, command: dict[str, object]) -> None:
        if self.pid is None:
            self._start()
        else:
            self._write(command)

    def _write(self, command: dict[str, object]) -> None:
        if self._commands is None:
            return
        try:
            self._commands.write(json.dumps(command).encode() + b"\n")
            self._commands.flush()
        except OSError:
            _log.warning("the reaper does not listen; it is started again at the next change")


def _watch(group: int, started: int | None, socket: Path) -> dict[str, object]:
    return {"watch": group, "started": started, "socket": str(socket)}
