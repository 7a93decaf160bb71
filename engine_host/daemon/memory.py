"""Memory that a flood left behind goes back to the system.

Python frees what a thousand connections held, but the C library keeps it: small things that stay lie between
what is free, and only the end of its heap is given back by itself. 2,000 clients with long headers and 80
with long bodies left 198 MB, of which 78 were in use; asked for it, glibc gives the rest back in a tenth of a
second.
"""

import asyncio
import ctypes
import logging
import sys
from collections.abc import Callable

import psutil

from engine_host.core.sizes import size_text

_log = logging.getLogger(__name__)
EVERY = 10.0
"""Seconds between two looks; one that finds nothing costs some microseconds."""
WORTH = 16 << 20
"""Bytes above the least that was ever needed from which on it is worth asking: four milliseconds in vain."""


def trimmer() -> Callable[[], object] | None:
    """Return what gives free memory back; None where the C library does so by itself or cannot."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except AttributeError:  # musl
        return None
    trim.argtypes = (ctypes.c_size_t,)
    return lambda: trim(0)


def resident() -> int:
    """Return the bytes of main memory that this process takes."""
    return int(psutil.Process().memory_info().rss)


class MemoryKeeper:
    """Gives memory back whenever much more is taken than was once enough."""

    def __init__(self, trim: Callable[[], object] | None, taken: Callable[[], int] = resident) -> None:
        self._trim = trim
        self._taken = taken
        self._least = taken()

    async def keep(self) -> None:
        """Look every now and then, until this is cancelled."""
        while self._trim is not None:
            await asyncio.sleep(EVERY)
            await self.look()

    async def look(self) -> None:
        """Give memory back if that seems worth while."""
        before = self._taken()
        if self._trim is None or before < self._least + WORTH:
            return
        # Elsewhere: with much to give back it takes a tenth of a second, which no stream should wait.
        await asyncio.to_thread(self._trim)
        after = self._taken()
        self._least = min(self._least, after)
        if before - after > WORTH:
            _log.info("gave %s of memory back; %s are in use", size_text(before - after), size_text(after))
