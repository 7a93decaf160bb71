"""The ring of events: resumed, reset, missed, with heartbeats, and read by many."""

import asyncio
from collections.abc import AsyncIterator

from hypothesis import given, settings
from hypothesis import strategies as st

from engine_host.core.event_log import EventLog
from engine_host.protocol.events import (
    EventBase,
    HeartbeatEvent,
    MissedEvent,
    ModelsChangedEvent,
    ResetEvent,
)
from tests.unit.asynchronous import run, turns


async def taken(reader: AsyncIterator[EventBase], count: int) -> list[EventBase]:
    return [await anext(reader) for _ in range(count)]


async def rest(reader: AsyncIterator[EventBase]) -> list[EventBase]:
    return [event async for event in reader]


def filled(count: int, size: int = 100) -> EventLog:
    events = EventLog(size)
    for _ in range(count):
        events.publish(ModelsChangedEvent())
    return events


def test_numbers_by_one_and_resumes_from_any_number() -> None:
    async def work() -> None:
        events = filled(5)
        assert events.seq == 5
        events.close()
        assert [event.seq for event in await rest(events.read(0))] == [1, 2, 3, 4, 5]
        assert [event.seq for event in await rest(events.read(3, events.run_id))] == [4, 5]
        assert await rest(events.read(5)) == []
        assert await rest(events.read()) == []

    run(work())


def test_wakes_every_reader_for_what_is_new() -> None:
    async def work() -> None:
        events = filled(2)
        waiting = [asyncio.create_task(taken(events.read(), 3)) for _ in range(3)]
        await turns()
        for _ in range(3):
            events.publish(ModelsChangedEvent())
        for task in waiting:
            assert [event.seq for event in await task] == [3, 4, 5]

    run(work())


def test_resets_what_is_too_old_too_new_or_of_another_run() -> None:
    async def work() -> None:
        events = filled(20, size=5)
        events.close()
        for after, of_run in ((3, None), (99, None), (18, "another"), (-1, None), (0, None)):
            first, *others = await rest(events.read(after, of_run))
            assert isinstance(first, ResetEvent)
            assert (first.run_id, first.latest, first.seq) == (events.run_id, 20, 0)
            assert others == [], "what came before is in the snapshot"
        # The oldest that can still be resumed from is the one before the ring.
        assert [event.seq for event in await rest(events.read(15))] == [16, 17, 18, 19, 20]

    run(work())


def test_a_slow_reader_is_told_what_it_missed_and_goes_on() -> None:
    async def work() -> None:
        events = filled(3, size=5)
        reader = events.read(0)
        assert (await anext(reader)).seq == 1
        for _ in range(10):
            events.publish(ModelsChangedEvent())
        events.close()
        missed, *others = await rest(reader)
        assert isinstance(missed, MissedEvent)
        assert (missed.first, missed.last, missed.seq) == (2, 8, 0)
        assert [event.seq for event in others] == [9, 10, 11, 12, 13]

    run(work())


def test_beats_when_nothing_happens() -> None:
    async def work() -> None:
        events = EventLog(heartbeat=0.01)
        events.publish(ModelsChangedEvent())
        reader = events.read()
        beats = await taken(reader, 2)
        assert all(isinstance(beat, HeartbeatEvent) and beat.latest == 1 for beat in beats)
        events.close()
        await rest(reader)

    run(work())


def test_closing_ends_readers_that_wait_and_those_that_come_later() -> None:
    async def work() -> None:
        events = filled(1)
        waiting = asyncio.create_task(rest(events.read(0)))
        await turns()
        events.publish(ModelsChangedEvent())
        events.close()
        assert [event.seq for event in await waiting] == [1, 2], "the last words are still delivered"
        assert [event.seq for event in await rest(events.read(0))] == [1, 2]

    run(work())


@settings(deadline=None)
@given(
    size=st.integers(1, 8),
    steps=st.lists(st.one_of(st.just("publish"), st.just("read")), max_size=60),
    after=st.integers(-3, 12),
)
def test_a_reader_hears_of_every_number_exactly_once(size: int, steps: list[str], after: int) -> None:
    async def work() -> None:
        events = EventLog(size)
        for _ in range(4):
            events.publish(ModelsChangedEvent())
        reader = events.read(after)
        heard: list[EventBase] = []
        for step in steps:
            if step == "publish":
                events.publish(ModelsChangedEvent())
            elif _place(heard, after, events.seq) < events.seq:
                heard.append(await anext(reader))
        events.close()
        heard += await rest(reader)
        place = after
        for event in heard:
            if isinstance(event, ResetEvent):
                assert event is heard[0]
                place = event.latest
            elif isinstance(event, MissedEvent):
                assert event.first == place + 1
                assert event.last >= event.first
                place = event.last
            else:
                assert event.seq == place + 1
                place = event.seq
        assert place == events.seq

    run(work())


def _place(heard: list[EventBase], after: int, latest: int) -> int:
    """Return a reader's position; below zero when a reset is sure to come."""
    for event in reversed(heard):
        if isinstance(event, ResetEvent):
            return event.latest
        return event.last if isinstance(event, MissedEvent) else event.seq
    return after if after <= latest else -1
