"""Models that were sent to another machine and are gone there: sent again where a watchdog awaits them."""

import asyncio
import logging
import time

from engine_host.core.errors import HostError
from engine_host.core.jobs import JobRunner
from engine_host.operations.remote.transfers import ModelTransferOperations
from engine_host.remote.hosts import RemoteHosts
from engine_host.remote.transfer.sent import SentModel
from engine_host.remote.watchdogs import read_watchdogs

_log = logging.getLogger(__name__)
_LOOK = 60.0
"""Seconds between two looks at the watchdogs of a machine to which something was sent."""
_AGAIN = 600.0
"""Seconds until what was sent, or could not be, is sent again."""


class Rehydration:
    """Sends again what is gone; machines to which nothing was sent are asked nothing."""

    def __init__(
        self, hosts: RemoteHosts, jobs: JobRunner, transfers: ModelTransferOperations, again: float = _AGAIN
    ) -> None:
        """Look beside each connection from now on; `again` are seconds from one try to the next."""
        self._hosts, self._jobs, self._transfers, self._again = hosts, jobs, transfers, again
        self._tried: dict[tuple[str, str], tuple[str, float]] = {}
        hosts.beside.append(self.stay)

    async def stay(self, name: str) -> None:
        """Look now and then, until this is cancelled."""
        while True:
            await asyncio.sleep(_LOOK)
            try:
                await self.look(name)
            except HostError as error:
                _log.info("the watchdogs of %s could not be read: %s", name, error.problem.message)
            except Exception:  # noqa: BLE001 - nothing would be sent again, and nobody would hear of it
                _log.exception("the watchdogs of %s could not be read", name)

    async def look(self, name: str) -> None:
        """Send what is awaited there. Raises HostError, of the connection too."""
        sent = self._hosts.book.sent_to(name)
        if not sent:
            return
        for one in await read_watchdogs(lambda script: self._hosts.run(name, script), name):
            gone = set(one.missing) if one.awaited else set()
            model = next((model for model in sent if gone & model.files.keys()), None)
            if model is not None and self._may(name, model):
                job = self._transfers.send_again(name, model)
                self._tried[name, model.model] = (job.id, time.monotonic())

    def _may(self, name: str, model: SentModel) -> bool:
        """Return False while it is being sent, and for a while after that."""
        job, at = self._tried.get((name, model.model), ("", 0.0))
        if not job:
            return True
        try:
            ended = self._jobs.get(job).ended
        except HostError:
            ended = True
        return ended and time.monotonic() - at > self._again
