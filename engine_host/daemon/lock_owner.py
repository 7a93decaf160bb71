"""Whoever holds a lock that this host wants: whether that process runs, and whether it answers."""

import socket
from pathlib import Path

import psutil

TRIES = 20
"""Looks at a lock whose holder is dead: the kernel and the reaper of a killed host let go a moment later."""
MOMENT = 0.05
"""Seconds between two looks."""


def runs(holder: str) -> bool:
    """Tell whether the process named in a lock file runs."""
    return holder.isdecimal() and psutil.pid_exists(int(holder))


def listens(path: Path) -> bool:
    """Tell whether somebody listens on a control socket; a host that starts or ends does not."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
