"""Long tools of a build: run with their output read line by line, and ended with all their children."""

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

import psutil

from engine_host.core.bounds.cut_text import cut_text
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import unstartable_program
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

TAIL_LINES = 60
_LONGEST = 8_000
_GRACE = 2.0


def ask_tool(*argv: str, seconds: float = 20.0) -> tuple[int | None, str]:
    """Run a tool that ends by itself; return its exit code and output, None where it cannot be run or hangs.

    It blocks: call it in a thread.
    """
    try:
        done = subprocess.run(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    return done.returncode, done.stdout.decode("utf-8", "replace")


class ToolError(Exception):
    """A tool of the build ended with an exit code that is not zero."""

    def __init__(self, argv: Sequence[str], code: int, tail: Sequence[str]) -> None:
        super().__init__(f"{argv[0]} ended with code {code}")
        self.argv = tuple(argv)
        self.code = code
        self.tail = tuple(tail)

    @property
    def disk_full(self) -> bool:
        """True if its output reports a full disk."""
        return any("No space left on device" in line or "Errno 28" in line for line in self.tail)

    @property
    def out_of_memory(self) -> bool:
        """True if the kernel ended a compiler for want of memory."""
        return any(
            "Killed signal terminated program" in line or "virtual memory exhausted" in line
            for line in self.tail
        )


async def run_tool(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    log: IO[str],
    on_line: Callable[[str], None] = lambda _line: None,
) -> list[str]:
    """Runs a tool to its end and gives the last lines it printed.

    Cancelling the task ends the tool and everything it started. Raises `ToolError`, and
    `HostError(build_failed)` where the tool cannot be started.
    """
    log.write(f"$ {' '.join(argv)}\n")
    log.flush()
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=dict(environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            limit=1 << 22,
        )
    except OSError as error:
        raise HostError(
            Reason.BUILD_FAILED,
            tr("{argv} cannot be run: {error}.", argv=argv[0], error=error.strerror or error),
            cause=unstartable_program(),
            fix="Give another path, or install it again.",
            evidence={"argv": list(argv), "errno": error.errno},
        ) from error
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    try:
        assert process.stdout is not None
        async for raw in process.stdout:
            line = raw.decode("utf-8", "replace").rstrip()
            tail.append(cut_text(line, _LONGEST))
            log.write(line + "\n")
            on_line(line)
        code = await process.wait()
    except BaseException:
        await asyncio.shield(_end_session(process))
        raise
    if code:
        raise ToolError(argv, code, tail)
    return list(tail)


async def _end_session(process: asyncio.subprocess.Process) -> None:
    """Ends every process of the tool's session.

    Its group is not enough: ninja gives each compiler a group of its own. It passes a SIGTERM on to them,
    and what has not ended then is found by its session and killed.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _GRACE)
    for pid in _session(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await process.wait()


def _session(leader: int) -> list[int]:
    found: list[int] = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if pid != os.getpid() and os.getsid(pid) == leader:
                found.append(pid)
    return found


def is_disk_full(error: OSError) -> bool:
    """Return True if a system call failed because no space or quota is left."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}
