"""Log lines: kept by source, published together, and told by severity."""

import asyncio
import logging
import threading
import time
import tracemalloc

import pytest

from engine_host.core.log_buffer import LogBuffer, LogBufferHandler, severity_of
from engine_host.protocol.base import Severity
from engine_host.protocol.events import EventBase, LogLineEvent
from tests.unit.asynchronous import run, until


class Published(list[EventBase]):
    """The published events."""

    def texts(self) -> list[str]:
        return [line.text for event in self if isinstance(event, LogLineEvent) for line in event.lines]


def lines_of(events: list[EventBase]) -> list[LogLineEvent]:
    return [event for event in events if isinstance(event, LogLineEvent)]


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("0.01.234.567 E load failed", Severity.ERROR),
        ("0.01.234.567 I an error is mentioned here", Severity.INFO),
        ("W low memory", Severity.WARNING),
        ("main: error: cannot open", Severity.ERROR),
        ("Failed to bind", Severity.ERROR),
        ("warning: slow", Severity.WARNING),
        ("terror and errors-free", Severity.INFO),
        ("", Severity.INFO),
    ],
)
def test_reads_how_bad_a_line_is(text: str, severity: Severity) -> None:
    assert severity_of(text) is severity


def test_numbers_lines_within_their_source_and_publishes_them_together() -> None:
    async def work() -> None:
        published = Published()
        buffer = LogBuffer(published.append, delay=0.01)
        buffer.add("a", ["one", "two"])
        buffer.add("b", ["other"])
        buffer.add("a", ["three"])
        assert published == []
        await until(lambda: published)
        assert len(published) == 1
        assert published.texts() == ["one", "two", "other", "three"]
        assert [(line.number, line.text) for line in buffer.read("a")] == [
            (1, "one"),
            (2, "two"),
            (3, "three"),
        ]
        assert buffer.sources() == ("a", "b")
        buffer.close()

    run(work())


def test_a_flood_is_published_in_parts_and_only_the_newest_are_kept() -> None:
    async def work() -> None:
        published = Published()
        buffer = LogBuffer(published.append, lines=100, delay=60)
        buffer.add("a", [str(number) for number in range(1200)])
        buffer.close()
        assert [len(event.lines) for event in published if isinstance(event, LogLineEvent)] == [500, 500, 200]
        kept = buffer.read("a", limit=5000)
        assert [line.number for line in kept] == list(range(1101, 1201))
        assert buffer.tail("a", 2) == ("1198", "1199")
        assert buffer.tail("a", 10_000)[0] == "1100"
        assert buffer.tail("unknown", 5) == ()

    run(work())


def test_memory_is_bounded_in_bytes_and_who_floods_gives_way() -> None:
    async def work() -> None:
        published = Published()
        buffer = LogBuffer(published.append, delay=60, limit=1_000_000)
        buffer.add("host", ["what happened before"])
        for _ in range(30):
            buffer.add("flood", ["x" * 9_000_000] * 10)
        buffer.add("other", ["y" * 300] * 100)
        assert buffer.held <= 1_000_000
        assert buffer.tail("host", 5) == ("what happened before",)
        assert len(buffer.tail("other", 500)) == 100
        assert buffer.tail("flood", 1) == ("x" * 8_000 + "… [8,992,000 more characters]",)
        assert buffer.read("flood")[-1].number == 300
        buffer.close()
        sizes = [sum(len(line.text) for line in event.lines) for event in lines_of(published)]
        assert max(sizes) < 200_000, "no event is huge"

    run(work())


def test_a_line_takes_little_more_than_its_text() -> None:
    async def work() -> None:
        buffer = LogBuffer(lambda _event: None, delay=60)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(10_000):
            buffer.add("a", [f"line {number} of a flood"])
        buffer._send()
        taken = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert 0.5 < taken / buffer.held < 1.3, "what is counted is what is held"
        buffer.close()

    run(work())


def test_reads_by_source_severity_number_and_limit() -> None:
    async def work() -> None:
        buffer = LogBuffer(lambda _event: None, delay=60)
        buffer.add("a", ["fine", "warning: x", "error: y", "fine again"])
        buffer.add("host", ["told"], Severity.WARNING)
        assert [line.text for line in buffer.read("a", Severity.WARNING)] == ["warning: x", "error: y"]
        assert [line.text for line in buffer.read("a", after=2)] == ["error: y", "fine again"]
        assert [line.text for line in buffer.read("a", limit=1)] == ["fine again"]
        assert buffer.read("a", limit=0) == []
        assert [line.text for line in buffer.read(None, Severity.WARNING)] == [
            "warning: x",
            "error: y",
            "told",
        ]
        assert buffer.read("unknown") == []
        buffer.close()

    run(work())


def test_a_clock_set_back_does_not_mix_up_the_lines_of_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        buffer = LogBuffer(lambda _event: None, delay=60)
        for at, text in ((100.0, "one"), (50.0, "two"), (60.0, "three")):
            monkeypatch.setattr(time, "time", lambda at=at: at)
            buffer.add("a", [text])
        assert [line.text for line in buffer.read(None)] == ["one", "two", "three"]
        buffer.close()

    run(work())


def test_forgets_a_source() -> None:
    async def work() -> None:
        buffer = LogBuffer(lambda _event: None, delay=60)
        buffer.add("a", ["one"])
        buffer.forget("a")
        buffer.forget("a")
        assert buffer.sources() == ()
        buffer.close()

    run(work())


def test_takes_records_from_any_thread_with_their_traceback() -> None:
    async def work() -> None:
        buffer = LogBuffer(lambda _event: None, delay=60)
        handler = LogBufferHandler(buffer, asyncio.get_running_loop())
        logger = logging.Logger("test", logging.DEBUG)
        logger.addHandler(handler)

        def speak() -> None:
            logger.info("hello")
            try:
                raise ValueError("inner")
            except ValueError:
                logger.exception("outer")

        thread = threading.Thread(target=speak)
        thread.start()
        await until(lambda: len(buffer.read("host")) > 3)
        thread.join()
        lines = buffer.read("host")
        assert (lines[0].text, lines[0].severity) == ("hello", Severity.INFO)
        assert lines[1].text == "outer"
        assert lines[-1].text == "ValueError: inner"
        assert {line.severity for line in lines[1:]} == {Severity.ERROR}
        buffer.close()

    run(work())


def test_a_record_after_the_end_of_the_loop_is_dropped() -> None:
    async def work() -> LogBufferHandler:
        return LogBufferHandler(LogBuffer(lambda _event: None), asyncio.get_running_loop())

    handler = run(work())
    handler.emit(logging.LogRecord("test", logging.INFO, "file", 1, "late", None, None))
