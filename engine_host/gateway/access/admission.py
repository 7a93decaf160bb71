"""Admit requests to an engine's slots in the order of their arrival; the others wait in a queue."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from engine_host.gateway import error_answers as faults
from engine_host.gateway.directory import ActivityHook, Target


@dataclass(eq=False)
class Ticket:
    """One request's place; `granted` while it holds a slot."""

    engine: str
    name: str
    granted: bool = False
    fault: faults.EndpointError | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def settled(self) -> bool:
        """True if the wait is over, with a slot or with a refusal."""
        return self.granted or self.fault is not None


@dataclass
class _Line:
    """One engine's slots and its queue."""

    slots: int
    active: int = 0
    draining: bool = False
    queue: deque[Ticket] = field(default_factory=deque)
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.idle.set()


class Admission:
    """First-in, first-out admission to each engine's slots; everything runs on one event loop."""

    def __init__(self, queue_limit: int, on_activity: ActivityHook | None = None) -> None:
        self.queue_limit = queue_limit
        self._on_activity: Callable[[str, int], None] = on_activity or (lambda engine, active: None)
        self._lines: dict[str, _Line] = {}

    def enter(self, target: Target) -> Ticket:
        """A slot at once, or the queue's end; raises EndpointError draining and queue_full."""
        line = self._lines.setdefault(target.engine, _Line(target.slots))
        line.slots = target.slots
        if line.draining:
            raise faults.draining(target.name)
        ticket = Ticket(target.engine, target.name)
        if line.active < line.slots and not line.queue:
            self._grant(line, ticket)
        elif len(line.queue) >= self.queue_limit:
            raise faults.queue_full(target.name, self.queue_limit)
        else:
            line.queue.append(ticket)
        return ticket

    async def wait(self, ticket: Ticket, timeout: float | None = None) -> bool:
        """Wait until the place changed; True with a slot, False when it only moved; raises EndpointError."""
        if not ticket.settled:
            try:
                async with asyncio.timeout(timeout):
                    await ticket.changed.wait()
            except TimeoutError:
                return False
            ticket.changed.clear()
        if ticket.fault is not None:
            raise ticket.fault
        return ticket.granted

    def leave(self, ticket: Ticket) -> None:
        """Give the slot back, or leave the queue; harmless when repeated."""
        line = self._lines.get(ticket.engine)
        if line is None:
            return
        if ticket.granted:
            ticket.granted = False
            line.active -= 1
            self._admit(line)
            if not line.active:
                line.idle.set()
            self._on_activity(ticket.engine, line.active)
        elif ticket in line.queue:
            line.queue.remove(ticket)
            self._tell(line)

    def ahead(self, ticket: Ticket) -> int:
        """Return the number of requests that wait before this one."""
        line = self._lines.get(ticket.engine)
        return line.queue.index(ticket) if line and ticket in line.queue else 0

    def active(self, engine: str) -> int:
        """Requests that hold a slot of this engine."""
        line = self._lines.get(engine)
        return line.active if line else 0

    def waiting(self, engine: str) -> int:
        """Requests that wait for a slot of this engine."""
        line = self._lines.get(engine)
        return len(line.queue) if line else 0

    def slots(self, engine: str) -> int:
        """Slots of this engine, 0 before its first request."""
        line = self._lines.get(engine)
        return line.slots if line else 0

    def draining(self, engine: str) -> bool:
        """Return True if the engine takes no new requests."""
        line = self._lines.get(engine)
        return bool(line and line.draining)

    async def drain(self, engine: str, timeout: float) -> bool:
        """Take nothing new, refuse who waits, wait for the active ones; whether all ended in `timeout` s."""
        line = self._lines.setdefault(engine, _Line(1))
        line.draining = True
        waiting = list(line.queue)
        line.queue.clear()
        for ticket in waiting:
            ticket.fault = faults.draining(ticket.name)
            ticket.changed.set()
        try:
            async with asyncio.timeout(timeout):
                await line.idle.wait()
        except TimeoutError:
            return False
        except asyncio.CancelledError:
            line.draining = False  # The stop was called off; the engine serves on.
            raise
        return True

    def forget(self, engine: str) -> None:
        """Drop an engine that is gone and refuse who waits for it; tickets still held stay harmless."""
        line = self._lines.pop(engine, None)
        for ticket in line.queue if line else ():
            ticket.fault = faults.engine_unreachable(ticket.name)
            ticket.changed.set()

    def _grant(self, line: _Line, ticket: Ticket) -> None:
        line.active += 1
        line.idle.clear()
        ticket.granted = True
        ticket.changed.set()
        self._on_activity(ticket.engine, line.active)

    def _admit(self, line: _Line) -> None:
        while line.queue and line.active < line.slots:
            self._grant(line, line.queue.popleft())
        self._tell(line)

    def _tell(self, line: _Line) -> None:
        for ticket in line.queue:
            ticket.changed.set()
