"""The host as `sndr` starts it, and a look inside: SIGUSR2 has it write what it holds into a file.

Run as `python -m tests.hostile.rig.watched_host FILE serve …`. The host itself is the real one, unchanged.
"""

import asyncio
import gc
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from engine_host.cli import main
from engine_host.core.event_log import EventLog
from engine_host.core.log_buffer import LogBuffer


def _tell(file: Path, detailed: bool) -> None:
    tasks = [task for task in asyncio.all_tasks() if not task.done()]
    rings = [one for one in gc.get_objects() if isinstance(one, EventLog | LogBuffer)]
    found: dict[str, object] = {"tasks": len(tasks), "kept": sum(ring.held for ring in rings)}
    if detailed:
        gc.collect()
        found["names"] = Counter(task.get_name().rstrip("0123456789") for task in tasks).most_common(20)
        found["objects"] = Counter(type(one).__qualname__ for one in gc.get_objects()).most_common(40)
    part = file.with_suffix(".part")
    part.write_text(json.dumps(found), encoding="utf-8")
    os.replace(part, file)


def _answer_signals(file: Path) -> None:
    def on_signal(number: int, _frame: FrameType | None) -> None:
        _tell(file, number == signal.SIGUSR1)

    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, on_signal)


if __name__ == "__main__":
    _answer_signals(Path(sys.argv.pop(1)))
    sys.argv[0] = "sndr"
    sys.exit(main())
