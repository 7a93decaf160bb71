"""What the past shows: requests as they were, the pool by share, memory by part."""

import pytest

from engine_host.protocol.engines import Readings, Request, RequestState
from engine_host.protocol.host import RECORDED
from engine_host.protocol.telemetry import MemoryDevice, MemoryPart, MemoryUser
from sndr_gui.models.monitor.as_of import as_of
from sndr_gui.models.monitor.kv_pool import pool_now, pool_then
from sndr_gui.models.monitor.memory import FREE, OTHERS, bar_of
from sndr_gui.models.window.time_travel import STEPS, TimeTravel

DONE = Request(
    id="r",
    engine="e",
    model="m",
    route="/v1/chat/completions",
    state=RequestState.DONE,
    created_at=100.0,
    waited=2.0,
    ttft=5.0,
    ended_at=110.0,
    prompt_tokens=7,
    generated_tokens=9,
    decode_rate=3.0,
)


def test_a_request_is_as_it_was_and_knows_nothing_of_later() -> None:
    assert as_of(DONE, 99.0) is None
    waiting, reading, writing = (as_of(DONE, at) for at in (101.0, 103.0, 106.0))
    assert waiting is not None
    assert reading is not None
    assert writing is not None
    assert [one.state.value for one in (waiting, reading, writing)] == ["waiting", "prefill", "decode"]
    assert (waiting.waited, waiting.ttft, waiting.prompt_tokens) == (None, None, None)
    assert (reading.waited, reading.ttft) == (2.0, None)
    assert (writing.ttft, writing.prompt_tokens, writing.generated_tokens) == (5.0, 7, None)
    assert (writing.ended_at, writing.decode_rate) == (None, None)
    assert as_of(DONE, 110.0) == DONE


def test_the_pool_is_drawn_by_share_and_says_what_is_not_told() -> None:
    pool = pool_now(Readings(at=0, kv_tokens=600, kv_cached=100, kv_capacity=1000))
    assert pool is not None
    assert (round(pool.used, 6), pool.squares(100)) == (0.5, (50, 10))
    blocks = pool_now(Readings(at=0, kv_usage=0.0004))
    assert blocks is not None
    # A little is seen, and what is kept is not said to be nothing.
    assert blocks.squares(400) == (1, 0)
    assert "not reported" in blocks.sentences(400)[1]
    assert "not which blocks" in blocks.sentences(400)[3]
    assert pool_now(Readings(at=0)) is None
    assert pool_now(None) is None
    assert pool_then(None, 0.5, 10) is None


def test_a_bar_has_parts_others_and_free_and_never_a_0_for_not_measured() -> None:
    parts = (MemoryPart(name="weights", memory=6), MemoryPart(name="CUDA graphs", memory=None))
    users = (
        MemoryUser(pid=1, name="m", memory=8, engine="e", parts=parts),
        MemoryUser(pid=2, name="<i>x", memory=3),
        MemoryUser(pid=3, name="y", memory=None),
    )
    bar = bar_of(MemoryDevice(name="GPU 0: c", total=20, used=14, users=users, recorded=True))
    assert [(one.label, one.size, one.colour) for one in bar.segments] == [
        ("m: weights", 6, 0),
        ("<i>x (2)", 3, OTHERS),
        ("Free", 6, FREE),
    ]
    assert bar.unknown == ("m: CUDA graphs", "y (3)", "what others hold")
    assert RECORDED in bar.title
    assert "Not measured: m: CUDA graphs" in bar.sentence


def test_the_scrubber_goes_back_and_its_end_is_now() -> None:
    now = [1000.0]
    past = TimeTravel(lambda: now[0])
    told: list[float | None] = []
    past.changed.connect(lambda: told.append(past.at))
    past.scrub(STEPS // 2)
    assert (past.at, past.place, past.said != "") == (850.0, STEPS // 2, True)
    # What is looked at stays while time goes on.
    now[0] = 1060.0
    assert (past.now, past.place) == (1000.0, STEPS // 2)
    past.scrub(past.place)
    past.look_at(1.0)
    assert past.at == 700.0
    past.set_span(100.0)
    assert (past.at, past.now) == (960.0, 1060.0)
    past.look_at(2000.0)
    assert (past.place, past.said) == (STEPS, "")
    past.back()
    assert told == [850.0, 700.0, 960.0, None]


def test_a_clock_that_is_stopped_stops_here_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1000.0)
    assert TimeTravel().now == 1000.0
