"""The records as the control API offers them."""

import asyncio

from engine_host.core.diagnosis.listing import opened, page_of
from engine_host.core.diagnosis.shelf import AutopsyShelf
from engine_host.core.event_log import EventLog
from engine_host.operations.performs import performs
from engine_host.protocol.bench.autopsy import AutopsyPage, OpenedAutopsy
from engine_host.protocol.operations import table as ops


class AutopsyOperations:
    """Lists, opens and removes the records of engines that died."""

    def __init__(self, shelf: AutopsyShelf, events: EventLog) -> None:
        self._shelf = shelf
        self._events = events

    @performs(ops.AUTOPSIES)
    async def page(self) -> AutopsyPage:
        """Return every record; a file that cannot be read is listed beside them."""
        return await asyncio.to_thread(page_of, self._shelf, self._events.seq)

    @performs(ops.AUTOPSY)
    async def show(self, autopsy: str) -> OpenedAutopsy:
        """Return one record with its reading. Raises HostError(not_found), HostError(unsupported)."""
        return await asyncio.to_thread(opened, self._shelf, autopsy)

    @performs(ops.REMOVE_AUTOPSY)
    async def remove(self, autopsy: str) -> AutopsyPage:
        """Remove one. Raises HostError(not_found), HostError(not_writable)."""
        await asyncio.to_thread(self._shelf.remove, autopsy)
        return await self.page()
