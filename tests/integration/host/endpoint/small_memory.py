"""A host whose machine has FAKE memory: the first argument says how much, less what engines hold.

All else is the real program; what its engines hold is measured.
"""

import sys

import psutil

from engine_host.cli import main
from engine_host.daemon import host
from engine_host.telemetry.machine import process_memory

_FREE = int(sys.argv.pop(1))


def free_memory() -> int:
    """The bytes that engines have left of it."""
    held = [process_memory(child.pid) for child in psutil.Process().children()]
    return max(_FREE - sum(one.resident - one.of_files for one in held if one is not None), 0)


if __name__ == "__main__":
    setattr(host, "free_memory", free_memory)  # noqa: B010 - it is the host's by import alone
    sys.exit(main())
