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
class _EngineState:
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
        self._engines: dict[str, _EngineState] = {}

    def enter(self, target: Target) -> Ticket:
        """A slot at once, or the queue's end; raises EndpointError draining and queue_full."""
        state = self._engines.setdefault(target.engine, _EngineState(target.slots))
        state.slots = target.slots
        if state.draining:
            raise faults.draining(target.name)
        ticket = Ticket(target.engine, target.name)
        if state.active < state.slots and not state.queue:
            self._grant(state, ticket)
        elif len(state.queue) >= self.queue_limit:
            raise faults.queue_full(target.name, self.queue_limit)
        else:
            state.queue.append(ticket)
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

    def release(self, ticket: Ticket) -> None:
        """Give the slot back, or leave the queue; harmless when repeated."""
        state = self._engines.get(ticket.engine)
        if state is None:
            return
        if ticket.granted:
            ticket.granted = False
            state.active -= 1
            self._admit(state)
            if not state.active:
                state.idle.set()
            self._on_activity(ticket.engine, state.active)
        elif ticket in state.queue:
            state.queue.remove(ticket)
            self._notify(state)

    def ahead(self, ticket: Ticket) -> int:
        """Return the number of requests that wait before this one."""
        state = self._engines.get(ticket.engine)
        return state.queue.index(ticket) if state and ticket in state.queue else 0

    def active(self, engine: str) -> int:
        """Requests that hold a slot of this engine."""
        state = self._engines.get(engine)
        return state.active if state else 0

    def waiting(self, engine: str) -> int:
        """Requests that wait for a slot of this engine."""
        state = self._engines.get(engine)
        return len(state.queue) if state else 0

    def slots(self, engine: str) -> int:
        """Slots of this engine, 0 before its first request."""
        state = self._engines.get(engine)
        return state.slots if state else 0

    def draining(self, engine: str) -> bool:
        """Return True if the engine takes no new requests."""
        state = self._engines.get(engine)
        return bool(state and state.draining)

    async def drain(self, engine: str, timeout: float) -> bool:
        """Refuse new and waiting requests, wait for active ones; True if all ended within `timeout` s."""
        state = self._engines.setdefault(engine, _EngineState(1))
        state.draining = True
        waiting = list(state.queue)
        state.queue.clear()
        for ticket in waiting:
            ticket.fault = faults.draining(ticket.name)
            ticket.changed.set()
        try:
            async with asyncio.timeout(timeout):
                await state.idle.wait()
        except TimeoutError:
            return False
        except asyncio.CancelledError:
            state.draining = False  # The stop was called off; the engine serves on.
            raise
        return True

    def forget(self, engine: str) -> None:
        """Drop an engine that is gone and refuse who waits for it; tickets still held stay harmless."""
        state = self._engines.pop(engine, None)
        for ticket in state.queue if state else ():
            ticket.fault = faults.engine_unreachable(ticket.name)
            ticket.changed.set()

    def _grant(self, state: _EngineState, ticket: Ticket) -> None:
        state.active += 1
        state.idle.clear()
        ticket.granted = True
        ticket.changed.set()
        self._on_activity(ticket.engine, state.active)

    def _admit(self, state: _EngineState) -> None:
        while state.queue and state.active < state.slots:
            self._grant(state, state.queue.popleft())
        self._notify(state)

    def _notify(self, state: _EngineState) -> None:
        for ticket in state.queue:
            ticket.changed.set()
