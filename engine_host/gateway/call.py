"""A request to an engine, and how its answer becomes the one that the client reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine_host.gateway.openai.infill import InfillAnswer
from engine_host.gateway.passage import Passage


@dataclass(frozen=True)
class Call:
    """A request to the engine, path and body as it expects them, and how to translate the answer.

    `reader` is a path of the engine that reads the same request and computes nothing: a request that fails
    there too is itself at fault. `otherwise` is what to ask when the engine refuses this request with one of
    the statuses `otherwise_at`, and `tentative` says that its answer may turn out to be none, so that another
    is asked for.
    `ready`: the answer, where no engine has to be asked. `gather` makes a whole answer of a stream, where the
    engine was asked for one and the client was not. `schema` has to be one that the engine can keep.
    """

    path: str
    body: bytes
    stream: bool
    infill: InfillAnswer | None = None
    passage: Passage | None = None
    reader: str | None = None
    otherwise: Call | None = None
    otherwise_at: tuple[int, ...] = (400,)
    tentative: bool = False
    ready: bytes | None = None
    gather: Callable[[bytes], bytes] | None = None
    schema: dict[str, Any] | None = None


class AskAgainError(Exception):
    """The engine has to be asked with another request before the client gets anything."""

    def __init__(self, call: Call) -> None:
        super().__init__("another request has to be sent to the engine")
        self.call = call
