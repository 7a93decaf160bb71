"""The requests of the endpoint, live and recent: numbers and states, never any text."""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from engine_host.core.errors import HostError
from engine_host.core.rates import decode_rate
from engine_host.gateway.directory import Target
from engine_host.gateway.inspection.capture import Capture
from engine_host.gateway.meter import Figures, Meter
from engine_host.protocol.engines import Request, RequestState
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.events import EngineRequestEvent, EventBase
from engine_host.protocol.language import tr

_ENDED = {RequestState.DONE, RequestState.FAILED, RequestState.CANCELLED}
_LONGEST_CLIENT = 200
_NEAR = 8
_PLACE_INTERVAL, _FAR_INTERVAL = 1.0, 10.0
"""Seconds between two events about a place in the queue: near its head, and far from it."""

_PROGRESS_INTERVAL = 0.5
_LIVE_INTERVAL = 1.0
_MOST_LIVE = 32
"""Seconds between two events about what is written of an answer, and how many are told of each time."""

_TOGETHER = 0.05
"""Seconds in which the changes of a request are one event: a short one goes through three states in less."""

Publish = Callable[[EventBase], None]


@dataclass(eq=False)
class Entry:
    """One request while it lives; `moved` hears of every change of its state."""

    id: str
    target: Target
    route: str
    client: str
    stream: bool
    moved: Callable[["Entry"], None]
    key: str | None = None
    client_name: str = ""
    created_at: float = field(default_factory=time.time)
    started: float = field(default_factory=time.monotonic)
    state: RequestState = RequestState.WAITING
    waited: float | None = None
    ttft: float | None = None
    ended_at: float | None = None
    figures: Figures = field(default_factory=Figures)
    meter: Meter | None = None
    """What watches its stream, which holds the newest pieces of it; None once it has ended."""
    problem: Problem | None = None
    stop: Callable[[], None] | None = None
    place: int | None = None
    prefill: tuple[int, int] | None = None
    conversation: str | None = None
    on_end: Callable[["Entry"], None] | None = None
    capture: Capture | None = None
    moved_at: float = 0.0
    _told_at: float = -math.inf
    _told_place: int | None = None
    _told_pieces: int = 0
    _ended_pieces: int = 0
    _decoded: float | None = None

    @property
    def ended(self) -> bool:
        """True if the request is over."""
        return self.state in _ENDED

    def placed(self, place: int) -> None:
        """It has no slot yet, and this place in the queue, from 1; not every move of many is told."""
        self.place = place
        if place == self._told_place:
            return
        now = time.monotonic()
        if now - self._told_at >= (_PLACE_INTERVAL if place <= _NEAR else _FAR_INTERVAL):
            self._told_at, self._told_place = now, place
            self._move(RequestState.WAITING)

    def load(self) -> None:
        """It waits for its model."""
        self._move(RequestState.LOADING)

    def loaded(self, target: Target) -> None:
        """This is who is asked: its model answers now, or another provider is next."""
        self.target = target
        self.stop = None
        self._move(RequestState.WAITING)

    def admitted(self) -> None:
        """It has a slot; the engine reads its prompt."""
        self.waited = time.monotonic() - self.started
        self.place = None
        self._move(RequestState.PREFILL)

    def reading(self, done: int, total: int) -> None:
        """So many tokens of the prompt are read, of so many."""
        self.prefill = (done, total)
        now = time.monotonic()
        if self.state is RequestState.PREFILL and now - self._told_at >= _PROGRESS_INTERVAL:
            self._told_at = now
            self._move(RequestState.PREFILL)

    def first_content(self) -> None:
        """The first byte of content came."""
        self.ttft = time.monotonic() - self.started
        self._move(RequestState.DECODE)

    def written(self) -> None:
        """More of the answer may have come since the last word about it."""
        pieces = self._pieces
        if self.state is RequestState.DECODE and pieces != self._told_pieces:
            self._told_pieces = pieces
            self._move(RequestState.DECODE)

    def done(self, figures: Figures) -> None:
        """The answer is complete."""
        self._end(RequestState.DONE, figures, None)

    def failed(self, problem: Problem, figures: Figures | None = None) -> None:
        """The answer is an error, or broke off."""
        self._end(RequestState.FAILED, figures, problem)

    def cancelled(self, figures: Figures | None = None) -> None:
        """The client went away, or somebody cancelled it."""
        self._end(RequestState.CANCELLED, figures, None)

    def snapshot(self) -> Request:
        """The request as the control protocol shows it."""
        figures = self.figures
        if self.meter is not None and self.state is RequestState.DECODE:
            figures = self._timed(self.meter.so_far())
        pieces = self._pieces if figures.generated_tokens is None and self._pieces else None
        return Request(
            id=self.id,
            engine=self.target.engine,
            model=self.target.name,
            provider=self.target.provider,
            route=self.route,
            client=self.client,
            client_name=self.client_name,
            conversation=self.conversation,
            key=self.key,
            captured=self.capture is not None and not self.capture.dropped,
            stream=self.stream,
            state=self.state,
            place=self.place,
            prefill_tokens=self.prefill[0] if self.prefill is not None else None,
            prefill_of=self.prefill[1] if self.prefill is not None else None,
            created_at=self.created_at,
            waited=self.waited,
            ttft=self.ttft,
            ended_at=self.ended_at,
            prompt_tokens=figures.prompt_tokens,
            cached_tokens=figures.cached_tokens,
            generated_tokens=figures.generated_tokens,
            pieces=pieces,
            piece_rate=decode_rate(pieces, self._seconds),
            prefill_seconds=figures.prefill_seconds,
            decode_rate=figures.decode_rate,
            draft_tokens=figures.draft_tokens,
            draft_accepted=figures.draft_accepted,
            finish=figures.finish,
            problem=self.problem,
        )

    def _end(self, state: RequestState, figures: Figures | None, problem: Problem | None) -> None:
        if self.ended:
            return
        if self.waited is None:
            self.waited = time.monotonic() - self.started
        self.ended_at = time.time()
        self._decoded, self._ended_pieces = self._seconds, self._pieces
        if figures is None and self.meter is not None:
            # Somebody ended it, and what came until then was measured.
            figures = self.meter.figures()
        self.meter = None
        self.figures = self._timed(figures) if figures else self.figures
        self.problem = problem
        self.stop = None
        self.place = None
        self._move(state)
        if self.on_end is not None:
            self.on_end(self)

    def _timed(self, figures: Figures) -> Figures:
        """The figures, with the rate at which a stream passed here where the engine does not tell it."""
        if figures.decode_rate is not None or self.ttft is None:
            return figures
        return replace(figures, decode_rate=decode_rate(figures.generated_tokens, self._seconds))

    @property
    def _seconds(self) -> float:
        """Seconds since the first content, or until the end; 0 before."""
        if self._decoded is not None or self.ttft is None:
            return self._decoded or 0.0
        return time.monotonic() - self.started - self.ttft

    @property
    def _pieces(self) -> int:
        return self._ended_pieces if self.meter is None else self.meter.pieces

    def _move(self, state: RequestState) -> None:
        self.state = state
        self.moved_at = time.monotonic()
        self.moved(self)


class RequestLog:
    """Live and recent requests, at most `limit` ended ones kept."""

    def __init__(
        self,
        publish: Publish,
        active: Callable[[str], int],
        waiting: Callable[[str], int],
        limit: int = 500,
    ) -> None:
        self.together = False
        """Whether the newest state of each request is told 20 times a second, and not each state at once."""
        self._publish = publish
        self._untold: dict[str, Entry] = {}
        self._telling: asyncio.TimerHandle | None = None
        self._active = active
        self._waiting = waiting
        self._limit = limit
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def open(
        self,
        request_id: str,
        target: Target,
        *,
        route: str,
        client: str,
        stream: bool,
        key: str | None = None,
        client_name: str = "",
        loading: bool = False,
    ) -> Entry:
        """Write down a new request; the oldest ended one goes when there are too many.

        `loading`: its model has to be loaded first, which is told at once.
        """
        client = client[:_LONGEST_CLIENT]
        entry = Entry(request_id, target, route, client, stream, self._changed, key, client_name)
        if loading:
            entry.load()
        self._entries[request_id] = entry
        if len(self._entries) > self._limit:
            self._shrink()
        return entry

    def tell(self) -> None:
        """Publish what changed and was not told yet."""
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        untold, self._untold = self._untold, {}
        for entry in untold.values():
            self._publish(EngineRequestEvent(at=time.time(), request=entry.snapshot()))

    def _changed(self, entry: Entry) -> None:
        self._untold[entry.id] = entry
        if not self.together:
            self.tell()
        elif self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(_TOGETHER, self.tell)
        if entry.state is RequestState.DECODE and self._timer is None:
            # One timer for all streams, none for a piece.
            self._timer = asyncio.get_running_loop().call_later(_LIVE_INTERVAL, self._tell)

    def _tell(self) -> None:
        """Tell what is written of the answers now, of many those that it was longest ago told of."""
        self._timer = None
        written = [entry for entry in self._entries.values() if entry.state is RequestState.DECODE]
        for entry in sorted(written, key=lambda entry: entry.moved_at)[:_MOST_LIVE]:
            entry.written()
        if written and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LIVE_INTERVAL, self._tell)

    def requests(self, engine: str | None = None) -> tuple[Request, ...]:
        """The requests of one engine or of all, newest first."""
        return tuple(
            entry.snapshot()
            for entry in reversed(self._entries.values())
            if engine is None or entry.target.engine == engine
        )

    def request(self, request_id: str) -> Request:
        """Return one request. Raises HostError(not_found)."""
        return self._entry(request_id).snapshot()

    def live(self) -> tuple[Entry, ...]:
        """The requests that have not ended, oldest first."""
        return tuple(entry for entry in self._entries.values() if not entry.ended)

    def cancel(self, request_id: str) -> Request:
        """Cancel a request and return it; one that has ended stays as it is; raises HostError not_found."""
        entry = self._entry(request_id)
        if entry.stop is not None:
            entry.stop()
        if not entry.ended:
            entry.cancelled()
        return entry.snapshot()

    def _entry(self, request_id: str) -> Entry:
        entry = self._entries.get(request_id)
        if entry is None:
            raise HostError(
                Reason.NOT_FOUND,
                tr("There is no request {request_id}.", request_id=request_id),
                cause="The newest 500 requests of this run of the host are known.",
                fix=Fix(text="See which there are.", command="sndr requests list"),
            )
        return entry

    def active(self, engine: str) -> int:
        """Requests that the engine works on."""
        return self._active(engine)

    def waiting(self, engine: str) -> int:
        """Requests that wait for a slot of the engine."""
        return self._waiting(engine)

    def _shrink(self) -> None:
        for name, entry in self._entries.items():
            if entry.ended:
                del self._entries[name]
                return
