"""What can go wrong between the window and the engine host.

HostError
├── HostUnreachable   no host answers at the socket
├── HostGone          the connection ended in the middle
├── HostStartFailed   the host ended before it served; carries the end of its log
├── HostMismatch      the host speaks another major version of the protocol
└── HostRefused       the host answered with a problem
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine_host.protocol.errors import Problem


class HostError(Exception):
    """Any failure between the window and the host; its text is a sentence."""


class HostUnreachable(HostError):  # noqa: N818
    """No host answers at the socket."""


class HostGone(HostError):  # noqa: N818
    """The connection ended in the middle of an answer."""


class HostStartFailed(HostError):  # noqa: N818
    """The host ended before it served."""

    def __init__(self, message: str, tail: tuple[str, ...] = (), log: str = "") -> None:
        super().__init__(message)
        self.tail = tail
        self.log = log


class HostMismatch(HostError):  # noqa: N818
    """The host speaks another major version of the protocol."""


class HostRefused(HostError):  # noqa: N818
    """The host answered with a problem."""

    def __init__(self, problem: Problem, status: int) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.status = status
