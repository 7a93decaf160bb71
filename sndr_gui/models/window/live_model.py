"""The base of models of a running engine: throttled changes, and a clock while they are shown."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from sndr_gui.models.window.throttle import Throttle


class LiveModel(QObject):
    """A model that is shown four times a second at most while events come, and once a second while in front.

    Signals:
        changed: something shown is new
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.throttle = Throttle(self, 250, self._tell)
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
