"""Connections to other machines that wait for a next request: a new one costs round trips, with TLS more."""

import asyncio
import contextlib
import select
import socket
from collections import deque

IDLE_SECONDS = 20.0
"""Servers keep an idle connection for 5 seconds (uvicorn) to some minutes; one that they end goes at once."""
_MOST_EACH = 8
_MOST = 64

_KEEPALIVE = {
    "TCP_KEEPIDLE": 30,
    "TCP_KEEPALIVE": 30,
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 60_000,
}
"""A connection that a router or a VPN has forgotten is noticed within a minute; each platform has some.

Probes are sent on an idle connection alone: where a request waits to be acknowledged, as on a kept connection
to a machine that is gone, the system would try for a quarter of an hour without the last, in milliseconds.
"""


def have_probed(found: socket.socket) -> None:
    """Have the system find out by itself whether the other end of a connection is still there."""
    if found.family not in (socket.AF_INET, socket.AF_INET6):
        return
    # One that is gone already is found out by who reads.
    with contextlib.suppress(OSError):
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if (option := getattr(socket, name, None)) is not None:
                found.setsockopt(socket.IPPROTO_TCP, option, value)


class KeptConnections:
    """Idle connections by where they lead, those used last taken first; each request has its own."""

    def __init__(self) -> None:
        """Nothing is kept yet."""
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._count = 0
        self._closed = False

    def __len__(self) -> int:
        """Return how many are kept."""
        return self._count

    def take(self, where: str, protocol: asyncio.Protocol) -> asyncio.Transport | None:
        """Return a connection that leads there with `protocol` set on it; None if there is none."""
        waiting = self._waiting.get(where)
        while waiting:
            transport = waiting[-1].leave()
            if transport.is_closing():
                continue
            if _has_unread(transport):
                transport.abort()
                continue
            transport.set_protocol(protocol)
            return transport
        return None

    def keep(self, where: str, transport: asyncio.Transport) -> None:
        """Keep a connection whose answer is whole, or end it where enough are kept."""
        waiting = self._waiting.setdefault(where, deque())
        full = self._closed or self._count >= _MOST or len(waiting) >= _MOST_EACH
        if full or transport.is_closing():
            transport.abort()
        else:
            waiting.append(_Waiting(self, where, transport))
            self._count += 1
        if not waiting:
            del self._waiting[where]

    def close(self) -> None:
        """End all that wait; nothing is kept any more."""
        self._closed = True
        for waiting in list(self._waiting.values()):
            for one in list(waiting):
                one.leave().abort()

    def remove(self, one: "_Waiting") -> None:
        """Forget one that is taken or gone."""
        waiting = self._waiting.get(one.where)
        if waiting is not None and one in waiting:
            waiting.remove(one)
            self._count -= 1
            if not waiting:
                del self._waiting[one.where]


def _has_unread(transport: asyncio.Transport) -> bool:
    """Return True where something came that the loop has not read yet: an end, or an answer to nobody.

    A next request would take it for its own.
    """
    looked = select.poll()
    looked.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(looked.poll(0))


class _Waiting(asyncio.Protocol):
    """One idle connection; whatever comes on it unasked ends it."""

    def __init__(self, kept: KeptConnections, where: str, transport: asyncio.Transport) -> None:
        self.where = where
        self._kept = kept
        self._transport = transport
        transport.set_protocol(self)
        self._timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end)

    def leave(self) -> asyncio.Transport:
        """Stop waiting and return the connection."""
        self._timer.cancel()
        self._kept.remove(self)
        return self._transport

    def _end(self) -> None:
        self.leave().abort()

    def data_received(self, data: bytes) -> None:
        """End a connection on which somebody speaks unasked."""
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what the other side ended."""
        self.leave()
