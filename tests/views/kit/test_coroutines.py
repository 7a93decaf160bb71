"""Callbacks and coroutines in Qt's event loop."""

import asyncio
import gc
import time
import weakref

import pytest
from PySide6.QtCore import QEventLoop, QObject, QTimer, QTimerEvent
from PySide6.QtWidgets import QApplication

from sndr_gui.kit.loop.coroutines import EventLoop


class Ticks(QObject):
    """Counts how often Qt had its turn."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0
        self._id = self.startTimer(0)

    def timerEvent(self, _event: QTimerEvent) -> None:
        self.seen += 1

    def stop(self) -> None:
        self.killTimer(self._id)


async def test_what_is_asked_for_at_once_runs_in_order_and_in_one_turn_of_qt(loop: EventLoop) -> None:
    ran: list[int] = []
    ticks = Ticks()
    for number in range(100):
        loop.call_soon(ran.append, number)
    loop.call_soon(ran.append, 100).cancel()
    await asyncio.sleep(0)
    ticks.stop()
    assert ran == list(range(100))
    assert ticks.seen <= 1


async def test_what_asks_for_itself_again_lets_qt_have_its_turn(loop: EventLoop) -> None:
    ticks = Ticks()
    for _ in range(50):
        await asyncio.sleep(0)
    ticks.stop()
    assert ticks.seen >= 25


async def test_later_ones_run_by_their_times_and_cancelled_ones_not(loop: EventLoop) -> None:
    ran: list[str] = []
    begun = time.monotonic()
    ended = asyncio.Event()
    loop.call_later(0.06, ended.set)
    loop.call_later(0.02, ran.append, "first")
    loop.call_at(loop.time() + 0.04, ran.append, "between")
    loop.call_later(0.03, ran.append, "cancelled").cancel()
    loop.call_later(-1, ran.append, "at once")
    loop.call_later(10**9, ran.append, "in thirty years").cancel()
    far = loop.call_later(10**9, ran.append, "in thirty years")
    await ended.wait()
    far.cancel()
    assert ran == ["at once", "first", "between"]
    assert time.monotonic() - begun >= 0.05


async def test_a_limit_that_was_kept_is_forgotten_before_its_time(loop: EventLoop) -> None:
    class Kept:
        def __call__(self) -> None:
            raise AssertionError("it was cancelled")

    alive = []
    for _ in range(1000):
        kept = Kept()
        alive.append(weakref.ref(kept))
        loop.call_later(600, kept).cancel()
        del kept
    gc.collect()
    # A cancelled handle drops its callback at once; the handles themselves are looked through now and then.
    assert not [one for one in alive if one() is not None]
    assert len(loop._later) < 200


async def test_one_that_fails_does_not_keep_the_others(
    loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, object]] = []
    ran: list[int] = []
    monkeypatch.setattr(loop, "call_exception_handler", told.append)
    loop.call_soon(lambda: 1 // 0)
    loop.call_soon(ran.append, 1)
    await asyncio.sleep(0)
    assert ran == [1]
    assert isinstance(told[0]["exception"], ZeroDivisionError)


async def test_a_loop_inside_a_callback_runs_those_after_it(loop: EventLoop) -> None:
    ran: list[str] = []
    inner = QEventLoop()

    ended = asyncio.Event()

    def nested() -> None:
        QTimer.singleShot(5000, inner.quit)
        inner.exec()
        ran.append("nested")
        ended.set()

    def second() -> None:
        ran.append("second")
        loop.call_soon(inner.quit)

    loop.call_soon(nested)
    loop.call_soon(second)
    await ended.wait()
    assert ran == ["second", "nested"]


def test_a_closed_loop_runs_nothing(qapp: QApplication) -> None:
    ran: list[int] = []
    loop = EventLoop(qapp)
    loop.call_soon(ran.append, 1)
    loop.call_later(0.001, ran.append, 2)
    loop.close()
    loop.call_soon(ran.append, 3)
    loop.call_later(0.001, ran.append, 4)
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        qapp.processEvents()
    assert not ran
    # Closing it again is no error.
    loop.close()
