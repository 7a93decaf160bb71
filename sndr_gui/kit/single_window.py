"""One window for each display: a second start hands its arguments to the first one's socket and ends.

Only the standard library: a start that hands over is done before Qt would have been imported.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine_host.client import Folders

PATIENCE = 5.0
"""Seconds that a window has to answer, busy as the machine may be."""
IN_THE_WAY = 6
"""The exit code where a window that does not answer is left alone; it is in the table of all exit codes."""
ANOTHER = "--another"
"""The argument that starts another window, whatever runs already."""
AT_LOGIN = "--at-login"
"""The argument of a start at login, which nobody looks at."""
_OURS = (ANOTHER, AT_LOGIN, "--say-ready")
_MOST_ARGUMENTS = 20
_LONGEST_ARGUMENT = 4096
_LONGEST_LINE = 1 << 17
_ANSWER = b"shown\n"
_TOKEN = re.compile(r"[\w.:/=+-]{1,200}")


@dataclass(frozen=True)
class Handover:
    """A later start asks this of the window: its arguments, and the desktop's leave to come to the front."""

    arguments: tuple[str, ...] = ()
    activation: str = ""

    def line(self) -> bytes:
        """Return it as one line; of very many or very long arguments the begin, which is refused there."""
        cut = [one[:_LONGEST_ARGUMENT] for one in self.arguments[:_MOST_ARGUMENTS]]
        return json.dumps({"arguments": cut, "activation": self.activation}).encode() + b"\n"

    @classmethod
    def parse(cls, line: bytes) -> Handover:
        """Return what a line asks. Raises ValueError when it is no such line."""
        try:
            raw = json.loads(line)
        except RecursionError as error:
            raise ValueError("nested too deep") from error
        arguments = raw.get("arguments") if isinstance(raw, dict) else None
        if not isinstance(arguments, list) or not all(isinstance(one, str) for one in arguments):
            raise ValueError("no arguments")
        activation = raw.get("activation")
        known = isinstance(activation, str) and _TOKEN.fullmatch(activation) is not None
        return cls(tuple(arguments[:_MOST_ARGUMENTS]), activation if known else "")


@dataclass(frozen=True)
class Answered:
    """The window that runs took the arguments over."""


@dataclass(frozen=True)
class Hung:
    """A window runs and does not answer; its process where the system tells it."""

    pid: int | None


class Claim:
    """This process is the one with the window, for as long as it holds the lock."""

    def __init__(self, path: Path, lock: int) -> None:
        self._path, self._lock = path, lock
        self._server: asyncio.Server | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    async def listen(self, take: Callable[[Handover], object]) -> None:
        """Take the arguments of later starts from now on. Raises OSError where no socket can be made."""
        # Whoever left it there is gone: the lock was free.
        self._path.unlink(missing_ok=True)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            made.bind(str(self._path))
        except OSError:
            made.close()
            raise
        finally:
            os.umask(before)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._under_way.add(task)
            try:
                await _serve(reader, writer, take)
            finally:
                self._under_way.discard(task)

        self._server = await asyncio.start_unix_server(serve, sock=made, limit=_LONGEST_LINE)

    async def close(self) -> None:
        """Listen no more, and let another start be the one with the window."""
        if self._server is not None:
            self._server.close()
            for task in self._under_way:
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)
            await self._server.wait_closed()
            self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Give up the lock."""
        _lock_of(self._path).unlink(missing_ok=True)
        os.close(self._lock)
        with contextlib.suppress(OSError):
            self._path.parent.rmdir()


def links_of(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the links among the arguments of a start: all but options, and the values of Qt's own."""
    found = []
    before = ""
    for one in arguments:
        if not one.startswith("-") and (not before.startswith("-") or before in _OURS):
            found.append(one)
        before = one
    return tuple(found)


def claim(
    folders: Folders, arguments: Sequence[str], patience: float = PATIENCE
) -> Claim | Answered | Hung | None:
    """Become the process with the window, or hand the arguments to the one that is it.

    None where that cannot be said: on a system without such sockets, or when the run folder is not private,
    which the engine host then says.
    """
    if sys.platform == "win32":
        return None
    path = socket_path(folders, os.environ)
    asked = Handover(tuple(arguments), os.environ.get("XDG_ACTIVATION_TOKEN", ""))
    end = time.monotonic() + patience
    pid: int | None = None
    while True:
        try:
            # A host that ends removes the folder.
            folders.run.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folders.run_folder_problem() is not None:
                return None
            lock = _take_lock(_lock_of(path))
        except OSError:
            return None
        if lock is not None:
            return Claim(path, lock)
        with contextlib.suppress(OSError):
            pid = _pid_of(_lock_of(path))
            if _hand_over(path, asked, max(0.1, end - time.monotonic())):
                return Answered()
        if time.monotonic() >= end:
            return Hung(pid)
        # It has the lock and not its socket yet, or ends just now.
        time.sleep(0.05)


def socket_path(folders: Folders, environment: Mapping[str, str]) -> Path:
    """Return the socket of the window on this display: on another one a window of its own is wanted."""
    display = environment.get("WAYLAND_DISPLAY") or environment.get("DISPLAY") or ""
    return folders.window_socket(hashlib.sha256(display.encode()).hexdigest()[:8])


def _lock_of(path: Path) -> Path:
    return path.with_suffix(".lock")


def _take_lock(path: Path) -> int | None:
    """Return the locked file, with this process in it; None while another one holds it. Raises OSError."""
    assert sys.platform != "win32"
    import fcntl

    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        try:
            same = os.fstat(lock).st_ino == path.stat().st_ino
        except FileNotFoundError:
            same = False
        if same:
            os.truncate(lock, 0)
            os.write(lock, str(os.getpid()).encode())
            return lock
        # Its holder removed it in between: what is locked is no file of anybody any more.
        os.close(lock)


def _pid_of(lock: Path) -> int | None:
    text = lock.read_bytes()[:20]
    return int(text) if text.isdigit() else None


def _hand_over(path: Path, asked: Handover, seconds: float) -> bool:
    """Return True once the window took the arguments over. Raises OSError where none listens or answers."""
    assert sys.platform != "win32"
    info = path.lstat()
    if not stat.S_ISSOCK(info.st_mode) or info.st_uid != os.getuid():
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        connection.connect(str(path))
        if not _is_own(connection):
            return False
        connection.sendall(asked.line())
        return connection.recv(len(_ANSWER)) == _ANSWER


def _is_own(connection: socket.socket) -> bool:
    """Return True when this user's process is at the other end, where the system tells."""
    if sys.platform != "linux":
        return True
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", told)[1] == os.getuid())


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, take: Callable[[Handover], object]
) -> None:
    try:
        if not _is_own(writer.get_extra_info("socket")):
            return
        async with asyncio.timeout(PATIENCE):
            asked = Handover.parse(await reader.readuntil(b"\n"))
            take(asked)
            writer.write(_ANSWER)
            await writer.drain()
    except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        """Nothing that a start of this program sends: it gets no answer."""
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
