"""The parts of a row in the table of routes, and what its functions are given."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Receive

from engine_host.core.keys.ring import Key
from engine_host.gateway.call import Call
from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import Form, form_of
from engine_host.gateway.streaming.direct import WritePiece


@dataclass(frozen=True)
class Looked:
    """A request that only looks: its path, query and headers, and the engines at that moment.

    `starting` are the public model ids of engines that are on their way up. Of a field that a query or the
    headers name twice, the last one counts. `body` is empty but for a question that is posted. `loadable`
    are models that a request would load.
    """

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    targets: Sequence[Target]
    starting: Sequence[str]
    body: Mapping[str, Any] = field(default_factory=dict)
    loadable: Sequence[Target] = ()

    @property
    def known(self) -> Sequence[Target]:
        """The models that can be asked for: those that answer, and those that are loaded for it."""
        names = {target.name for target in self.targets}
        return (*self.targets, *(target for target in self.loadable if target.name not in names))


@dataclass(frozen=True)
class Asked:
    """A request that an engine is to answer, read and checked: `raw` as the client wrote it, and `body`."""

    path: str
    raw: bytes
    body: dict[str, Any]
    target: Target
    request_id: str

    @property
    def stream(self) -> bool:
        """True if the client wants its answer as it is written."""
        return bool(self.body.get("stream"))


Look = Callable[[Looked], dict[str, Any]]
"""A route of GET: returns its answer; raises EndpointError."""


@dataclass(frozen=True)
class Post:
    """A route of POST: `check` refuses a body that no engine could read, `call` makes the engine's request.

    Both raise EndpointError. `events` says that a client may have its answer as a stream of events.
    """

    check: Callable[[dict[str, Any]], None]
    call: Callable[[Asked], Call]
    events: bool = False


@dataclass(frozen=True)
class Ask:
    """A question of POST that an engine answers by itself, without a slot: `answer` asks it.

    Both raise EndpointError.
    """

    check: Callable[[dict[str, Any]], None]
    answer: Callable[[Target, Mapping[str, Any]], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class ReadRequest:
    """One request that an engine is to answer, read and checked, before it is known which."""

    route: Post | Ask
    path: str
    headers: Mapping[str, str]
    receive: Receive
    request_id: str
    key: Key | None
    raw: bytes
    body: dict[str, Any]
    write_piece: WritePiece | None = None

    @property
    def wants_events(self) -> bool:
        """True if its answer is a stream of events; other paths pass `stream` over."""
        return isinstance(self.route, Post) and self.route.events and bool(self.body.get("stream"))

    @property
    def form(self) -> Form:
        """The form of its errors."""
        return form_of(self.path)
