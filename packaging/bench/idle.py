"""Measures what window and host take while nobody does anything: processor time and memory.

`python packaging/bench/idle.py [--seconds N] [--page monitor] [--profile] [--json]`. The real window on a
display of its own, with the host that it starts and no engine; memory is what is theirs alone (USS).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.e2e.desktop import Desktop, desktop

LIMIT_CPU, LIMIT_WINDOW, LIMIT_HOST = 0.01, 200, 80
"""Share of a core of both together; MB of the window, and of the host."""
_SETTLE = 20.0
_WRITTEN = 2.0
"""Seconds in which a process that idles has written its profile."""


def processes(window: int) -> dict[str, list[psutil.Process]]:
    """Return the window's processes, and those of its host."""
    root = psutil.Process(window)
    found: dict[str, list[psutil.Process]] = {"window": [root], "host": []}
    for child in root.children(recursive=True):
        found["host" if "engine_host" in " ".join(child.cmdline()) else "window"].append(child)
    return found


def spent(group: list[psutil.Process]) -> float:
    """Return the seconds of processor time that they took until now."""
    return sum(times.user + times.system for times in (one.cpu_times() for one in group))


def measure(screen: Desktop, seconds: float, home: str, profile: str) -> dict[str, float]:
    """Return shares of a core and MB."""
    environment = {**screen.environment, "SNDR_HOME": home}
    if profile:
        environment["SNDR_BENCH_PROFILE"] = profile
        environment["PYTHONPATH"] = str(Path(__file__).parent / "sampling")
    window = subprocess.Popen(
        [sys.executable, "-m", "sndr_gui"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(_SETTLE)
        groups = processes(window.pid)
        if not groups["host"]:
            raise RuntimeError("the window started no host")
        looked_at = (groups["window"][0], groups["host"][0]) if profile else ()
        for one in looked_at:
            one.send_signal(signal.SIGUSR2)
        before = {name: spent(group) for name, group in groups.items()}
        began = time.monotonic()
        time.sleep(seconds)
        passed = time.monotonic() - began
        result = {f"{name}_cpu": (spent(group) - before[name]) / passed for name, group in groups.items()}
        for name, group in groups.items():
            result[f"{name}_mb"] = sum(one.memory_full_info().uss for one in group) / 1e6
        for one in looked_at:
            one.send_signal(signal.SIGUSR2)
        time.sleep(_WRITTEN if profile else 0)
        return result
    finally:
        window.terminate()
        try:
            window.wait(20)
        except subprocess.TimeoutExpired:
            window.kill()
            window.wait()


def main() -> int:
    """Measure and print; 0 when all is within its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--profile", action="store_true", help="Say where it went; takes some itself.")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sndr-b-") as home, desktop() as screen:
        profile = os.path.join(home, "profile") if options.profile else ""
        if profile:
            os.mkdir(profile)
        found = measure(screen, options.seconds, home, profile)
        for path in sorted(Path(profile).glob("*.json")) if profile else ():
            print(f"process {path.stem}, looks by where (one a tick of its processor time):", file=sys.stderr)
            for place, count in json.loads(path.read_text(encoding="utf-8"))[:15]:
                print(f"  {count:>6}  {place}", file=sys.stderr)
    both = found["window_cpu"] + found["host_cpu"]
    if options.json:
        print(json.dumps({**found, "cpu": both, "load": os.getloadavg()[0]}))
    else:
        print(
            f"idle: {both * 100:.2f} % of a core (window {found['window_cpu'] * 100:.2f} %, host"
            f" {found['host_cpu'] * 100:.2f} %; limit 1 %), window {found['window_mb']:.0f} MB (limit"
            f" {LIMIT_WINDOW}), host {found['host_mb']:.0f} MB (limit {LIMIT_HOST});"
            f" load {os.getloadavg()[0]:.1f}"
        )
    within = both <= LIMIT_CPU and found["window_mb"] <= LIMIT_WINDOW and found["host_mb"] <= LIMIT_HOST
    return int(not within)


if __name__ == "__main__":
    sys.exit(main())
