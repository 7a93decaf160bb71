"""FAKE machines: a second home on this one, reached through a shell instead of ssh."""

import asyncio
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.remote.install.machine import Machine
from engine_host.remote.run import Feed, RemoteOutcome, RemoteScript, Take, fed, run_over

_OURS = ("SNDR_", "XDG_", "PYTHON", "VIRTUAL_ENV", "PIP_")


@dataclass
class SecondHome:
    """FAKE: a machine that is this one, for another home; `breaks` gets what a step is asked.

    After `lose_after` bytes of a file the connection is lost; `sent` holds the bytes that were sent of each
    file."""

    home: Path
    name: str = "gpu"
    variables: dict[str, str] = field(default_factory=dict)
    breaks: Callable[[dict[str, Any]], None] = lambda _asked: None
    lose_after: int | None = None
    sent: list[int] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """What a login there has."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        run = self.home.parent / "run"
        run.mkdir(mode=0o700, exist_ok=True)
        return {**own, "HOME": str(self.home), "XDG_RUNTIME_DIR": str(run), **self.variables}

    @property
    def machine(self) -> Machine:
        """The same as an install takes it."""
        return Machine(self.name, self)

    async def run(
        self,
        name: str,
        script: RemoteScript,
        data: bytes = b"",
        *,
        seconds: float = 30.0,
        most: int = 4 << 20,
    ) -> RemoteOutcome:
        """Run one of our programs."""
        if script.name == "install":
            self.breaks(step_of(data))
        return await self._run(script, fed(script.sent(data), held=script.held), seconds, most)

    async def run_fed(
        self,
        name: str,
        script: RemoteScript,
        feed: Feed,
        seconds: float | None,
        most: int = 4 << 20,
        take: Take | None = None,
    ) -> RemoteOutcome:
        """Run one that gets a file; the connection may be lost in the middle of it."""
        self.sent.append(0)

        async def torn(stream: asyncio.StreamWriter) -> None:
            await feed(cast(asyncio.StreamWriter, Torn(stream, self)))

        return await self._run(script, torn, seconds, most)

    async def _run(self, script: RemoteScript, feed: Feed, seconds: float | None, most: int) -> RemoteOutcome:
        """Run it as sshd does: by the login shell, in the home."""
        argv = ("/bin/sh", "-c", script.interpreter.value)
        return await run_over(argv, self.environment, feed, seconds, most)


@dataclass
class Torn:
    """FAKE: a stream that is lost after so many bytes."""

    stream: asyncio.StreamWriter
    home: SecondHome

    def write(self, content: bytes) -> None:
        """Write, until it is lost."""
        if self.home.lose_after is not None and self.home.sent[-1] > self.home.lose_after:
            raise HostError(Reason.SSH_LOST, "The connection to gpu was lost.")
        self.home.sent[-1] += len(content)
        self.stream.write(content)

    async def drain(self) -> None:
        """Wait for the other side."""
        await self.stream.drain()


def step_of(data: bytes) -> dict[str, Any]:
    """The request in what is sent for a step."""
    size, _, rest = data.partition(b"\n")
    size, _, rest = rest[int(size) :].partition(b"\n")
    asked = json.loads(rest[: int(size)])
    assert isinstance(asked, dict)
    return asked


def tree(home: Path) -> dict[str, str]:
    """Everything below a home: kind and content, by path."""
    found = {}
    for path in sorted(home.rglob("*")):
        name = path.relative_to(home).as_posix()
        if path.is_symlink():
            found[name] = f"link {os.readlink(path)}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = "folder" if path.is_dir() else "other"
    return found


def pids_in(base: Path) -> list[int]:
    """The processes that name a folder in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(base).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found
