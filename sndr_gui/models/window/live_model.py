"""What the view-models of pages about a running engine have in common: when they are drawn again."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from sndr_gui.models.window.throttle import Throttle


class LiveModel(QObject):
    """A page that is drawn four times a second while news come in bursts, and once a second while shown.

    Signals:
        changed: something shown is new
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.soon = Throttle(self, 250, self._tell)
        # Durations of a running start count up, and ages grow, without any event.
        self._clock = QTimer(self)
        self._clock.setInterval(1000)
        self._clock.timeout.connect(self.changed)

    def _tell(self) -> None:
        self.changed.emit()

    def set_shown(self, shown: bool) -> None:
        """Count time only while somebody looks."""
        if shown:
            self._clock.start()
        else:
            self._clock.stop()
