"""Counts where a Python process spends its processor time, when `SNDR_BENCH_PROFILE` names a folder.

Read in by Python itself at the start of a process that has this folder in `PYTHONPATH`.
"""

import atexit
import json
import os
import signal
from collections import Counter
from types import FrameType

_FOLDER = os.environ.get("SNDR_BENCH_PROFILE")
_EVERY = 0.001
"""Seconds of processor time between two looks."""


def _begin(folder: str) -> None:
    seen: Counter[str] = Counter()

    def look(_signal: int, frame: FrameType | None) -> None:
        while frame is not None:
            code = frame.f_code
            if "site-packages" not in code.co_filename and "/lib/python" not in code.co_filename:
                seen[
                    f"{os.path.basename(os.path.dirname(code.co_filename))}/"
                    f"{os.path.basename(code.co_filename)}:{code.co_name}"
                ] += 1
                return
            frame = frame.f_back
        seen["libraries alone"] += 1

    def write() -> None:
        with open(os.path.join(folder, f"{os.getpid()}.json"), "w", encoding="utf-8") as target:
            json.dump(seen.most_common(30), target)

    def begin_anew(_signal: int, _frame: FrameType | None) -> None:
        # What the start took is not what idling takes.
        write()
        seen.clear()

    signal.signal(signal.SIGPROF, look)
    signal.signal(signal.SIGUSR2, begin_anew)
    signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
    atexit.register(write)


if _FOLDER:
    _begin(_FOLDER)
