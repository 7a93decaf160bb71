"""Calls a function at most once in an interval."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer


class Throttle(QObject):
    """Runs its work at most once in so many milliseconds, however often it is triggered."""

    def __init__(self, parent: QObject, milliseconds: int, work: Callable[[], object]) -> None:
        super().__init__(parent)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(milliseconds)
        self._timer.timeout.connect(work)

    def trigger(self, _event: object = None) -> None:
        """Run the work when the interval is over; a signal's argument does not matter."""
        if not self._timer.isActive():
            self._timer.start()
