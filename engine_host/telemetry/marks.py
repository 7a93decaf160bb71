"""The marks on the time axis of the graphs: the few events that explain a curve."""

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.sizes import duration
from engine_host.core.store import Store
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import (
    EngineStateEvent,
    EventBase,
    JobDoneEvent,
    JobStepEvent,
    MarkEvent,
    PatchResultEvent,
)
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.language import tr
from engine_host.protocol.patches import PatchOutcome
from engine_host.protocol.telemetry import Mark, MarkKind

_log = logging.getLogger(__name__)

MOST_MARKS = 2000
"""Marks that are kept; the oldest go first."""
_KIND = "mark"
_LONGEST = 300
_MOST_SEEN = 2 * MOST_MARKS
_MOST_PROCESSES = 64
_BENCHES = {JobKind.BENCH_RUN, JobKind.ENGINE_COMPARE, JobKind.KERNEL_PROOF, JobKind.KV_QUALITY}
_CUTOVERS = {JobKind.ROUTE_CUTOVER, JobKind.ROUTE_PROMOTE, JobKind.ROUTE_ROLLBACK}


class MarkBook:
    """Hears every event, and keeps a mark of each that a person looks for beside a curve."""

    def __init__(self, store: Store, events: EventLog, clock: Callable[[], float] = time.time) -> None:
        """Read the marks of hosts before this one. Raises HostError where the store cannot be read."""
        self._store = store
        self._events = events
        self._clock = clock
        self._marks: deque[Mark] = deque(maxlen=MOST_MARKS)
        for body in reversed(store.newest(_KIND, MOST_MARKS)):
            try:
                self._marks.append(Mark.model_validate_json(body))
            except ValidationError as error:
                _log.warning("A mark of the graphs cannot be read: %s", error)
        # An engine that goes on without its host was marked by the one that started it.
        self._seen: dict[tuple[str, ...], None] = dict.fromkeys(
            (mark.kind.value, mark.engine) for mark in self._marks if mark.engine
        )
        self._count = 0
        self._unsaved: Reason | None = None
        events.listen(self.take)

    def take(self, event: EventBase) -> None:
        """Hear of an event."""
        if isinstance(event, EngineStateEvent):
            self._engine(event.engine)
        elif isinstance(event, JobStepEvent | JobDoneEvent):
            self._job(event.job)
        elif isinstance(event, PatchResultEvent) and event.result.outcome is PatchOutcome.FAILED:
            self._failed(event)

    def since(self, at: float | None, until: float | None = None) -> tuple[Mark, ...]:
        """Return the marks of a time, the oldest first."""
        found = (
            mark
            for mark in self._marks
            if (at is None or mark.at >= at) and (until is None or mark.at <= until)
        )
        return tuple(sorted(found, key=lambda mark: mark.at))

    def _engine(self, engine: Engine) -> None:
        def add(at: float, kind: MarkKind, text: str) -> None:
            if self._is_first(kind.value, engine.id):
                self._add(at, kind, text, engine.id)

        if engine.pid is not None or engine.state is EngineState.STARTING:
            add(
                engine.created_at,
                MarkKind.STARTED,
                tr("{engine} started ({kind})", engine=engine.name, kind=engine.engine),
            )
        if engine.ready_at is not None:
            took = duration(engine.ready_after) if engine.ready_after is not None else None
            add(
                engine.ready_at,
                MarkKind.READY,
                tr("{engine} is ready[ after {duration}]", engine=engine.name, duration=took),
            )
        if engine.state is EngineState.FAILED:
            problem = engine.problem
            memory = problem is not None and problem.reason is Reason.OUT_OF_MEMORY and not engine.was_refused
            kind = MarkKind.OUT_OF_MEMORY if memory else MarkKind.DIED
            why = problem.message if problem is not None else None
            if memory:
                text = tr("{engine} ran out of memory[: {why}]", engine=engine.name, why=why)
            elif engine.was_refused:
                text = tr("{engine} was refused its start[: {why}]", engine=engine.name, why=why)
            elif engine.ready_at is None:
                text = tr("{engine} failed[: {why}]", engine=engine.name, why=why)
            else:
                text = tr("{engine} died[: {why}]", engine=engine.name, why=why)
            add(engine.ended_at or self._clock(), kind, text)
        elif engine.state is EngineState.UNLOADED:
            add(
                engine.ended_at or self._clock(), MarkKind.STOPPED, tr("{engine} stopped", engine=engine.name)
            )

    def _failed(self, event: PatchResultEvent) -> None:
        """Mark a patch's failure once, and count those in other processes and those that came again."""
        result = event.result
        why = result.reason or result.detail
        code = f"{result.patch} {why}"[:_LONGEST]
        now, first_heard = self._clock(), self._is_first("patch", event.engine, code, str(event.pid))
        known = next((mark for mark in self._marks if (mark.engine, mark.code) == (event.engine, code)), None)
        if known is None:
            text = tr("Patch {patch} failed[: {why}]", patch=result.patch, why=why)
            self._add(now, MarkKind.PATCH_FAILED, text, event.engine, code, event.pid)
        elif not (first_heard and event.pid in known.processes):
            # A host that takes an engine over hears again what its processes had said.
            again = {"times": known.times + 1, "last_at": now}
            processes = dict.fromkeys((*known.processes, event.pid))
            self._replace(known, again | {"processes": tuple(processes)[:_MOST_PROCESSES]})

    def _job(self, job: Job) -> None:
        if job.kind in _BENCHES and job.started_at is not None:
            if self._is_first("begun", job.id):
                self._add(job.started_at, MarkKind.BENCH_BEGUN, tr("{title}: begun", title=job.title), "")
            if job.ended and self._is_first("ended", job.id):
                self._add(
                    job.ended_at or self._clock(),
                    MarkKind.BENCH_ENDED,
                    tr("{title}: {state}", title=job.title, state=tr(job.state.value)),
                    "",
                )
        elif job.kind in _CUTOVERS and job.state is JobState.DONE and self._is_first("moved", job.id):
            self._add(job.ended_at or self._clock(), MarkKind.CUT_OVER, job.title, "")

    def _is_first(self, *what: str) -> bool:
        if what in self._seen:
            return False
        self._seen[what] = None
        while len(self._seen) > _MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        return True

    def _add(
        self, at: float, kind: MarkKind, text: str, engine: str, code: str = "", pid: int | None = None
    ) -> None:
        self._count += 1
        cut = text if len(text) <= _LONGEST else tr("{text}…", text=text[: _LONGEST - 1])
        identifier = f"{int(self._clock() * 1000):x}-{self._count}"
        processes = () if pid is None else (pid,)
        mark = Mark(id=identifier, at=at, kind=kind, text=cut, engine=engine, code=code, processes=processes)
        self._marks.append(mark)
        self._keep(mark)

    def _replace(self, known: Mark, changes: dict[str, Any]) -> None:
        mark = known.model_copy(update=changes)
        self._marks[self._marks.index(known)] = mark
        self._keep(mark)

    def _keep(self, mark: Mark) -> None:
        try:
            self._store.put(_KIND, mark.id, mark.at, mark.model_dump_json())
            if self._count % 100 == 1:
                self._store.prune(_KIND, MOST_MARKS)
        except HostError as error:
            # Said once: it is in memory, and graphs stop nothing.
            if self._unsaved is not error.reason:
                _log.warning("The marks of the graphs are not kept on the disk: %s", error)
            self._unsaved = error.reason
        else:
            self._unsaved = None
        self._events.publish(MarkEvent(mark=mark))
