"""The clients at work at the control socket, so that the host does not end under a command's hands."""

import asyncio
from collections import Counter

from starlette.types import ASGIApp, Receive, Scope, Send

from engine_host.protocol.base import CALLER

_FOLLOWED = ("/v1/events", "/openai/")
_PAUSE = 2.0
"""Seconds between two requests of one piece of work; a caller that is silent for longer has finished."""


class ActiveClients:
    """An application that knows which commands ask it, and waits for all but the one that ends it.

    Windows send no such header: they see that the host ends and start another. What is followed without an
    end (events, an answer of a model) is not waited for.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open: Counter[str] = Counter()
        self._last: dict[str, float] = {}
        self._quitting = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and note whose it is."""
        caller = dict(scope.get("headers", ())).get(CALLER.encode(), b"").decode("latin-1")
        path = scope.get("path", "")
        if not caller or path.startswith(_FOLLOWED):
            await self._app(scope, receive, send)
            return
        if path == "/v1/host/quit":
            self._quitting = caller
        self._open[caller] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[caller] -= 1
            now = asyncio.get_running_loop().time()
            self._last = {who: at for who, at in self._last.items() if self._open[who] or now - at < _PAUSE}
            self._last[caller] = now
            self._open += Counter()  # Drops the callers that have nothing open.

    def _at_work(self) -> bool:
        now = asyncio.get_running_loop().time()
        return any(
            who != self._quitting and (self._open[who] > 0 or now - self._last.get(who, 0.0) < _PAUSE)
            for who in {*self._open, *self._last}
        )

    async def finish(self, patience: float) -> None:
        """Return when no other command is at work, after `patience` seconds at the latest."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        # A caller that falls silent is no event.
        while self._at_work() and loop.time() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
