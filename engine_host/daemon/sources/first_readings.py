"""The first readings of a start, compared with its prediction behind everybody's back."""

import asyncio
import logging

from engine_host.core.errors import HostError
from engine_host.operations.fit import FitOperations
from engine_host.protocol.engines import Engine, EngineState

_log = logging.getLogger(__name__)
_SERVING = {EngineState.READY, EngineState.BUSY}


class FirstReadings:
    """Hands what serves for the first time to the fit, each in a task of its own."""

    def __init__(self, fit: FitOperations) -> None:
        self._fit = fit
        self._comparing: set[asyncio.Task[None]] = set()

    def take(self, engine: Engine) -> None:
        """Compare an engine that has new readings, if that is wanted of it."""
        if engine.state in _SERVING and self._fit.wants(engine):
            task = asyncio.create_task(self._compare(engine), name=f"compare {engine.id}")
            self._comparing.add(task)
            task.add_done_callback(self._comparing.discard)

    async def close(self) -> None:
        """End what is being compared."""
        for task in self._comparing:
            task.cancel()
        await asyncio.gather(*self._comparing, return_exceptions=True)

    async def _compare(self, engine: Engine) -> None:
        try:
            await self._fit.started(engine)
        except HostError as error:
            _log.warning("what %s needs was not compared: %s", engine.name, error.problem.sentence())
