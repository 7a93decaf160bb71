"""Counts where a Python process spends its processor time, when `SNDR_BENCH_PROFILE` names a folder.

Read in by Python itself at the start of a process that has this folder in `PYTHONPATH`.
"""

import atexit
import json
import os
import signal
import sys
import threading
from collections import Counter
from types import FrameType

_FOLDER = os.environ.get("SNDR_BENCH_PROFILE")
_EVERY = 0.001
"""Seconds of processor time between two looks."""


_WAITING = "cli/serve.py:serve"
"""The host's loop, with nothing of its own at work."""


def _own(frame: FrameType | None) -> str:
    """Return where the project's own code is in a stack; nothing for one of libraries alone."""
    while frame is not None:
        code = frame.f_code
        if "site-packages" not in code.co_filename and "/lib/python" not in code.co_filename:
            folder, name = os.path.split(code.co_filename)
            return f"{os.path.basename(folder)}/{name}:{code.co_name}"
        frame = frame.f_back
    return ""


def _begin(folder: str) -> None:
    seen: Counter[str] = Counter()

    def look(_signal: int, frame: FrameType | None) -> None:
        # Python hands signals to the main thread, also those for the time that another one took.
        others = sys._current_frames()
        others.pop(threading.main_thread().ident or 0, None)
        for one in (*others.values(), frame):
            if (place := _own(one)) not in ("", _WAITING):
                seen[place] += 1
                return
        seen["libraries alone"] += 1

    def write() -> None:
        with open(os.path.join(folder, f"{os.getpid()}.json"), "w", encoding="utf-8") as target:
            json.dump(seen.most_common(30), target)

    def turn(_signal: int, _frame: FrameType | None) -> None:
        # What the start took is not what idling takes, nor is what the end takes.
        if not began:
            seen.clear()
            began.append(True)
            return
        signal.setitimer(signal.ITIMER_PROF, 0)
        write()
        atexit.unregister(write)

    began: list[bool] = []
    signal.signal(signal.SIGPROF, look)
    signal.signal(signal.SIGUSR2, turn)
    signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
    atexit.register(write)


if _FOLDER:
    _begin(_FOLDER)
