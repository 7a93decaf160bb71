"""Run one of our fixed programs on another machine, with what differs as data on its standard input.

The command that ssh sends is the same few words for every program and all data: the far shell, whichever it
is, sees nothing else. They read the program from standard input, and what follows it there is its data.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import unstartable_program
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.remote.ssh.command_lines import end_group

_MOST_ERRORS = 16 << 10
_NOT_STARTED = (126, 127)
"""The exit codes of a shell that cannot start a program."""


class Interpreter(Enum):
    """The words that start a program there."""

    # A login without a terminal may have a PATH without the places where a system has its programs.
    SHELL = (
        "exec /bin/sh -c 'PATH=$PATH:/usr/local/bin:/usr/bin:/bin; "
        'read -r n && s=$(dd bs=1 count="$n" 2>/dev/null) && eval "$s"\''
    )
    PYTHON = (
        "exec /bin/sh -c 'PATH=$PATH:/usr/local/bin:/usr/bin:/bin; "
        'exec python3 -I -c "import sys; b = sys.stdin.buffer; exec(b.read(int(b.readline())))"\''
    )


@dataclass(frozen=True)
class RemoteScript:
    """A program of ours for another machine.

    One that is `held` has its standard input open until it ends, and learns by its end that nobody waits.
    """

    name: str
    interpreter: Interpreter
    text: str
    held: bool = False

    @classmethod
    def read(cls, path: Path) -> "RemoteScript":
        """Read a program that lies with ours: a shell's `.sh`, or Python's `.py`."""
        interpreter = Interpreter.SHELL if path.suffix == ".sh" else Interpreter.PYTHON
        return cls(path.stem, interpreter, path.read_text(encoding="utf-8"))

    def sent(self, data: bytes) -> bytes:
        """Return what goes to its standard input."""
        program = self.text.encode()
        return str(len(program)).encode() + b"\n" + program + data


@dataclass(frozen=True)
class RemoteOutcome:
    """The end of a program there: `exit` is None for one that took too long.

    `cut` says that more than was asked for came, and the rest was left out.
    """

    exit: int | None
    stdout: bytes
    stderr: str
    cut: bool = False

    @property
    def timed_out(self) -> bool:
        """True if it was ended because it took too long."""
        return self.exit is None

    def need_success(self, doing: str) -> bytes:
        """Return what it printed. Raises HostError(ssh_failed) where it did not end well."""
        if self.exit == 0:
            return self.stdout
        last = self.last_words
        raise HostError(
            Reason.SSH_FAILED,
            tr("{doing} did not work.", doing=doing),
            cause=last
            or ("It took too long." if self.timed_out else tr("Exit code {exit}.", exit=self.exit)),
            fix="Look at the machine.",
            evidence={"exit": self.exit, "stderr": self.stderr[-2000:]},
        )

    @property
    def last_words(self) -> str:
        """The last line of its standard error."""
        return "".join(self.stderr.strip().splitlines()[-1:])[:300]

    def need_start(self, name: str, script: RemoteScript) -> None:
        """Raise HostError where what ended on a machine is not our program: it was never started.

        Those of ours say on standard error why they fail; a login that runs nothing says something else or
        nothing.
        """
        if self.exit in _NOT_STARTED and script.interpreter is Interpreter.PYTHON:
            raise HostError(
                Reason.SSH_FAILED,
                tr("There is no Python on {name} that can be started.", name=name),
                cause=tr("It says: {last_words}", last_words=self.last_words)
                if self.last_words
                else "No python3 is on its PATH.",
                fix=Fix(
                    text="Have it installed there; the engine host needs Python 3.11, 3.12 or 3.13.",
                    command="sudo apt-get install -y python3 python3-venv",
                ),
                evidence={"exit": self.exit, "stderr": self.stderr[-2000:]},
            )
        if self.exit is not None and 0 < self.exit < _NOT_STARTED[0] and not self.last_words:
            printed = self.stdout.decode("utf-8", "replace").strip().splitlines()[-1:]
            said = tr("It says: {printed} ", printed=printed[0][:300]) if printed else ""
            raise HostError(
                Reason.SSH_FAILED,
                tr("The login on {name} ends without running anything.", name=name),
                cause=tr(
                    "{said}It has no shell, or its key is for one fixed command (exit code {exit}).",
                    said=said,
                    exit=self.exit,
                ),
                fix=Fix(
                    text="Connect as a user with a login shell, or have that user given one.",
                    command=f"sndr host change {name} USER@HOST",
                ),
                evidence={"exit": self.exit, "stdout": "".join(printed)[:2000]},
            )


Feed = Callable[[asyncio.StreamWriter], Awaitable[None]]
"""Writes what goes to a program's standard input; a program that ends before it is no error of its."""


def fed(data: bytes, *, held: bool = False) -> Feed:
    """Return the feed of some bytes; where it is `held`, it ends when the other side does."""

    async def feed(stream: asyncio.StreamWriter) -> None:
        stream.write(data)
        await stream.drain()
        if held:
            await stream.wait_closed()

    return feed


Take = Callable[[bytes], Awaitable[None]]
"""Takes what a program prints, piece by piece."""


async def run_over(
    argv: Sequence[str],
    environment: Mapping[str, str],
    feed: Feed,
    seconds: float | None,
    most: int,
    take: Take | None = None,
) -> RemoteOutcome:
    """Run ssh over a connection that stands; when this is cancelled, so is what runs there.

    Without `seconds` it may take as long as it likes; with `take` nothing that it prints is kept. Raises
    HostError(ssh_failed) where ssh cannot be started, and what `feed` and `take` raise.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=dict(environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise HostError(
            Reason.SSH_FAILED,
            tr("ssh cannot be run: {error}.", error=error.strerror or error),
            cause=unstartable_program(),
            fix="Give another path, or install it again.",
            evidence={"errno": error.errno},
        ) from error
    out, err = _Capped(most), _Capped(_MOST_ERRORS)
    ended = True
    work = [
        asyncio.ensure_future(one)
        for one in (_feed(process.stdin, feed), out.read(process.stdout, take), err.read(process.stderr))
    ]
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(*work)
            await process.wait()
    except TimeoutError:
        ended = False
    finally:
        for one in work:
            one.cancel()
        await asyncio.shield(_end(process, work))
    return RemoteOutcome(
        process.returncode if ended else None, out.taken, err.taken.decode("utf-8", "replace"), out.cut
    )


async def _end(process: asyncio.subprocess.Process, work: Sequence[asyncio.Future[None]]) -> None:
    """End ssh, and close what it wrote to: a pipe that is not read to its end stays open."""
    await asyncio.gather(*work, return_exceptions=True)
    await end_group(process)
    for stream in (process.stdout, process.stderr):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                while stream is not None and await stream.read(1 << 16):
                    pass


class _Capped:
    """The first bytes of a stream; the rest is read and dropped."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self.cut = False

    @property
    def taken(self) -> bytes:
        return b"".join(self._parts)

    async def read(self, stream: asyncio.StreamReader | None, take: Take | None = None) -> None:
        while stream is not None and (part := await stream.read(1 << 16)):
            if take is not None:
                await take(part)
                continue
            room = self._most - self._size
            self.cut = self.cut or len(part) > room
            if room > 0:
                self._parts.append(part[:room])
                self._size += len(part[:room])


async def _feed(stream: asyncio.StreamWriter | None, feed: Feed) -> None:
    if stream is None:
        return
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await feed(stream)
    finally:
        with contextlib.suppress(OSError):
            stream.close()


class Runner(Protocol):
    """Whatever runs our programs on other machines, by their names here."""

    async def run(
        self, name: str, script: RemoteScript, data: bytes = b"", *, seconds: float = 30.0, most: int = ...
    ) -> RemoteOutcome:
        """Run one with data on its standard input. Raises HostError of the connection."""

    async def run_fed(
        self,
        name: str,
        script: RemoteScript,
        feed: Feed,
        seconds: float | None,
        most: int = ...,
        take: Take | None = None,
    ) -> RemoteOutcome:
        """Run one with `feed` writing its standard input, and `take` reading what it prints.

        Raises HostError of the connection.
        """


SCRIPTS = Path(os.path.dirname(__file__)) / "scripts"
