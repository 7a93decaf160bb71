"""The progress of a start from Launch: its stages, and what came of it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from engine_host.protocol.engines import Engine, EngineState
from sndr_gui.host.choice import STARTING_STATES
from sndr_gui.host.state import HostState
from sndr_gui.models.engine.start import StageRow, stage_rows
from sndr_gui.models.window.actions import Actions

_ANSWERS = (EngineState.READY, EngineState.BUSY)


class StartWatch(QObject):
    """Follows the engine that was last started while Launch was looked at, and the chosen one.

    Signals:
        settled: an engine is ready to answer, or ended: what it holds of the memory is another from now on
    """

    settled = Signal()

    def __init__(self, state: HostState, actions: Actions) -> None:
        super().__init__()
        self._state, self._actions = state, actions
        self._started = ""
        self._answering: tuple[str, ...] = ()
        self.shown = False
        actions.started.connect(self._on_started)
        state.engines_changed.connect(self._on_engines)

    def _on_started(self) -> None:
        engine = self._state.engine
        self._started = engine.id if engine is not None and self.shown else ""

    def _on_engines(self) -> None:
        answering = tuple(engine.id for engine in self._state.live if engine.state in _ANSWERS)
        if answering != self._answering:
            self._answering = answering
            self.settled.emit()

    @property
    def latest(self) -> Engine | None:
        """The engine that was last started here, while it is ready or has failed."""
        engine = self._state.engines.get(self._started)
        ended = (*_ANSWERS, EngineState.FAILED)
        return engine if engine is not None and engine.state in ended else None

    @property
    def starting(self) -> Engine | None:
        """The engine that is being started: the one that was started here, or else the chosen one."""
        for engine in (self._state.engines.get(self._started), self._state.running):
            if engine is not None and engine.state in STARTING_STATES:
                return engine
        return None

    def stages(self, now: float) -> tuple[StageRow, ...]:
        """The stages of the start under way."""
        engine = self.starting
        return stage_rows(engine.stages, now) if engine else ()

    def cancel(self) -> None:
        """Give up the start."""
        if (engine := self.starting) is not None:
            self._actions.cancel_start(engine)
