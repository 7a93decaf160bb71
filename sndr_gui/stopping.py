"""Stops an engine, and asks once more while it answers requests."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from engine_host.protocol import Engine
from sndr_gui.actions import Actions
from sndr_gui.session import Session

_SECONDS_TO_CONFIRM = 6


class Stopping(QObject):
    """One Stop button: the first click on a busy engine asks, the second stops.

    Signals:
        changed: `question` is new
    """

    changed = Signal()

    def __init__(self, session: Session, actions: Actions) -> None:
        super().__init__()
        self._session, self._actions = session, actions
        self.question = ""
        self._forget = QTimer(self)
        self._forget.setSingleShot(True)
        self._forget.setInterval(1000 * _SECONDS_TO_CONFIRM)
        self._forget.timeout.connect(self.forget)

    def stop(self, engine: Engine) -> None:
        """Stop this engine, or ask for a second click."""
        count = self._session.state.open_requests(engine.id)
        if count and not self.question:
            running = "request is running" if count == 1 else "requests are running"
            self.question = f"{count} {running}. Stop anyway"
            self._forget.start()
            self.changed.emit()
            return
        self.forget()
        self._actions.stop(engine)

    def forget(self) -> None:
        """Take the question back."""
        self._forget.stop()
        if self.question:
            self.question = ""
            self.changed.emit()
