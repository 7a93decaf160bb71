"""The record of an engine in the store, with which the next host finds it."""

import re
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from engine_host.engines.process.spawn import EngineProcess, ProcessRecord
from engine_host.engines.served_lines import ServedLines
from engine_host.protocol.base import Wire
from engine_host.protocol.engines import Engine

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
