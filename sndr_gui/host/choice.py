"""The engine that the window is about: the one that a person chose, or else the newest that runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine_host.protocol.engines import Engine, EngineState

LIVE_STATES = frozenset(
    {
        EngineState.PREPARING,
        EngineState.STARTING,
        EngineState.READY,
        EngineState.BUSY,
        EngineState.DRAINING,
        EngineState.STOPPING,
    }
)
STARTING_STATES = frozenset({EngineState.PREPARING, EngineState.STARTING})


class EngineChoice:
    """Keeps one engine chosen: another one that starts takes nothing away from what somebody looks at.

    An engine that a person chose stays chosen when it fails, so that they see why. One that nobody chose
    gives way to one that runs, and one that is gone to the one that took over its name.
    """

    def __init__(self) -> None:
        self.id = ""
        self._name = ""
        self._meant = self._ran = False

    def choose(self, engine: Engine) -> None:
        """Choose an engine, as a person does."""
        self.id, self._name, self._meant = engine.id, engine.name, True
        self._ran = engine.state in LIVE_STATES

    def settle(self, engines: Mapping[str, Engine], stopped_at: float = 0.0) -> None:
        """Keep the choice among these engines, or make one where the chosen one is gone.

        What failed before another one was stopped, at `stopped_at`, is an old story: it is there to be
        chosen, and not what somebody sees who just stopped something.
        """
        held = engines.get(self.id)
        if held is not None and held.state in LIVE_STATES:
            self._ran = True
            return
        if held is not None and self._meant and not self._ran:
            # A start that had failed already: somebody wants to read why.
            return
        live = [engine for engine in engines.values() if engine.state in LIVE_STATES]
        successor = newest(engine for engine in live if engine.name == self._name)
        if successor is not None:
            # The same model started again, with its settings changed: the person is still about it.
            self.id = successor.id
            return
        if held is not None and (self._meant or not live):
            return
        fresh = (engine for engine in engines.values() if (engine.ended_at or 0.0) >= stopped_at)
        found = newest(live) or newest(fresh)
        self.id, self._meant = (found.id if found is not None else ""), False
        if found is not None:
            self._name, self._ran = found.name, found.state in LIVE_STATES


def newest(engines: Iterable[Engine]) -> Engine | None:
    """Return the engine that was started last."""
    return max(engines, key=lambda engine: engine.created_at, default=None)
