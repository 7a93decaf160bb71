"""Count what the kernel's out-of-memory killer ended on this machine."""

from pathlib import Path

_VMSTAT = Path("/proc/vmstat")


def oom_kills(vmstat: Path = _VMSTAT) -> int | None:
    """Return how many processes it ended since the system started, those of containers included.

    None where the system does not count them. Source: `oom_kill` of /proc/vmstat, since Linux 4.13.
    """
    try:
        lines = vmstat.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    for line in lines:
        name, _, count = line.partition(" ")
        if name == "oom_kill" and count.isdecimal():
            return int(count)
    return None
