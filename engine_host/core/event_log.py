"""The event log: everything that happens is numbered, kept for a while, and read by many."""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator

from engine_host.protocol.events import EventBase, HeartbeatEvent, MissedEvent, ResetEvent


class EventLog:
    """A ring of the newest events of this run; a reader has a place in it, not a queue of its own.

    So a slow reader costs nothing: it is told what it missed and goes on from what is still there.
    """

    def __init__(self, size: int = 20_000, heartbeat: float = 10.0) -> None:
        self.run_id = secrets.token_hex(8)
        self._ring: deque[EventBase] = deque(maxlen=size)
        self._latest = 0
        self._heartbeat = heartbeat
        self._grown = asyncio.Event()
        self._closed = False

    @property
    def seq(self) -> int:
        """The number of the newest event; 0 before the first."""
        return self._latest

    def publish(self, event: EventBase) -> None:
        """Number an event, keep it, and wake the readers."""
        self._latest += 1
        self._ring.append(event.model_copy(update={"seq": self._latest, "at": time.time()}))
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()

    def close(self) -> None:
        """End every reader once it has read what is there."""
        self._closed = True
        self._grown.set()

    async def read(self, after: int | None = None, run_id: str | None = None) -> AsyncIterator[EventBase]:
        """Events numbered above `after` (None: from now on), then new ones as they come, with heartbeats.

        Starts with a `reset` when `after` belongs to another run or is older than the ring.
        """
        place = self._latest if after is None else after
        other_run = run_id is not None and run_id != self.run_id
        if other_run or place > self._latest or place < self._oldest() - 1:
            place = self._latest
            yield ResetEvent(at=time.time(), run_id=self.run_id, latest=place)
        while True:
            grown = self._grown
            if place < self._oldest() - 1:
                # Set before the yield: while the reader looks at it, the ring may move on.
                first, place = place + 1, self._oldest() - 1
                yield MissedEvent(at=time.time(), first=first, last=place)
            while place < self._latest and place >= self._oldest() - 1:
                event = self._ring[place + 1 - self._oldest()]
                place = event.seq
                yield event
            if place < self._latest:
                continue
            if self._closed:
                return
            try:
                async with asyncio.timeout(self._heartbeat):
                    await grown.wait()
            except TimeoutError:
                yield HeartbeatEvent(at=time.time(), latest=self._latest)

    def _oldest(self) -> int:
        return self._ring[0].seq if self._ring else self._latest + 1
