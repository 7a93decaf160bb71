"""The event log: everything that happens is numbered, kept for a while, and read by many."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from pydantic_core import PydanticSerializationError

from engine_host.core.bounds.cut_text import cut_texts
from engine_host.core.bounds.newest import Newest
from engine_host.protocol.events import EventBase, HeartbeatEvent, MissedEvent, ResetEvent

_LARGEST = 256 << 10
"""Bytes of one event; in a larger one, texts are cut until it fits or there is nothing left to cut."""
_CUTS = (20_000, 2_000, 200)
_ENTRY = 100
"""Bytes that Python needs for an entry beside its text."""


@dataclass(frozen=True, slots=True)
class Told:
    """An event as it is sent: its number, 0 for one that is not kept, and its JSON."""

    seq: int
    data: bytes


class EventLog:
    """A ring of the newest events of this run; a reader has a place in it, not a queue of its own.

    So a slow reader costs nothing: it is told what it missed and goes on from what is still there. Events are
    kept as they are sent, so that `limit` bounds the bytes of memory, whatever stands in them.
    """

    def __init__(self, size: int = 20_000, heartbeat: float = 10.0, limit: int = 16 << 20) -> None:
        self.run_id = secrets.token_hex(8)
        self._ring: Newest[Told] = Newest(size, limit)
        self._latest = 0
        self._heartbeat = heartbeat
        self._waiting: list[asyncio.Future[None]] = []
        self._closed = False
        self._listeners: list[Callable[[EventBase], None]] = []

    @property
    def seq(self) -> int:
        """The number of the newest event; 0 before the first."""
        return self._latest

    @property
    def held(self) -> int:
        """Bytes of the events that are kept."""
        return self._ring.size

    def publish(self, event: EventBase) -> None:
        """Number an event, keep it, and wake the readers."""
        self._latest += 1
        told = Told(self._latest, _encoded(event.model_copy(update={"seq": self._latest, "at": time.time()})))
        self._ring.add(told, len(told.data) + _ENTRY)
        self._wake()
        for listener in self._listeners:
            listener(event)

    def listen(self, listener: Callable[[EventBase], None]) -> None:
        """Call this with each event from now on, right after it was published."""
        self._listeners.append(listener)

    def close(self) -> None:
        """End every reader once it has read what is there."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        """Tell all readers that wait; most often there is none."""
        for one in self._waiting:
            if not one.done():
                one.set_result(None)
        self._waiting.clear()

    async def read(self, after: int | None = None, run_id: str | None = None) -> AsyncIterator[Told]:
        """Events numbered above `after` (None: from now on), then new ones as they come, with heartbeats.

        Starts with a `reset` when `after` belongs to another run or is older than the ring.
        """
        place = self._latest if after is None else after
        other_run = run_id is not None and run_id != self.run_id
        if other_run or place > self._latest or place < self._oldest() - 1:
            place = self._latest
            yield _unkept(ResetEvent(at=time.time(), run_id=self.run_id, latest=place))
        while True:
            if place < self._oldest() - 1:
                # Set before the yield: while the reader looks at it, the ring may move on.
                first, place = place + 1, self._oldest() - 1
                yield _unkept(MissedEvent(at=time.time(), first=first, last=place))
            while place < self._latest and place >= self._oldest() - 1:
                event = self._ring[place + 1 - self._oldest()]
                place = event.seq
                yield event
            if place < self._latest:
                continue
            if self._closed:
                return
            grown = asyncio.get_running_loop().create_future()
            self._waiting.append(grown)
            try:
                async with asyncio.timeout(self._heartbeat):
                    await grown
            except TimeoutError:
                yield _unkept(HeartbeatEvent(at=time.time(), latest=self._latest))
            finally:
                if grown in self._waiting:
                    self._waiting.remove(grown)

    def _oldest(self) -> int:
        return self._ring[0].seq if len(self._ring) else self._latest + 1


def _unkept(event: EventBase) -> Told:
    return Told(0, event.model_dump_json().encode())


def _encoded(event: EventBase) -> bytes:
    """Return an event as JSON; a name of a file that is no text (half characters) does not stop it."""
    try:
        data = event.model_dump_json().encode()
    except PydanticSerializationError:
        text = json.dumps(event.model_dump(mode="json"), ensure_ascii=False)
        data = text.encode("utf-8", "replace")
    whole = json.loads(data) if len(data) > _LARGEST else None
    for most in _CUTS:
        if len(data) > _LARGEST:
            data = json.dumps(cut_texts(whole, most), ensure_ascii=False).encode()
    return data
