"""Answers to what only reads: of the host where one runs, else made in this process, which starts none."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, overload

from engine_host.cli.start.host import connected_or_none, find_or_start, say_wrong_settings
from engine_host.cli.text.chosen_host import chosen_host
from engine_host.cli.text.waiting import told_when_long
from engine_host.client.exchange import NOTHING, answer_of, request_of
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.base import Command, Query
from engine_host.protocol.operations.definition import Answer, Asked, Nothing, Operation

if TYPE_CHECKING:
    from engine_host.daemon.reading.hostless import Hostless


class Answers(Protocol):
    """Whoever performs an operation."""

    @overload
    def call(self, operation: Operation[Nothing, Answer], /, **path: str) -> Answer: ...

    @overload
    def call(self, operation: Operation[Asked, Answer], asked: Asked, /, **path: str) -> Answer: ...


class _Here:
    """This process; an answer is read from its JSON as a host's is."""

    def __init__(self, hostless: "Hostless") -> None:
        self._hostless = hostless

    @overload
    def call(self, operation: Operation[Nothing, Answer], /, **path: str) -> Answer: ...

    @overload
    def call(self, operation: Operation[Asked, Answer], asked: Asked, /, **path: str) -> Answer: ...

    def call(
        self, operation: Operation[Any, Answer], asked: Command | Query = NOTHING, /, **path: str
    ) -> Answer:
        """Carry an operation out. Raises HostError."""
        request_of(operation, asked, path)
        with told_when_long(f"At work: {operation.text}"):
            return answer_of(operation, self._hostless.perform(operation, asked, path))


@contextmanager
def reading(*, memory: bool = False) -> Iterator[Answers]:
    """Whoever answers what only reads; `memory`: what engines hold of it is part of the answer.

    A host that runs is asked, also one that starts or ends just now. Raises what `find_or_start` does.
    """
    folders = Folders.resolve()
    if _none_runs():
        from engine_host.daemon.reading.hostless import (
            Hostless,  # With what it reads, and only where nobody else does.
        )

        with Hostless(folders) as hostless:
            if not (memory and hostless.left_engines):
                say_wrong_settings(folders)
                yield _Here(hostless)
                return
    with find_or_start() as hold:
        yield hold.client


def _none_runs() -> bool:
    if chosen_host():
        # Of another machine only its host tells; it is looked for once, which takes long where it is frozen.
        return False
    try:
        client = connected_or_none()
    except HostError:
        # Whoever starts or finds one says what is wrong, or waits for its turn.
        return False
    if client is not None:
        client.close()
    return client is None
