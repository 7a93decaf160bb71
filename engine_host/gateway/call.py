"""A request to an engine, and how its answer becomes the one that the client reads."""

from dataclasses import dataclass

from engine_host.gateway.openai.infill import InfillAnswer
from engine_host.gateway.passage import Passage


@dataclass(frozen=True)
class Call:
    """A request to the engine, path and body as it expects them, and how to translate the answer.

    `reader` is a path of the engine that reads the same request and computes nothing: a request that fails
    there too is itself at fault.
    """

    path: str
    body: bytes
    stream: bool
    infill: InfillAnswer | None = None
    passage: Passage | None = None
    reader: str | None = None
