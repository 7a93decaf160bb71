"""Garbage is collected in the window's thread alone.

Python collects in whichever thread allocates. A widget in a cycle would then end in a thread of the pool,
where Qt cannot stop its timers: the next tick of such a timer ends the process (seen as SIGSEGV in
`QTimerInfoList::activateTimers`).
"""

import gc

from PySide6.QtCore import QObject, QTimer

INTERVAL_MS = 1000


class GarbageCollection(QObject):
    """Stand in for Python's own collector, in the thread that this object lives in, until `stop`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._was_enabled = gc.isenabled()
        gc.disable()
        self._timer = QTimer(self)
        self._timer.setInterval(INTERVAL_MS)
        self._timer.timeout.connect(self.collect_due)
        self._timer.start()

    def collect_due(self) -> None:
        """Collect the oldest generation whose threshold is passed, as Python would have done."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        due = [
            generation
            for generation in (0, 1, 2)
            if thresholds[generation] and counts[generation] > thresholds[generation]
        ]
        if due:
            gc.collect(due[-1])

    def stop(self) -> None:
        """Hand collecting back to Python, if it had it before."""
        self._timer.stop()
        if self._was_enabled:
            gc.enable()
