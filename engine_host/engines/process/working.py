"""Tells whether a process works, by the time that it takes of the processors: cheap enough for each second.

A request need not come through the endpoint: the bench lab, checks and clients ask an engine directly.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from engine_host.telemetry.machine import process_tree

_LEAST = 0.1
"""The share of one processor from which on it works. An engine that waits takes a few hundredths at most."""
_SHORTEST = 0.2
_OF_USER = 11
"""The place of a process's own time among the values behind its name. Source: proc(5), fields 14 and 15."""


class Working:
    """Compares the processor time of a process and all below it with that of the last look."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._family: Sequence[int] = ()
        self._seconds: dict[int, float] = {}
        self._at = 0.0

    def begin(self) -> None:
        """Look from now on, at the processes that there are now."""
        self._family = process_tree(self._pid)
        self._seconds, self._at = self._read(), time.monotonic()

    def since_last(self) -> bool:
        """Tell whether it worked since the last look."""
        now = time.monotonic()
        if now - self._at < _SHORTEST:
            return False
        found = self._read()
        spent = sum(seconds - self._seconds.get(pid, seconds) for pid, seconds in found.items())
        share = spent / (now - self._at)
        self._seconds, self._at = found, now
        return share >= _LEAST

    def _read(self) -> dict[int, float]:
        return {pid: seconds for pid in self._family if (seconds := _seconds(pid)) is not None}


def _seconds(pid: int) -> float | None:
    """Return the processor time of all threads of a process; None for one that is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        user, system = text.rpartition(")")[2].split()[_OF_USER : _OF_USER + 2]
    except (OSError, ValueError):
        return None
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
