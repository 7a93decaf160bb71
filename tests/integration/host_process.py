"""`sndr` as a process of its own, for tests that need the real thing."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine_host.client.sync import ControlClient, wait_for_host
from engine_host.core.paths import Folders

ROOT = Path(__file__).resolve().parents[2]
SNDR = (sys.executable, "-m", "engine_host")


@dataclass(frozen=True)
class Ended:
    """What a command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    def problem(self) -> dict[str, Any]:
        """The error that the command printed with --json."""
        error = json.loads(self.out.splitlines()[-1])["error"]
        assert isinstance(error, dict)
        return error


def environment(**changes: str) -> dict[str, str]:
    """This test's environment for a program without a display."""
    found = {**os.environ, **changes}
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        found.pop(name, None)
    return found


def sndr(*arguments: str, file_limit: int | None = None, **changes: str) -> Ended:
    """Run a command to its end; no file of it grows beyond `file_limit` bytes."""
    ended = subprocess.run(
        [*SNDR, *arguments],
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        preexec_fn=_limit(file_limit),
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def _limit(size: int | None) -> Callable[[], None] | None:
    if size is None:
        return None

    def apply() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return apply


@contextmanager
def started(*arguments: str, **changes: str) -> Iterator["subprocess.Popen[str]"]:
    """A command that goes on; ended by force when the test did not end it."""
    process = subprocess.Popen(
        [*SNDR, *arguments],
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=10)


@contextmanager
def serving(*arguments: str, **changes: str) -> Iterator[ControlClient]:
    """A host in this test's folders, and a client of it; ends in order."""
    with started("serve", *arguments, **changes) as process:
        client = wait_for_host(Folders.resolve({**os.environ, **changes}), 20)
        if client is None:
            process.kill()
            raise AssertionError(f"no host: {process.communicate()}")
        with client:
            yield client
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def alive(pids: Sequence[int]) -> list[int]:
    """Those of the processes that still run."""
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[0]
        except OSError:
            continue
        if state != b"Z":
            found.append(pid)
    return found
