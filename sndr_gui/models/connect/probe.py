"""A probe in a thread and a loop of its own: httpx's connections and Qt's loop do not go together well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.connect.facts import Facts
from engine_host.protocol.endpoint.connect import ProbeStep
from engine_host.protocol.endpoint.requests import RequestQuery
from engine_host.protocol.engines import Engine, Request
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops

if TYPE_CHECKING:
    from engine_host.connect.clients.definition import Client

T = TypeVar("T")


class Probe:
    """One probe; what it asks of the host it asks in the window's loop, and its steps come there."""

    def __init__(self, control: AsyncControlClient, tell: Callable[[ProbeStep], None]) -> None:
        self._control, self._tell = control, tell
        self._window = asyncio.get_running_loop()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False

    async def run(self, client: Client, facts: Facts, key: str) -> None:
        """Do all of it; cancelling this cancels it there."""
        try:
            await asyncio.to_thread(self._in_thread, client, facts, key)
        except asyncio.CancelledError:
            self._cancelled = True
            if self._loop is not None and self._task is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._task.cancel)
            raise

    async def engines(self) -> tuple[Engine, ...]:
        """Return all engines, for the probe."""
        return (await self._in_window(self._control.call(ops.ENGINES))).engines

    async def requests(self) -> tuple[Request, ...]:
        """Return the requests of all, for the probe."""
        return (await self._in_window(self._control.call(endpoint_ops.REQUESTS, RequestQuery()))).requests

    async def _in_window(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._window))

    def _in_thread(self, client: Client, facts: Facts, key: str) -> None:
        try:
            asyncio.run(self._whole(client, facts, key))
        except asyncio.CancelledError:
            # The window is going; nobody waits for it.
            return

    async def _whole(self, client: Client, facts: Facts, key: str) -> None:
        from engine_host.connect.probe.run import probe

        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if not self._cancelled:
            await probe(client, facts, key, self, self._told)

    def _told(self, step: ProbeStep) -> None:
        self._window.call_soon_threadsafe(self._tell, step)
