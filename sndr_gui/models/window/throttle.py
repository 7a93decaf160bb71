"""Work that many pieces of news ask for, done once a while later."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer


class Throttle(QObject):
    """Runs its work at most once in so many milliseconds, however often it is asked."""

    def __init__(self, parent: QObject, milliseconds: int, work: Callable[[], object]) -> None:
        super().__init__(parent)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(milliseconds)
        self._timer.timeout.connect(work)

    def ask(self, _news: object = None) -> None:
        """Have the work done soon; a signal's argument does not matter."""
        if not self._timer.isActive():
            self._timer.start()
