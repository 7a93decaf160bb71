"""A clock that a test can set, for processes that get this folder as PYTHONPATH. INJECTED: the time of day.

The machine's own clock is nobody's to set. `SNDR_TEST_CLOCK` names a file with the seconds to add.
"""

import os
import time

_FILE = os.environ.get("SNDR_TEST_CLOCK")
_real, _real_ns = time.time, time.time_ns


def _offset() -> float:
    try:
        with open(_FILE or "", encoding="ascii") as file:
            return float(file.read() or 0)
    except (OSError, ValueError):
        return 0.0


if _FILE:
    time.time = lambda: _real() + _offset()
    time.time_ns = lambda: _real_ns() + int(_offset() * 1e9)
