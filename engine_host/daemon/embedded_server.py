"""uvicorn's server without its ticks: it ends when it is told, as soon as nobody is connected any more."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator

import uvicorn

# The date in the headers of answers is written anew so often.
_DATE_SECONDS = 1.0
_SHORTEST_LOOK, _LONGEST_LOOK = 0.001, 0.05

# A request that was cut off gets so long for what it still has to say.
_LAST_WORD = 1.0

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def _not_told_as_failures() -> Iterator[None]:
    """Keep uvicorn from writing a traceback for each request that is cut off: they were counted."""

    def fails(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))

    uvicorn_log = logging.getLogger("uvicorn.error")
    uvicorn_log.addFilter(fails)
    try:
        yield
    finally:
        uvicorn_log.removeFilter(fails)


class EmbeddedServer(uvicorn.Server):
    """A server whose owner decides when it ends.

    uvicorn itself looks ten times a second whether it shall end, and sleeps a tenth of a second when it does.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._told = asyncio.Event()

    def end(self) -> None:
        """Stop listening, give open requests the time of the configuration, close."""
        self.should_exit = True
        self._told.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone: uvicorn would raise them again after its end and cut off our clean-up."""
        yield

    async def main_loop(self) -> None:
        """Serve until `end`."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), _DATE_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close what listens and what is idle; cancel what is still asked after the time that it is given."""
        for server in self.servers:
            server.close()
        for listener in sockets or ():
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                await self._emptied()
        except TimeoutError:
            tasks = set(self.server_state.tasks)
            _log.error("requests that did not end by themselves were cut off: %d", len(tasks))
            with _not_told_as_failures():
                for task in tasks:
                    task.cancel()
                if tasks:
                    await asyncio.wait(tasks, timeout=_LAST_WORD)

    async def _emptied(self) -> None:
        """Wait for the last connection and the last request; uvicorn tells nobody."""
        look = _SHORTEST_LOOK
        while self.server_state.connections or self.server_state.tasks:
            await asyncio.sleep(look)
            look = min(2 * look, _LONGEST_LOOK)
