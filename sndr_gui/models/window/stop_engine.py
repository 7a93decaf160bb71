"""Stops and restarts an engine, and asks once more while it answers requests."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from engine_host.protocol.engines import Engine
from sndr_gui.host.session import Session
from sndr_gui.models.window.actions import Actions

_SECONDS_TO_CONFIRM = 6
_NOTICE = "stopping"


class StopEngine(QObject):
    """One Stop and one Relaunch: the first click on a busy engine asks, the second does it.

    The question stands in a button, which only its page shows, and in a notice, which every page shows.

    Signals:
        changed: `question` or `relaunch_question` is new
    """

    changed = Signal()

    def __init__(self, session: Session, actions: Actions) -> None:
        super().__init__()
        self._session, self._actions = session, actions
        self.question = ""
        self.relaunch_question = ""
        self._forget = QTimer(self)
        self._forget.setSingleShot(True)
        self._forget.setInterval(1000 * _SECONDS_TO_CONFIRM)
        # The notice stays for its own time, and its button works as long.
        self._forget.timeout.connect(self._take_back)

    def stop(self, engine: Engine) -> None:
        """Stop this engine, or ask for a second click."""
        running = self._running(engine)
        if running and not self.question:
            self._take_back()
            self.question = f"{running}. Stop anyway"
            self._ask(f"{engine.name}: {running}.", "Stop anyway", partial(self._stop, engine))
            return
        self._stop(engine)

    def relaunch(self, engine: Engine) -> None:
        """Start this engine again in place of the one that runs, or ask for a second click."""
        running = self._running(self._session.state.running or engine)
        if running and not self.relaunch_question:
            self._take_back()
            self.relaunch_question = f"{running}. Relaunch anyway"
            said = f"{engine.name}: {running}. What is not finished in a few seconds is cut off."
            self._ask(said, "Relaunch anyway", partial(self._relaunch, engine))
            return
        self._relaunch(engine)

    def forget(self) -> None:
        """Take the question back."""
        if self.question or self.relaunch_question:
            self._session.notices.withdraw(_NOTICE)
        self._take_back()

    def _running(self, engine: Engine) -> str:
        """Return what would be cut off, in words; empty for nothing."""
        count = self._session.state.open_requests(engine.id)
        if not count:
            return ""
        return "1 request is running" if count == 1 else f"{count} requests are running"

    def _ask(self, sentence: str, answer: str, act: partial[None]) -> None:
        self._forget.start()
        self._session.notices.warning(_NOTICE, sentence, action_text=answer, action=act)
        self.changed.emit()

    def _stop(self, engine: Engine) -> None:
        self._session.notices.withdraw(_NOTICE)
        self._take_back()
        self._actions.stop(engine)

    def _relaunch(self, engine: Engine) -> None:
        self._session.notices.withdraw(_NOTICE)
        self._take_back()
        self._actions.relaunch(engine)

    def _take_back(self) -> None:
        self._forget.stop()
        if self.question or self.relaunch_question:
            self.question = self.relaunch_question = ""
            self.changed.emit()
