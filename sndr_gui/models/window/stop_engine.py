"""Stops and restarts engines, and asks once more while one answers requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from engine_host.protocol.engines import Engine
from engine_host.protocol.language import ntr, tr
from sndr_gui.host.session import Session
from sndr_gui.models.window.actions import Actions

_SECONDS_TO_CONFIRM = 6
_NOTICE = "stopping"


@dataclass(frozen=True)
class _Question:
    """One question about one engine, and its label on the button."""

    engine: str
    label: str
    relaunch: bool


class StopEngine(QObject):
    """One Stop and one Relaunch for every engine: the first click on a busy one asks, the second does it.

    The question stands in a button, which only its page shows, and in a notice, which every page shows.
    There is one at a time: to ask of another engine takes the one before back.

    Signals:
        changed: what is asked is new
    """

    changed = Signal()

    def __init__(self, session: Session, actions: Actions) -> None:
        super().__init__()
        self._session, self._actions = session, actions
        self._asked: _Question | None = None
        self._forget = QTimer(self)
        self._forget.setSingleShot(True)
        self._forget.setInterval(1000 * _SECONDS_TO_CONFIRM)
        # The notice stays for its own time, and its button works as long.
        self._forget.timeout.connect(self._take_back)

    def question(self, engine: Engine | None) -> str:
        """Return what a second click on Stop of this engine would do; empty while nothing is asked."""
        return self._label(engine, False)

    def relaunch_question(self, engine: Engine | None) -> str:
        """Return what a second click on Relaunch of this engine would do; empty while nothing is asked."""
        return self._label(engine, True)

    def _label(self, engine: Engine | None, relaunch: bool) -> str:
        asked = self._asked
        if asked is None or engine is None or (asked.engine, asked.relaunch) != (engine.id, relaunch):
            return ""
        return asked.label

    def stop(self, engine: Engine, how: Callable[[], object] | None = None) -> None:
        """Stop this engine, or ask for a second click; `how` is another way to stop it than Stop's own."""
        running, how = self._running(engine), how or partial(self._actions.stop, engine)
        if running and not self.question(engine):
            self._ask(
                _Question(engine.id, tr("{running}. Stop anyway", running=running), False),
                f"{engine.name}: {running}.",
                tr("Stop anyway"),
                partial(self._do, how),
            )
            return
        self._do(how)

    def relaunch(self, engine: Engine) -> None:
        """Start this engine again, or ask for a second click; another with its name the start asks about."""
        running, again = self._running(engine), partial(self._actions.relaunch, engine)
        if running and not self.relaunch_question(engine):
            self._ask(
                _Question(engine.id, tr("{running}. Relaunch anyway", running=running), True),
                tr(
                    "{name}: {running}. What is not finished in a few seconds is cut off.",
                    name=engine.name,
                    running=running,
                ),
                tr("Relaunch anyway"),
                partial(self._do, again),
            )
            return
        self._do(again)

    def _running(self, engine: Engine) -> str:
        """Return what would be cut off, in words; empty for nothing."""
        count = self._session.state.open_requests(engine.id)
        if not count:
            return ""
        return ntr("{n} request is running", "{n} requests are running", count)

    def _ask(self, asked: _Question, sentence: str, answer: str, act: partial[None]) -> None:
        self._asked = asked
        self._forget.start()
        self._session.notices.warning(_NOTICE, sentence, action_text=answer, action=act)
        self.changed.emit()

    def _do(self, what: Callable[[], object]) -> None:
        self._session.notices.withdraw(_NOTICE)
        self._take_back()
        what()

    def _take_back(self) -> None:
        self._forget.stop()
        if self._asked is not None:
            self._asked = None
            self.changed.emit()
