"""Background tasks of the window: strong references, one error report, cancelled together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    """Owns every task that a view-model starts, so that none is collected or forgotten."""

    def __init__(self, report: Callable[[BaseException], None]) -> None:
        self._live: set[asyncio.Task[Any]] = set()
        self.report = report
        self._never: asyncio.Future[Any] | None = None

    def apart(self) -> Tasks:
        """Return an owner of other tasks with the same error report: they end by themselves."""
        return Tasks(self.report)

    @property
    def names(self) -> set[str]:
        """The names of what is under way."""
        return {task.get_name() for task in self._live}

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Future[Any]:
        """Run a coroutine in the background; its exception goes to the one error report.

        After `close` nothing begins any more: what is returned is cancelled already.
        """
        if self._never is not None:
            # A timer that was still running, while the window goes; there may be no loop any more.
            work.close()
            return self._never
        task = asyncio.get_event_loop().create_task(work, name=name)
        self._live.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._live.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.report(error)

    async def close(self) -> None:
        """Cancel everything and wait for it to end."""
        self._never = asyncio.get_running_loop().create_future()
        self._never.cancel()
        live = list(self._live)
        for task in live:
            task.cancel()
        await asyncio.gather(*live, return_exceptions=True)
