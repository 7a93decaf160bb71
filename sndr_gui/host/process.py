"""Finds a running engine host, or starts one that ends with the window; says why when that fails.

One that was killed and that ended with nobody comes back as such.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from engine_host.client import Folders, OwnProgram, command_of
from engine_host.client.local_socket import open_local
from engine_host.protocol.language import tr

START_LIMIT = 30.0
_TAIL_LINES = 30
_TAIL_BYTES = 64 << 10
_OWNED = ("--owner-stdin", "--owner", "the window that started it", "--connect-hosts")


class HostStartFailed(Exception):  # noqa: N818
    """No host runs, and none could be started; `tail` is the end of what it wrote."""

    def __init__(self, message: str, tail: tuple[str, ...] = (), log: str = "") -> None:
        super().__init__(message)
        self.tail = tail
        self.log = log


@dataclass(frozen=True)
class Address:
    """The address of a host, and whether this window started it."""

    socket: str
    token: str
    owned: bool


class HostProcess:
    """The engine host this window talks to."""

    def __init__(self, folders: Folders, command: Sequence[str] | None = None) -> None:
        self._folders = folders
        self._command = list(command or (*command_of(OwnProgram.SNDR), "serve", "--json"))
        # Popen and not asyncio's own: that one kills its process when the loop closes, and a host may stay.
        self._process: subprocess.Popen[bytes] | None = None
        self._one = asyncio.Lock()
        self._begun = self._stays = False
        self._left: subprocess.Popen[bytes] | None = None
        self._refusal = ""

    def begin(self) -> None:
        """Start a host where certainly none runs, long before there is a window to ask with; else nothing."""
        folders = self._folders
        # What fails here is tried again, and told, by who wants the host.
        with contextlib.suppress(OSError):
            if not (folders.run_folder_problem() or folders.token.exists() or folders.elsewhere()):
                self._launch()
                self._begun = True

    @property
    def owned(self) -> bool:
        """Tell whether a host runs that this window started."""
        return self._process is not None and self._process.poll() is None

    async def find_or_start(self) -> Address:
        """Return where the host listens.

        Raises HostStartFailed when none runs and none can be started, or when the run folder is not private.
        """
        async with self._one:
            if self._begun:
                self._begun = False
                return await self._start()
            if (address := await self._find()) is not None:
                return address
            await self._discard()
            return await self._start()

    async def find(self) -> Address | None:
        """Return where a host listens, and start none. Raises HostStartFailed as `find_or_start` does."""
        async with self._one:
            return await self._find()

    async def _find(self) -> Address | None:
        if (problem := self._folders.run_folder_problem()) is not None:
            # Whoever listens there may be another user, who would be told what is asked of a model.
            raise HostStartFailed(problem.sentence())
        address = await self._at(self._folders)
        other = self._folders.elsewhere() if address is None else None
        return await self._at(other) if other is not None and not other.run_folder_problem() else address

    async def _at(self, folders: Folders) -> Address | None:
        socket, token_file = folders.socket, folders.token
        try:
            token = token_file.read_text(encoding="utf-8").strip()
        except OSError:
            return None
        if not token or not await _listens(str(socket)):
            return None
        return Address(str(socket), token, self.owned)

    async def _start(self) -> Address:
        log = self.log
        try:
            process = self._process or self._launch()
        except OSError as error:
            raise HostStartFailed(
                tr("The engine host could not be started: {error}.", error=error), (), str(log)
            ) from error
        try:
            async with asyncio.timeout(START_LIMIT):
                if (address := await self._served(process)) is not None:
                    if self._stays:
                        self._left = process
                        self.let_go()
                    return address
                code = await self.ended(START_LIMIT)
            await self._discard()
        except TimeoutError:
            await self._discard()
            raise HostStartFailed(
                tr(
                    "The engine host did not serve within {start_limit} seconds.",
                    start_limit=f"{START_LIMIT:.0f}",
                ),
                self.tail(),
                str(log),
            ) from None
        if (address := await self._find()) is not None:
            # Somebody else's host won the race.
            return address
        said = self._refusal or tr("The engine host ended with exit code {code}.", code=code)
        raise HostStartFailed(said, self.tail(), str(log))

    def _launch(self) -> subprocess.Popen[bytes]:
        self._refusal = ""
        if self._left is not None:
            # The system keeps who was killed until somebody asks.
            self._left.poll()
        killed = self._folders.read_lock_owner()
        self._stays = killed is not None and killed.here and killed.stays
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            stderr = self.log.open("wb")
        except OSError:
            # A disk that is full: the host knows what to say of it.
            self._process = self._spawn(subprocess.DEVNULL)
            return self._process
        with stderr:
            self._process = self._spawn(stderr)
        return self._process

    def _spawn(self, stderr: IO[bytes] | int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command if self._stays else [*self._command, *_OWNED],
            stdin=subprocess.DEVNULL if self._stays else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            # Ctrl+C in the terminal is for the window, which then ends the host in order.
            start_new_session=sys.platform != "win32",
        )

    async def _served(self, process: subprocess.Popen[bytes]) -> Address | None:
        """The address that the host prints once it serves; None when it ends without."""
        assert process.stdout is not None
        while line := await asyncio.to_thread(process.stdout.readline):
            if (address := self._address(line)) is not None:
                return address
        return None

    def _address(self, line: bytes) -> Address | None:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if isinstance(said, dict) and "error" in said:
            self._refusal = _sentence(said)
        if not isinstance(said, dict) or said.get("event") != "serving":
            return None
        socket = str(said.get("socket") or self._folders.socket)
        token_file = Path(said.get("token_file") or self._folders.token)
        try:
            token = token_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise HostStartFailed(
                tr("The engine host's token cannot be read: {error}.", error=error)
            ) from error
        return Address(socket, token, not self._stays)

    async def ended(self, patience: float) -> int | None:
        """Return how the host that this window started ended, or None while it still runs."""
        process = self._process
        if process is None:
            return None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while process.poll() is None:  # noqa: ASYNC110 - Popen offers no event to wait for
                    await asyncio.sleep(0.02)
        return process.poll()

    @property
    def log(self) -> Path:
        """The file that a host started by the window writes to as its standard error."""
        return self._folders.logs / "host-stderr.log"

    def tail(self) -> tuple[str, ...]:
        """The last lines that the host wrote to its standard error."""
        try:
            with self.log.open("rb") as file:
                file.seek(-min(_TAIL_BYTES, file.seek(0, os.SEEK_END)), os.SEEK_END)
                text = file.read(_TAIL_BYTES).decode(errors="replace")
        except OSError:
            return ()
        return tuple(text.splitlines()[-_TAIL_LINES:])

    async def finish(self, asked: bool, limit: float = 5.0) -> None:
        """End an owned host: one that was asked to quit is waited for, another sees its input close."""
        if self._process is None:
            return
        if not asked and self._process.stdin is not None:
            self._process.stdin.close()
        await self.ended(limit)
        await self._discard()

    def let_go(self) -> None:
        """Leave an owned host running."""
        process, self._process = self._process, None
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    async def _discard(self) -> None:
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        for end, patience in ((process.terminate, 2.0), (process.kill, 2.0)):
            if process.poll() is not None:
                break
            end()
            await self.ended(patience)
        if process.stdout is not None:
            process.stdout.close()
        self._process = None


async def _listens(socket: str) -> bool:
    try:
        async with asyncio.timeout(2):
            _reader, writer = await open_local(socket)
    except (OSError, TimeoutError):
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


def _sentence(said: object) -> str:
    """Return the words of a host that refuses to serve; empty where they are none."""
    # They take a moment to load, while a host that serves is waited for.
    from pydantic import ValidationError

    from engine_host.protocol.errors import ErrorAnswer

    try:
        return ErrorAnswer.model_validate(said).error.sentence()
    except ValidationError:
        return ""
