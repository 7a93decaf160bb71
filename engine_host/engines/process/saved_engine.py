"""The records of engines in the store: of those that run, and of those that ended with their host."""

import logging
import re
import time
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError, model_validator

from engine_host.core.errors import HostError
from engine_host.core.store import Store
from engine_host.engines.process.spawn import EngineProcess, ProcessRecord
from engine_host.engines.served_lines import ServedLines
from engine_host.protocol.base import Wire
from engine_host.protocol.endpoint.connect import EndedWithHost
from engine_host.protocol.engines import Engine

_log = logging.getLogger(__name__)
_RUNNING, _ENDED = "engine", "ended with host"
_MOST, _MOST_ENDED = 100, 20
_TOLD_FOR = 7 * 86_400.0
"""Seconds that an engine which ended with its host is told of."""

# Its log, its ledger and its socket are called after these, and are removed when it has ended.
_ENGINE = re.compile(r"engine-[0-9a-z-]{1,40}")
_PLAN = re.compile(r"plan-[0-9a-z-]{1,40}")


class RememberedEngine(Wire):
    """An engine with what finds its process again.

    `socket` is where it listens, which another run folder does not tell; older versions did not keep it.
    """

    engine: Engine
    pid: int = Field(gt=1, lt=1 << 31)
    born: str
    socket: str = ""

    @property
    def unreachable(self) -> bool:
        """True if it served and its socket is gone: nobody will reach it again."""
        return bool(self.engine.ready_at and self.socket) and not Path(self.socket).exists()

    @model_validator(mode="after")
    def _names_its_own_files(self) -> Self:
        plan = self.engine.plan.id
        if not _ENGINE.fullmatch(self.engine.id) or not _PLAN.fullmatch(plan):
            raise ValueError("its ids are none of this program")
        if self.socket and (Path(self.socket).name != f"{plan}.sock" or not Path(self.socket).is_absolute()):
            raise ValueError("its socket is none of this program")
        return self

    def process(self, log: Path, served: ServedLines) -> EngineProcess | None:
        """Its process, which writes to this log; None when it has ended."""
        return EngineProcess.adopt(ProcessRecord(self.pid, self.born), log, served)


class SavedEngines:
    """The engines of this host as the next one is to know them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def running(self) -> list[RememberedEngine]:
        """Return the engines that an earlier host left, the newest first; unreadable ones are left out."""
        found = []
        for body in self._store.newest(_RUNNING, _MOST):
            try:
                found.append(RememberedEngine.model_validate_json(body))
            except ValidationError as error:
                _log.warning("an engine of another version of this program is left alone: %s", error)
        return found

    def save(self, engine: Engine, process: ProcessRecord, socket: str) -> None:
        """Save one that runs. Raises what saving raises."""
        kept = RememberedEngine(engine=engine, pid=process.pid, born=process.born, socket=socket)
        self._store.put(_RUNNING, engine.id, engine.created_at, kept.model_dump_json())
        if engine.ready_at:
            self._store.remove(_ENDED, engine.name)

    def forget(self, engine: Engine) -> None:
        """Forget one that has ended."""
        try:
            self._store.remove(_RUNNING, engine.id)
        except HostError as error:
            # A record of a process that is gone does no harm: it is told by its birth.
            _log.warning("%s", error.problem.sentence())

    def ended_with_host(self, engine: Engine, at: float | None = None) -> None:
        """Note one that served and ended because its host did; without `at` nobody saw when."""
        told = EndedWithHost(name=engine.name, command=engine.plan.command, at=at)
        try:
            self._store.put(_ENDED, engine.name, at or time.time(), told.model_dump_json())
            self._store.prune(_ENDED, _MOST_ENDED)
        except HostError as error:
            _log.warning("%s", error.problem.sentence())

    def ended(self) -> tuple[EndedWithHost, ...]:
        """Return those that ended with a host before this one, by name, of the last days."""
        found = []
        for body in self._store.newest(_ENDED, _MOST_ENDED):
            try:
                found.append(EndedWithHost.model_validate_json(body))
            except ValidationError as error:
                _log.warning("an engine of another version of this program is left out: %s", error)
        return tuple(sorted((one for one in found if _is_recent(one)), key=lambda one: one.name))


def _is_recent(ended: EndedWithHost) -> bool:
    return ended.at is None or time.time() - ended.at < _TOLD_FOR
