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

    def process(self, log: Path, served: ServedLines) -> EngineProcess | None:
        """Its process, which writes to this log; None when it has ended."""
        return EngineProcess.adopt(ProcessRecord(self.pid, self.born), log, served)
