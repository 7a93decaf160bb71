"""The records as the control API offers them."""

import asyncio

from engine_host.core.diagnosis.reading import end_of, read
from engine_host.core.diagnosis.shelf import AutopsyShelf, most_looked_at
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.operations.performs import performs
from engine_host.protocol.bench.autopsy import (
    AutopsyEntry,
    AutopsyPage,
    OpenedAutopsy,
    UnreadableAutopsy,
)
from engine_host.protocol.operations import table as ops


class AutopsyOperations:
    """Lists, opens and removes the records of engines that died."""

    def __init__(self, shelf: AutopsyShelf, events: EventLog) -> None:
        self._shelf = shelf
        self._events = events

    @performs(ops.AUTOPSIES)
    async def page(self) -> AutopsyPage:
        """Return every record; a file that cannot be read is listed beside them."""
        return await asyncio.to_thread(self._page)

    @performs(ops.AUTOPSY)
    async def show(self, autopsy: str) -> OpenedAutopsy:
        """Return one record with its reading. Raises HostError(not_found), HostError(unsupported)."""
        return await asyncio.to_thread(self._opened, autopsy)

    @performs(ops.REMOVE_AUTOPSY)
    async def remove(self, autopsy: str) -> AutopsyPage:
        """Remove one. Raises HostError(not_found), HostError(not_writable)."""
        await asyncio.to_thread(self._shelf.remove, autopsy)
        return await self.page()

    def _opened(self, autopsy: str) -> OpenedAutopsy:
        record = self._shelf.open(autopsy)
        return OpenedAutopsy(record=record, reading=read(record))

    def _page(self) -> AutopsyPage:
        found: list[AutopsyEntry] = []
        unreadable: list[UnreadableAutopsy] = []
        for autopsy in most_looked_at(self._shelf.ids()):
            size = self._shelf.size(autopsy)
            try:
                record = self._shelf.open(autopsy)
            except HostError as error:
                unreadable.append(UnreadableAutopsy(id=autopsy, why=error.problem.message, bytes=size))
                continue
            ending, sentence = end_of(record)
            found.append(
                AutopsyEntry(
                    # The name of the file, whatever the record says of itself.
                    id=autopsy,
                    at=record.at,
                    engine=record.engine.id,
                    name=record.engine.name,
                    model=record.engine.plan.model,
                    ending=ending,
                    sentence=sentence,
                    bytes=size or 0,
                )
            )
        return AutopsyPage(
            seq=self._events.seq,
            folder=str(self._shelf.folder),
            autopsies=tuple(found),
            unreadable=tuple(unreadable),
        )
