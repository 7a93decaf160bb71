"""Admission: slots are never exceeded, and nobody is overtaken."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.gateway.access.admission import Admission, Ticket
from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import EndpointError

TARGET = Target("e1", "m", 2, 128, 0.0, socket="unused")


@given(st.lists(st.tuples(st.sampled_from(["enter", "leave", "quit"]), st.integers(0, 20)), max_size=80))
def test_first_in_first_out_whatever_happens(steps: list[tuple[str, int]]) -> None:
    heard: list[int] = []
    admission = Admission(5, lambda engine, active: heard.append(active))
    order: list[Ticket] = []
    for step, place in steps:
        if step == "enter":
            if admission.waiting("e1") == 5:
                with pytest.raises(EndpointError, match="already wait"):
                    admission.enter(TARGET)
            else:
                order.append(admission.enter(TARGET))
        elif order:
            # A holder gives its slot back, a waiter goes away.
            admission.release(order.pop(place % len(order)))
        granted = [ticket.granted for ticket in order]
        assert granted == sorted(granted, reverse=True)
        assert sum(granted) == admission.active("e1") == min(2, len(order))
        assert admission.waiting("e1") == max(0, len(order) - 2)
        waiters = [ticket for ticket in order if not ticket.granted]
        assert [admission.ahead(ticket) for ticket in waiters] == list(range(len(waiters)))
    assert all(0 <= active <= 2 for active in heard)


def test_leaving_twice_counts_once() -> None:
    admission = Admission(5)
    ticket = admission.enter(TARGET)
    admission.release(ticket)
    admission.release(ticket)
    assert admission.active("e1") == 0


def test_waiting_reports_movement_and_timeouts() -> None:
    async def go() -> None:
        admission = Admission(5)
        holders = [admission.enter(TARGET) for _ in range(2)]
        first, second = admission.enter(TARGET), admission.enter(TARGET)
        assert await admission.wait(second, 0.01) is False
        moved = asyncio.create_task(admission.wait(second, 5))
        await asyncio.sleep(0)
        admission.release(first)
        assert await moved is False
        assert admission.ahead(second) == 0
        admission.release(holders[0])
        assert await admission.wait(second, 5) is True

    asyncio.run(go())


def test_drain_of_an_idle_engine_ends_at_once_and_forget_opens_it_again() -> None:
    async def go() -> None:
        admission = Admission(5)
        assert await admission.drain("e1", 0.01) is True
        with pytest.raises(EndpointError, match="being stopped"):
            admission.enter(TARGET)
        admission.forget("e1")
        assert admission.enter(TARGET).granted

    asyncio.run(go())


def test_who_waits_for_an_engine_that_is_gone_is_refused() -> None:
    async def go() -> None:
        admission = Admission(5)
        holders = [admission.enter(TARGET) for _ in range(2)]
        waiting = [admission.enter(TARGET) for _ in range(2)]
        sent = asyncio.create_task(admission.wait(waiting[0]))
        await asyncio.sleep(0)
        admission.forget("e1")
        for holder in holders:
            admission.release(holder)
        for refused in (sent, admission.wait(waiting[1])):
            with pytest.raises(EndpointError) as raised:
                async with asyncio.timeout(30):
                    await refused
            assert (raised.value.status, raised.value.code) == (503, "engine_unreachable")
        for ticket in waiting:
            admission.release(ticket)
        assert (admission.active("e1"), admission.waiting("e1")) == (0, 0)

    asyncio.run(go())


def target(slots: int) -> Target:
    """An engine with so many slots."""
    return Target("e1", "m", slots, 128, 0.0, socket="unused")


def test_keys_take_turns_however_many_one_sends() -> None:
    async def go() -> None:
        admission = Admission(queue_limit=100)
        first = [admission.enter(target(1), "greedy") for _ in range(6)]
        other = [admission.enter(target(1), "modest") for _ in range(2)]
        assert admission.ahead(other[0]) == 0, "the other key holds the slot"
        assert admission.ahead(first[1]) == 1
        order = []
        waiting = [*first, *other]
        while granted := [ticket for ticket in waiting if ticket.granted]:
            order.append(granted[0].owner)
            waiting.remove(granted[0])
            admission.release(granted[0])
        assert order == ["greedy", "modest", "greedy", "modest", *["greedy"] * 4]

    asyncio.run(go())


def test_a_key_that_holds_fewer_slots_goes_first() -> None:
    async def go() -> None:
        admission = Admission(queue_limit=100)
        greedy = [admission.enter(target(2), "greedy") for _ in range(4)]
        modest = admission.enter(target(2), "modest")
        admission.release(greedy[0])
        assert modest.granted
        assert not greedy[2].granted

    asyncio.run(go())


def test_a_queue_that_one_key_fills_has_a_share_for_another() -> None:
    async def go() -> None:
        admission = Admission(queue_limit=4)
        for _ in range(5):
            admission.enter(target(1), "greedy")
        with pytest.raises(EndpointError):
            admission.enter(target(1), "greedy")
        for _ in range(2):
            admission.enter(target(1), "modest")
        with pytest.raises(EndpointError) as refused:
            admission.enter(target(1), "modest")
        assert refused.value.code == "queue_full"
        assert admission.waiting("e1") == 6

    asyncio.run(go())
