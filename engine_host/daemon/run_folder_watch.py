"""Notices that a host's run folder was removed: then nobody can reach the host, nor it its engines."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

_log = logging.getLogger(__name__)
EVERY = 2.0


def identity(path: Path) -> tuple[int, int] | None:
    """Return which file a path leads to, None where it leads to none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextlib.asynccontextmanager
async def watched(files: Sequence[Path], end: Callable[[], None]) -> AsyncIterator[None]:
    """Call `end` once one of these files is gone, or is another one."""
    task = asyncio.create_task(_watch({path: identity(path) for path in files}, end), name="run folder")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _watch(known: Mapping[Path, tuple[int, int] | None], end: Callable[[], None]) -> None:
    while True:
        lost = next((path for path, was in known.items() if identity(path) != was), None)
        if lost is not None:
            break
        await asyncio.sleep(EVERY)
    _log.error(
        "%s was removed: nobody can reach this host any more, nor it its engines; it ends. Where the system "
        "clears that folder when you log out, `loginctl enable-linger` keeps it.",
        lost,
    )
    end()
