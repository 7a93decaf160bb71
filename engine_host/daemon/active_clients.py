"""The clients at work at the control socket, so that the host does not end under a command's hands."""

import asyncio
from collections import Counter
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from engine_host.daemon.http_protocol import IS_OPEN
from engine_host.protocol.base import CALLER

_FOLLOWED = ("/v1/events", "/openai/")
_PAUSE = 4.0
"""Seconds between two requests of one piece of work; a caller that is silent for longer has finished.

One whose connection is closed has finished too: a host that ends lets no new one in. On a machine at work
with much else a command took more than two seconds from the host's version to its question.
"""


class ActiveClients:
    """An application that knows which commands ask it, and waits for all but the one that ends it.

    Windows send no such header: they see that the host ends and start another. What is followed without an
    end (events, an answer of a model) is not waited for.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open: Counter[str] = Counter()
        self._last: dict[str, tuple[float, Callable[[], bool]]] = {}
        self._quitting = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and note whose it is."""
        caller = dict(scope.get("headers", ())).get(CALLER.encode(), b"").decode("latin-1")
        path = scope.get("path", "")
        if not caller or path.startswith(_FOLLOWED):
            await self._app(scope, receive, send)
            return
        is_open = (scope.get("extensions") or {}).get(IS_OPEN, lambda: True)
        if path == "/v1/host/quit":
            self._quitting = caller
        self._open[caller] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[caller] -= 1
            self._last[caller] = (asyncio.get_running_loop().time(), is_open)
            self._last = {who: last for who, last in self._last.items() if self._works(who)}
            self._open += Counter()  # Drops the callers that have nothing open.

    def _works(self, caller: str) -> bool:
        if self._open[caller] > 0:
            return True
        at, is_open = self._last[caller]
        return is_open() and asyncio.get_running_loop().time() - at < _PAUSE

    async def finish(self, patience: float) -> None:
        """Return when no other command is at work, after `patience` seconds at the latest."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        # A caller that falls silent is no event.
        while loop.time() < end and any(  # noqa: ASYNC110
            self._works(who) for who in {*self._open, *self._last} if who != self._quitting
        ):
            await asyncio.sleep(0.02)
