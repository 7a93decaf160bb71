"""Turns into the engine, bound to the life of its owner: `python -I -S owned_exec.py OWNER_PID -- ARGV…`.

Standard library only and no imports of ours, because it must start in a few milliseconds. On Linux the
kernel ends the engine when the host dies (prctl PR_SET_PDEATHSIG, kept across exec); elsewhere, and for
the engine's own children, the reaper does.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Bind to the owner, then exec. Exits 127 when the program cannot be run."""
    owner, separator, command = int(argv[1]), argv[2], argv[3:]
    if separator != "--" or not command:
        sys.exit("usage: owned_exec.py OWNER_PID -- COMMAND …")
    if owner and sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != owner:
            sys.exit(1)  # The owner died before the kernel was asked to watch it.
    try:
        os.execv(command[0], command)
    except OSError as error:
        sys.stderr.write(f"cannot run {command[0]}: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main(sys.argv)
