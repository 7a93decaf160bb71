"""One hostile exchange: the bytes that go out, how the client ends, and the answer that it is owed."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

HOST = b"127.0.0.1"
CHAT = "/v1/chat/completions"


class End(Enum):
    """How a client ends its connection."""

    READ = "it reads until the end"
    HALF = "it closes its sending side, and reads"
    CLOSE = "it closes at once"
    RESET = "it resets at once"
    MID_ANSWER = "it resets in the middle of the answer"


class Owed(Enum):
    """The answer that the endpoint has to give, at the least."""

    OK = "the first answer is a success"
    REFUSAL = "the first answer is an error"
    ANSWER = "there is an answer"
    ANYTHING = "an answer, or an end of the connection"


@dataclass(frozen=True)
class Case:
    """One connection: parts with a pause between them, and what follows."""

    parts: tuple[bytes, ...]
    owed: Owed = Owed.ANSWER
    end: End = End.READ
    pause: float = 0.0

    def shown(self) -> str:
        """Return the beginning of what is sent, for a report."""
        return repr(b"".join(self.parts)[:400])


Generator = Callable[[random.Random], Case]
Kinds = dict[str, tuple[int, Generator]]
ENDPOINT: Kinds = {}
"""Every kind of hostile exchange with the endpoint: its weight and its generator."""
CONTROL: Kinds = {}
"""The same for the control socket."""


def kind(weight: int, of: Kinds = ENDPOINT) -> Callable[[Generator], Generator]:
    """Name a generator by its function; a kind of twice the weight comes twice as often."""

    def register(generator: Generator) -> Generator:
        of[generator.__name__] = (weight, generator)
        return generator

    return register


def choose(kinds: Kinds, rng: random.Random) -> tuple[str, Case]:
    """Return the name and the case of the next exchange."""
    names = list(kinds)
    name = rng.choices(names, [kinds[one][0] for one in names])[0]
    return name, kinds[name][1](rng)


def head(
    method: str | bytes = "POST",
    path: str | bytes = CHAT,
    *lines: bytes,
    host: bytes | None = HOST,
    version: bytes = b"HTTP/1.1",
) -> bytes:
    """The head of a request, with these header lines as they stand."""
    method = method.encode() if isinstance(method, str) else method
    path = path.encode() if isinstance(path, str) else path
    host_line = () if host is None else (b"Host: " + host,)
    return b"\r\n".join([b" ".join((method, path, version)), *host_line, *lines, b"", b""])


def post(body: bytes, *lines: bytes, path: str | bytes = CHAT, method: str = "POST") -> bytes:
    """A whole request with a body of its length."""
    typed = b"Content-Type: application/json"
    return head(method, path, typed, *lines, b"Content-Length: %d" % len(body)) + body
