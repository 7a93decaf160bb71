"""The profile of an idle process: between two signals, and of the thread that took the time."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]

_PROGRAM = """
import os, signal, threading, time

def begun(): burn(0.2)

def in_a_thread(): burn(0.2)

def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass

begun()
os.kill(os.getpid(), signal.SIGUSR2)
one = threading.Thread(target=in_a_thread)
one.start()
while one.is_alive():
    time.sleep(0.001)
os.kill(os.getpid(), signal.SIGUSR2)
begun()
os._exit(0)
"""


def test_the_profile_is_of_the_time_between_the_signals_and_of_the_thread_at_work(tmp_path: Path) -> None:
    program = tmp_path / "at_work.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    sampling = str(ROOT / "packaging" / "bench" / "sampling")
    environment = {**os.environ, "SNDR_BENCH_PROFILE": str(tmp_path), "PYTHONPATH": sampling}
    subprocess.run([sys.executable, str(program)], env=environment, check=True, timeout=60)
    (found,) = tmp_path.glob("*.json")
    places = dict(json.loads(found.read_text(encoding="utf-8")))
    assert next(iter(places)).endswith("/at_work.py:burn")
    assert not any(place.endswith(":begun") for place in places)
