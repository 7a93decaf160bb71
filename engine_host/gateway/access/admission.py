"""Admit requests to an engine's slots; the others wait, in the order of their arrival for each key.

The key that holds the fewest slots goes next, so that one that sends a hundred requests does not keep the
others out.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from engine_host.gateway import error_answers as faults
from engine_host.gateway.directory import ActivityHook, Target


@dataclass(eq=False)
class Ticket:
    """One request's place; `granted` while it holds a slot, which is `lent` while only its client is slow."""

    engine: str
    name: str
    owner: str = ""
    granted: bool = False
    lent: bool = False
    fault: faults.EndpointError | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def settled(self) -> bool:
        """True if the wait is over, with a slot or with a refusal."""
        return self.granted or self.fault is not None


@dataclass
class _EngineState:
    """One engine's slots and its queue; of the `active` requests so many have `lent` their slots."""

    slots: int
    active: int = 0
    lent: int = 0
    draining: bool = False
    queues: dict[str, deque[Ticket]] = field(default_factory=dict)
    held: Counter[str] = field(default_factory=Counter)
    served: dict[str, int] = field(default_factory=dict)
    turns: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.idle.set()

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return sum(map(len, self.queues.values()))

    @property
    def has_free_slot(self) -> bool:
        """True if one more may go to the engine."""
        return self.active - self.lent < self.slots

    def takes(self, owner: str, limit: int) -> bool:
        """Return True if one more may wait: a full queue still has a share for a key that has less."""
        if self.waiting < limit:
            return True
        keys = len(self.queues.keys() | {owner})
        return len(self.queues.get(owner, ())) < limit // keys if keys > 1 else False

    def put(self, ticket: Ticket) -> None:
        """Let a request wait."""
        self.queues.setdefault(ticket.owner, deque()).append(ticket)

    def take_next(self) -> Ticket:
        """Take the next request out of the queue: of the key with the fewest slots, of these the one that had
        its turn longest ago."""
        owner = min(self.queues, key=self._turn)
        queue = self.queues[owner]
        ticket = queue.popleft()
        if not queue:
            del self.queues[owner]
        return ticket

    def hold(self, ticket: Ticket) -> None:
        """Count a slot for its key."""
        self.active += 1
        self.turns += 1
        self.held[ticket.owner] += 1
        self.served[ticket.owner] = self.turns

    def give_back(self, ticket: Ticket) -> None:
        """Count one slot less."""
        self.active -= 1
        self.lent -= ticket.lent
        self.held[ticket.owner] -= 1

    def leave(self, ticket: Ticket) -> bool:
        """Take one out that does not wait any longer; False if it did not wait."""
        queue = self.queues.get(ticket.owner)
        if queue is None or ticket not in queue:
            return False
        queue.remove(ticket)
        if not queue:
            del self.queues[ticket.owner]
        return True

    def ahead(self, ticket: Ticket) -> int:
        """Return how many go before a request, as far as the keys take turns."""
        own = self.queues.get(ticket.owner)
        if own is None or ticket not in own:
            return 0
        place = own.index(ticket)
        order = sorted(self.queues, key=self._turn)
        mine = order.index(ticket.owner)
        turns = {owner: place + (order.index(owner) < mine) for owner in order if owner != ticket.owner}
        return place + sum(min(len(self.queues[owner]), most) for owner, most in turns.items())

    def _turn(self, owner: str) -> tuple[int, int]:
        return self.held[owner], self.served.get(owner, 0)

    def clear(self) -> list[Ticket]:
        """Empty the queue and return who waited."""
        waiting = [ticket for queue in self.queues.values() for ticket in queue]
        self.queues.clear()
        return waiting


class Admission:
    """Admission to each engine's slots, fair between keys; everything runs on one event loop."""

    def __init__(self, queue_limit: int, on_activity: ActivityHook | None = None) -> None:
        self.queue_limit = queue_limit
        self._on_activity: Callable[[str, int], None] = on_activity or (lambda engine, active: None)
        self._engines: dict[str, _EngineState] = {}

    def enter(self, target: Target, owner: str = "") -> Ticket:
        """A slot at once, or the end of the key's queue; raises EndpointError draining and queue_full."""
        state = self._engines.setdefault(target.engine, _EngineState(target.slots))
        state.slots = target.slots
        if state.draining:
            raise faults.draining(target.name)
        ticket = Ticket(target.engine, target.name, owner)
        if state.has_free_slot and not state.queues:
            self._grant(state, ticket)
        elif not state.takes(owner, self.queue_limit):
            raise faults.queue_full(target.name, self.queue_limit)
        else:
            state.put(ticket)
        return ticket

    def enter_loading(self, name: str, owner: str = "") -> Ticket:
        """A place among those that wait for a model's load; raises EndpointError queue_full."""
        engine = loading_queue(name)
        state = self._engines.setdefault(engine, _EngineState(0))
        if not state.takes(owner, self.queue_limit):
            raise faults.queue_full(name, self.queue_limit)
        ticket = Ticket(engine, name, owner)
        state.put(ticket)
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
            state.give_back(ticket)
            self._admit(state)
            if not state.active:
                state.idle.set()
            self._on_activity(ticket.engine, state.active)
        elif state.leave(ticket):
            self._notify(state)

    def lend(self, ticket: Ticket) -> None:
        """Let another one have its slot, though a drain still waits for it; harmless when repeated."""
        state = self._engines.get(ticket.engine)
        if state is not None and ticket.granted and not ticket.lent:
            ticket.lent = True
            state.lent += 1
            self._admit(state)

    def ahead(self, ticket: Ticket) -> int:
        """Return the number of requests that wait before this one."""
        state = self._engines.get(ticket.engine)
        return state.ahead(ticket) if state else 0

    def active(self, engine: str) -> int:
        """Requests that hold a slot of this engine."""
        state = self._engines.get(engine)
        return state.active if state else 0

    def waiting(self, engine: str) -> int:
        """Requests that wait for a slot of this engine."""
        state = self._engines.get(engine)
        return state.waiting if state else 0

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
        for ticket in state.clear():
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
        for ticket in state.clear() if state else ():
            ticket.fault = faults.engine_unreachable(ticket.name)
            ticket.changed.set()

    def _grant(self, state: _EngineState, ticket: Ticket) -> None:
        state.hold(ticket)
        state.idle.clear()
        ticket.granted = True
        ticket.changed.set()
        self._on_activity(ticket.engine, state.active)

    def _admit(self, state: _EngineState) -> None:
        while state.queues and state.has_free_slot:
            self._grant(state, state.take_next())
        self._notify(state)

    def _notify(self, state: _EngineState) -> None:
        for queue in state.queues.values():
            for ticket in queue:
                ticket.changed.set()


def loading_queue(name: str) -> str:
    """Return what the queue of a model that is being loaded has in place of an engine's id."""
    return f"loading {name}"
