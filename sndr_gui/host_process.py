"""Finds a running engine host, or starts one that ends with the window; says why when that fails."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sndr_gui.errors import HostStartFailed
from sndr_gui.folders import Folders
from sndr_gui.local_socket import open_local

START_LIMIT = 30.0
_TAIL_LINES = 30


@dataclass(frozen=True)
class Address:
    """Where a host listens, and whether this window started it."""

    socket: str
    token: str
    owned: bool


def serve_command() -> list[str]:
    """The command line of a host that ends with this process."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "--engine-host", "serve", "--owner-stdin"]
    return [sys.executable, "-m", "engine_host", "serve", "--owner-stdin"]


class HostProcess:
    """The engine host this window talks to."""

    def __init__(self, folders: Folders, command: Sequence[str] | None = None) -> None:
        self._folders = folders
        self._command = list(command or serve_command())
        self._process: asyncio.subprocess.Process | None = None
        self._one = asyncio.Lock()

    @property
    def owned(self) -> bool:
        """Whether a host runs that this window started."""
        return self._process is not None and self._process.returncode is None

    async def find_or_start(self) -> Address:
        """Where the host listens. Raises HostStartFailed when none runs and none can be started."""
        async with self._one:
            if (address := await self._find()) is not None:
                return address
            await self._discard()
            return await self._start()

    async def _find(self) -> Address | None:
        socket, token_file = self._folders.socket, self._folders.token
        try:
            token = token_file.read_text(encoding="utf-8").strip()
        except OSError:
            return None
        if not token or not await _listens(str(socket)):
            return None
        return Address(str(socket), token, self.owned)

    async def _start(self) -> Address:
        log = self._folders.host_log
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("wb") as stderr:
                await self._spawn(stderr)
        except OSError as error:
            raise HostStartFailed(f"The engine host could not be started: {error}.", (), str(log)) from error
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(START_LIMIT):
                async for line in self._process.stdout:
                    if (address := self._address(line)) is not None:
                        return address
                code = await self._process.wait()
        except TimeoutError:
            await self._discard()
            raise HostStartFailed(
                f"The engine host did not serve within {START_LIMIT:.0f} seconds.", self.tail(), str(log)
            ) from None
        if (address := await self._find()) is not None:
            # Somebody else's host won the race.
            return address
        raise HostStartFailed(f"The engine host ended with exit code {code}.", self.tail(), str(log))

    async def _spawn(self, stderr: IO[bytes]) -> None:
        flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            creationflags=flags,
            # Ctrl+C in the terminal is for the window, which then ends the host in order.
            start_new_session=sys.platform != "win32",
        )

    def _address(self, line: bytes) -> Address | None:
        try:
            said = json.loads(line)
        except ValueError:
            return None
        if not isinstance(said, dict) or said.get("event") != "serving":
            return None
        socket = str(said.get("socket") or self._folders.socket)
        token_file = Path(said.get("token_file") or self._folders.token)
        try:
            token = token_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise HostStartFailed(f"The engine host's token cannot be read: {error}.") from error
        return Address(socket, token, True)

    async def ended(self, patience: float) -> int | None:
        """How the host that this window started ended, or None while it still runs."""
        if self._process is None:
            return None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                return await self._process.wait()
        return None

    def tail(self) -> tuple[str, ...]:
        """The last lines that the host wrote to its standard error."""
        try:
            text = self._folders.host_log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ()
        return tuple(text.splitlines()[-_TAIL_LINES:])

    async def finish(self, limit: float = 5.0) -> None:
        """Wait for an owned host that was asked to quit; then close its input, then end it."""
        process = self._process
        if process is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await process.wait()
        await self._discard()

    async def _discard(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        for end, patience in ((process.terminate, 2.0), (process.kill, 2.0)):
            if process.returncode is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                end()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await process.wait()


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
