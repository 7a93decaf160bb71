"""The record of an engine in the store, with which the next host finds it."""

from pathlib import Path

from pydantic import BaseModel

from engine_host.engines.process.spawn import EngineProcess, ProcessRecord
from engine_host.engines.served_lines import ServedLines
from engine_host.protocol.engines import Engine


class RememberedEngine(BaseModel):
    """An engine with what finds its process again.

    `socket` is where it listens, which another run folder does not tell; older versions did not keep it.
    """

    engine: Engine
    pid: int
    born: str
    socket: str = ""

    @property
    def unreachable(self) -> bool:
        """True if it served and its socket is gone: nobody will reach it again."""
        return bool(self.engine.ready_at and self.socket) and not Path(self.socket).exists()

    def process(self, log: Path, served: ServedLines) -> EngineProcess | None:
        """Its process, which writes to this log; None when it has ended."""
        return EngineProcess.adopt(ProcessRecord(self.pid, self.born), log, served)
