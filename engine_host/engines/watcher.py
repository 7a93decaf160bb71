"""Whoever follows engines beside the manager."""

from typing import Protocol

from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Problem


class Watcher(Protocol):
    """Somebody who follows engines beside the manager: the ledger of their patches."""

    def begin(self, engine: Engine) -> None:
        """An engine is about to get a process, or was found again. Raises HostError."""

    async def refusal(self, engine_id: str) -> Problem:
        """Waits until a start must be ended; most often forever."""

    def end(self, engine_id: str) -> None:
        """An engine is gone."""
