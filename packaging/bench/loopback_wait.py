"""How long a byte waits between two idle programs over 127.0.0.1, while an engine computes beside them.

    python -m packaging.bench.loopback_wait --seconds 70

A program that only waits for a byte should be let run within milliseconds, however busy the processors are.
Run it alone first, then beside an engine that generates: the difference is what the engine does to editors,
windows and the endpoint on the same machine.
"""

import argparse
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

_PAUSE = 0.005


@dataclass(frozen=True)
class Waits:
    """Seconds from a byte's way out to its return, of all that were sent."""

    count: int
    median: float
    longest: float


def measure(seconds: float) -> Waits:
    """Send bytes to another process and back for so long; raises OSError when there is no loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with subprocess.Popen([sys.executable, __file__, "--echo", str(port)]):
            ours, _ = listener.accept()
            with ours:
                waits = _waits(ours, seconds)
    return Waits(len(waits), statistics.median(waits), max(waits))


def _waits(ours: socket.socket, seconds: float) -> list[float]:
    ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    found: list[float] = []
    end = time.monotonic() + seconds
    while not found or time.monotonic() < end:
        sent = time.monotonic()
        ours.sendall(b".")
        ours.recv(1)
        found.append(time.monotonic() - sent)
        time.sleep(_PAUSE)
    return found


def _echo(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as theirs:
        theirs.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while received := theirs.recv(64):
            theirs.sendall(received)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(prog="loopback_wait", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--echo", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.echo is not None:
        _echo(asked.echo)
        return 0
    waits = measure(asked.seconds)
    print(f"{waits.count} bytes: median {waits.median * 1e3:.2f} ms, longest {waits.longest * 1e3:.1f} ms")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
