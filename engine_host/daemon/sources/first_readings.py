"""The first readings of a start: compared with its prediction, and told to who waits for them."""

import asyncio
import logging
from collections.abc import Callable

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
        self._listening: list[Callable[[Engine], None]] = []
        self._served: set[str] = set()

    def also(self, listener: Callable[[Engine], None]) -> None:
        """Tell somebody of each start of this host that serves for the first time."""
        self._listening.append(listener)

    def take(self, engine: Engine) -> None:
        """Compare an engine that has new readings, if that is wanted of it."""
        if engine.state in _SERVING and engine.id not in self._served:
            self._served.add(engine.id)
            # One that an earlier host started was looked at then.
            for listener in () if engine.adopted else self._listening:
                listener(engine)
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
