"""Says once that the program was updated while its host runs, and what to do for the new one."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from engine_host.core.event_log import EventLog
from engine_host.core.processes import own_files
from engine_host.core.processes.own_programs import is_frozen
from engine_host.protocol.base import Severity
from engine_host.protocol.events import NoticeEvent
from engine_host.protocol.host import updated

_log = logging.getLogger(__name__)
EVERY = 10.0


@contextlib.asynccontextmanager
async def watched(events: EventLog) -> AsyncIterator[None]:
    """Publish a notice once other files lie where this program's were."""
    task = asyncio.create_task(_watch(events), name="program's files")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _watch(events: EventLog) -> None:
    if is_frozen():
        # Packages are updated under hosts that run.
        own_files.load_all()
    while not own_files.replaced():  # noqa: ASYNC110  # Nobody tells of a file.
        await asyncio.sleep(EVERY)
    _log.warning("%s", updated())
    events.publish(NoticeEvent(key="program updated", severity=Severity.WARNING, text=updated()))
