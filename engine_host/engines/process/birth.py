"""When a process began, which tells it from a later one with its number."""

import functools
from pathlib import Path

import psutil

from engine_host.engines.process.reaper_main import start_ticks


def born(pid: int) -> str | None:
    """When a process began; None for one that is gone or only waits to be collected.

    On Linux in ticks of this boot: a time of day would change with every correction of the clock.
    """
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        ticks = start_ticks(pid)
        return f"{process.create_time():.2f}" if ticks is None else f"{_boot()}/{ticks}"
    except psutil.Error:
        return None


@functools.cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
