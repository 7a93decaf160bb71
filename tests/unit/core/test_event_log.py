"""The ring of events: resumed, reset, missed, with heartbeats, and read by many."""

import asyncio
from collections.abc import AsyncIterator

from hypothesis import given, settings
from hypothesis import strategies as st

from engine_host.core.event_log import EventLog, Told
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import (
    EVENT,
    Event,
    HeartbeatEvent,
    MissedEvent,
    ModelsChangedEvent,
    NoticeEvent,
    ResetEvent,
)
from tests.unit.asynchronous import run, turns


async def one(reader: AsyncIterator[Told]) -> Event:
    told = await anext(reader)
    event = EVENT.validate_json(told.data)
    assert event.seq == told.seq
    return event


async def taken(reader: AsyncIterator[Told], count: int) -> list[Event]:
    return [await one(reader) for _ in range(count)]


async def rest(reader: AsyncIterator[Told]) -> list[Event]:
    return [EVENT.validate_json(told.data) async for told in reader]


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
        assert (await one(reader)).seq == 1
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
        heard: list[Event] = []
        for step in steps:
            if step == "publish":
                events.publish(ModelsChangedEvent())
            elif _place(heard, after, events.seq) < events.seq:
                heard.append(await one(reader))
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


def notice(text: str, **evidence: object) -> NoticeEvent:
    problem = Problem(reason=Reason.INTERNAL, message="m", evidence=evidence)
    return NoticeEvent(key="k", severity=Severity.INFO, text=text, problem=problem)


def test_memory_is_bounded_in_bytes_whatever_the_events_hold() -> None:
    async def work() -> None:
        events = EventLog(limit=1 << 20)
        for _ in range(50):
            events.publish(notice("x" * 100_000))
        assert events.held <= 1 << 20
        events.close()
        assert isinstance((await rest(events.read(0)))[0], ResetEvent)
        first, *kept = await rest(events.read(events.seq - 5))
        assert [first.seq, *(event.seq for event in kept)] == [46, 47, 48, 49, 50]

    run(work())


def test_what_is_larger_than_all_is_not_kept_and_readers_are_told() -> None:
    async def work() -> None:
        events = EventLog(limit=10_000)
        reader = events.read()
        waiting = asyncio.create_task(taken(reader, 2))
        await turns()
        events.publish(notice("x" * 20_000))
        events.publish(ModelsChangedEvent())
        missed, event = await waiting
        assert isinstance(missed, MissedEvent)
        assert (missed.first, missed.last, event.seq) == (1, 1, 2)
        events.close()
        await rest(reader)

    run(work())


def test_huge_texts_are_cut_with_a_mark_that_says_so() -> None:
    async def work() -> None:
        events = EventLog()
        for huge in (300_000, 5_000_000):
            events.publish(notice("y" * huge, **{"z" * huge: ["ü" * huge] * 2, "n": 7}))
        many = {str(number): "w" * 3_000 for number in range(900)}
        events.publish(notice("short", **many))
        events.close()
        first, second, third = await rest(events.read(0))
        assert isinstance(first, NoticeEvent)
        assert isinstance(second, NoticeEvent)
        assert isinstance(third, NoticeEvent)
        assert first.text == "y" * 20_000 + "… [280,000 more characters]"
        assert second.text.endswith("… [4,980,000 more characters]")
        assert second.problem is not None
        assert second.problem.evidence["n"] == 7
        assert third.problem is not None
        assert third.problem.evidence["899"] == "w" * 200 + "… [2,800 more characters]"
        assert third.text == "short"
        assert events.held < 1 << 20

    run(work())


def test_a_name_of_a_file_that_is_no_text_stops_nobody() -> None:
    async def work() -> None:
        events = EventLog()
        events.publish(notice("t", path="/tmp/\udcff"))
        events.close()
        (event,) = await rest(events.read(0))
        assert isinstance(event, NoticeEvent)
        assert event.problem is not None
        assert event.problem.evidence["path"] == "/tmp/?"

    run(work())


def _place(heard: list[Event], after: int, latest: int) -> int:
    """Return a reader's position; below zero when a reset is sure to come."""
    for event in reversed(heard):
        if isinstance(event, ResetEvent):
            return event.latest
        return event.last if isinstance(event, MissedEvent) else event.seq
    return after if after <= latest else -1


def test_readers_of_events_that_leave_are_forgotten() -> None:
    async def go() -> None:
        events = EventLog()
        for _ in range(3):
            reading = asyncio.create_task(taken(events.read(), 1))
            await asyncio.sleep(0)
            assert len(events._waiting) == 1
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        assert events._waiting == []

    run(go())
