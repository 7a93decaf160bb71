"""How often a running engine is looked at; the engine and its process are FAKE."""

import asyncio
import os
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from engine_host.engines.process import running
from engine_host.engines.process import working as looking
from engine_host.engines.process.running import RunningEngine
from engine_host.engines.process.working import Working
from engine_host.protocol.engines import Readings
from tests.unit.asynchronous import run


class Adapter:
    """Counts the looks; `beside` is called when the last one before a pause has been taken."""

    def __init__(self) -> None:
        self.looks = 0
        self.beside: Callable[[], object] = int

    async def read(self, client: Any) -> Readings:
        self.looks += 1
        if self.looks == running._SETTLED:
            self.beside()
        return Readings(at=float(self.looks))


class Waiting:
    """FAKE: a process that takes no time of the processors, until `works`."""

    works = False

    def begin(self) -> None:
        """Nothing to compare with."""

    def since_last(self) -> bool:
        return self.works


async def settled(adapter: Adapter) -> int:
    """The looks, once there have been no more for a while."""
    looks = -1
    while looks != adapter.looks:
        looks = adapter.looks
        await asyncio.sleep(0.2)
    return looks


def test_a_request_that_ends_before_the_next_look_is_confirmed_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "_READ_BUSY", 0.01)
    process: Any = SimpleNamespace(running=True, memory=lambda: None, working=Waiting)
    engine: Any = SimpleNamespace(plan=None, stages=(), buffers={}, attention=None)

    async def go() -> None:
        adapter: Any = Adapter()
        one = RunningEngine("e1", process, adapter, SimpleNamespace(), engine)  # type: ignore[arg-type]
        polled = asyncio.create_task(one._poll())
        try:
            before = await settled(adapter)
            one.set_busy(True)
            one.set_busy(False)
            assert await settled(adapter) >= before + 2
        finally:
            polled.cancel()
            await asyncio.gather(polled, return_exceptions=True)

    run(go())


def test_a_request_that_begins_and_ends_beside_a_look_is_seen_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "_READ_BUSY", 0.01)
    process: Any = SimpleNamespace(running=True, memory=lambda: None, working=Waiting)
    engine: Any = SimpleNamespace(plan=None, stages=(), buffers={}, attention=None)

    async def go() -> None:
        adapter: Any = Adapter()
        one = RunningEngine("e1", process, adapter, SimpleNamespace(), engine)  # type: ignore[arg-type]

        def asked() -> None:
            one.set_busy(True)
            one.set_busy(False)

        adapter.beside = asked
        polled = asyncio.create_task(one._poll())
        try:
            assert await settled(adapter) > running._SETTLED
        finally:
            polled.cancel()
            await asyncio.gather(polled, return_exceptions=True)

    run(go())


def test_who_asks_the_engine_itself_is_found_within_a_moment_and_one_that_spins_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "_READ_BUSY", 0.01)
    monkeypatch.setattr(running, "_LOOK_IDLE", 0.02)

    class Asked(Waiting):
        @property
        def works(self) -> bool:  # type: ignore[override]
            return works

    works = False
    process: Any = SimpleNamespace(running=True, memory=lambda: None, working=Asked)
    engine: Any = SimpleNamespace(plan=None, stages=(), buffers={}, attention=None)

    async def go() -> None:
        nonlocal works
        adapter: Any = Adapter()
        one = RunningEngine("e1", process, adapter, SimpleNamespace(), engine)  # type: ignore[arg-type]
        polled = asyncio.create_task(one._poll())
        try:
            before = await settled(adapter)
            works = True
            await asyncio.sleep(0.5)
            found = adapter.looks
            assert found >= before + running._SETTLED
            # Each time twice as long as before: 0.02, 0.04 … s.
            assert found <= before + 8 * running._SETTLED
        finally:
            polled.cancel()
            await asyncio.gather(polled, return_exceptions=True)

    run(go())


def test_a_process_that_works_is_told_from_one_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    # A clock of its own: a busy machine gives this process little time.
    now = 0.0
    monkeypatch.setattr(looking, "time", SimpleNamespace(monotonic=lambda: now))
    working = Working(os.getpid())
    working.begin()
    until = time.thread_time() + 0.4
    while time.thread_time() < until:
        pass
    now = 1.0
    assert working.since_last()
    now = 1000.0
    assert not working.since_last()
