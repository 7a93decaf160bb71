"""The event loop of coroutines in Qt's, which wakes Python once for all callbacks that are due.

qasync has a Qt timer for each callback, also for one that runs at once, and keeps the timer of one that was
cancelled until its time: each limit of a request lived for its ten seconds. Here a Qt timer stands for all
callbacks of now, another for the earliest of later.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any

import qasync
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

# So many cancelled callbacks are kept before they are looked for among those of later.
_CANCELLED_KEPT = 50
# Seconds: Qt counts milliseconds in 31 bits.
_LONGEST = 86_400.0


class EventLoop(qasync.QEventLoop):  # type: ignore[misc] # has no types
    """Runs callbacks in the order in which they were asked for, those of later by their times."""

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self._soon: deque[asyncio.Handle] = deque()
        self._later: list[asyncio.TimerHandle] = []
        self._cancelled = 0
        self._armed = 0.0
        self._now, self._alarm = (QTimer(singleShot=True) for _ in range(2))
        self._now.timeout.connect(self._run_soon)
        self._alarm.timeout.connect(self._run_later)

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Run a callback once Qt has done what it is at."""
        handle = asyncio.Handle(callback, args, self, context)
        if not self.is_closed():
            if not self._soon:
                self._now.start()
            self._soon.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Run a callback after some seconds."""
        if delay <= 0:
            return self.call_soon(callback, *args, context=context)
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback at a time of the loop's clock."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if not self.is_closed():
            heapq.heappush(self._later, handle)
            if self._later[0] is handle:
                self._set_alarm()
        return handle

    def close(self) -> None:
        """Forget what is still to be run, as a loop that is closed runs nothing."""
        super().close()
        self._now.stop()
        self._alarm.stop()
        self._soon.clear()
        self._later.clear()

    def _timer_handle_cancelled(self, _handle: asyncio.TimerHandle) -> None:
        """Count what is cancelled of later, and forget it where it is the most of it."""
        self._cancelled += 1
        if self._cancelled > _CANCELLED_KEPT and 2 * self._cancelled > len(self._later):
            self._later = [handle for handle in self._later if not handle.cancelled()]
            heapq.heapify(self._later)
            self._cancelled = 0

    def _run_soon(self) -> None:
        """Run what was asked for until now; what it asks for in turn is run after Qt had its turn."""
        due = len(self._soon)
        if due > 1:
            # For a loop inside one of them, which then runs the others, and for an error that ends this one.
            self._now.start()
        for _ in range(due):
            if not self._soon:
                return
            handle = self._soon.popleft()
            if not handle.cancelled():
                handle._run()
        if not self._soon:
            self._now.stop()

    def _run_later(self) -> None:
        """Hand over what is due; Qt's timer may come a little early for what it was set to."""
        until = max(self.time(), self._armed)
        while self._later and self._later[0].when() <= until:
            handle = heapq.heappop(self._later)
            if handle.cancelled():
                continue
            if not self._soon:
                self._now.start()
            self._soon.append(handle)
        self._set_alarm()

    def _set_alarm(self) -> None:
        """Wake at the time of the earliest."""
        if self._later:
            now = self.time()
            self._armed = min(self._later[0].when(), now + _LONGEST)
            self._alarm.start(max(0, int((self._armed - now) * 1000)))
