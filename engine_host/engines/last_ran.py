"""The engine that ran last, kept over restarts of the host, so that the same can be started again."""

import logging
from collections.abc import Callable, Iterable

from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.core.store import Store
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.events import EngineStateEvent, EventBase
from engine_host.protocol.jobs import Job, JobKind

_log = logging.getLogger(__name__)
_KIND, _ID = "last engine", "last"
_ENDED = {EngineState.FAILED, EngineState.UNLOADED}
# They start what nobody chose, and afterwards what was there before.
_TRIALS = {JobKind.PATCH_BISECT, JobKind.BENCH_SWEEP}


class LastRan:
    """Remembers the newest engine that was ready once, with how it ended."""

    def __init__(self, store: Store, jobs: Callable[[], Iterable[Job]]) -> None:
        self._store, self._jobs = store, jobs
        self.engine = self._read()
        self._saved = self._mark(self.engine) if self.engine is not None else None
        if self.engine is not None and self.engine.state not in _ENDED:
            # A host that was killed told nothing of its end.
            self.engine = self.engine.model_copy(update={"state": EngineState.UNLOADED})

    def take(self, event: EventBase) -> None:
        """Take over what became of an engine."""
        if not isinstance(event, EngineStateEvent) or event.engine.ready_at is None:
            return
        engine, last = event.engine, self.engine
        if last is not None and engine.id != last.id:
            if engine.created_at < last.created_at and last.state not in _ENDED:
                return
            if any(job.kind in _TRIALS and not job.ended for job in self._jobs()):
                return
        self.engine = engine.model_copy(update={"readings": None, "last_lines": (), "job": None})
        if (mark := self._mark(engine)) == self._saved:
            return
        try:
            self._store.put(_KIND, _ID, engine.created_at, self.engine.model_dump_json())
            self._saved = mark
        except HostError as error:
            _log.warning("the engine that ran last was not saved: %s", error.problem.sentence())

    @staticmethod
    def _mark(engine: Engine) -> tuple[str, bool]:
        """Return what of it is worth a write: requests come and go."""
        return engine.id, engine.state in _ENDED

    def _read(self) -> Engine | None:
        body = self._store.get(_KIND, _ID)
        if body is None:
            return None
        try:
            return Engine.model_validate_json(body)
        except ValidationError as error:
            _log.warning("the engine that ran last is of another version of this program: %s", error)
            return None
