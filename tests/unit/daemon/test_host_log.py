"""A flood of one error pushes nothing out of the host's log, and its end says how many there were."""

import asyncio
import logging
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from engine_host.core.log_buffer import LogBuffer
from engine_host.core.paths import Folders
from engine_host.daemon import repeated_records
from engine_host.daemon.host_log import LogFile, host_log
from engine_host.daemon.repeated_records import WRITTEN, RepeatedRecords
from tests.unit.asynchronous import run, until
from tests.unit.full_disk import small_disk


class Kept(logging.Handler):
    """Keeps the messages that reach it."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


class Clock:
    """A time that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def counted(work: Callable[[logging.Logger, Kept, Clock], None]) -> list[str]:
    """Log into a handler that counts; the messages that were written, after its end."""
    kept, clock = Kept(), Clock()

    async def act() -> None:
        logger = logging.Logger("test", logging.DEBUG)
        handler = RepeatedRecords([kept], asyncio.get_running_loop(), clock)
        logger.addHandler(handler)
        work(logger, kept, clock)
        handler.close()

    run(act())
    return kept.texts


def test_the_first_are_written_and_the_others_counted() -> None:
    def work(logger: logging.Logger, kept: Kept, clock: Clock) -> None:
        logger.info("before")
        for number in range(1_239):
            logger.error(
                "request %d of %r failed at 0x%x: req_%024x", number, f"client {number}", number, number
            )
        logger.error("something else failed")
        assert len(kept.texts) == WRITTEN + 2
        clock.now += 10

    texts = counted(work)
    assert texts[0] == "before"
    assert texts[6] == "something else failed"
    assert texts[7] == "… 1,234 more like it in 10 s: request 0 of 'client 0' failed at 0x0: req_" + 24 * "0"
    assert len(texts) == 8


def test_a_new_span_begins_with_the_count_of_the_old_one() -> None:
    def work(logger: logging.Logger, _kept: Kept, clock: Clock) -> None:
        for _ in range(3):
            for _ in range(10):
                logger.warning("again")
            clock.now += 15

    more = "… 5 more like it in 15 s: again"
    assert counted(work) == [*(["again"] * 5), more, *(["again"] * 5), more, *(["again"] * 5), more]


def test_errors_of_two_places_are_two_kinds_and_debugging_is_whole() -> None:
    def work(logger: logging.Logger, _kept: Kept, _clock: Clock) -> None:
        for _ in range(9):
            for bad in ("x", None):
                try:
                    int(bad) if bad else [][0]
                except (ValueError, IndexError):
                    logger.exception("it failed")
            logger.debug("looked")

    texts = counted(work)
    assert texts.count("it failed") == 2 * WRITTEN
    assert texts.count("… 4 more like it in 0 s: it failed") == 2
    assert texts.count("looked") == 9


def test_many_kinds_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_records, "_KINDS", 10)

    def work(logger: logging.Logger, _kept: Kept, _clock: Clock) -> None:
        for _ in range(7):
            logger.info("first")
        for letter in "abcdefghijklmnop":
            logger.info("kind " + letter * 3)
        for handler in logger.handlers:
            assert isinstance(handler, RepeatedRecords)
            assert len(handler._seen) == 10

    assert "… 2 more like it in 0 s: first" in counted(work)


def test_the_count_is_told_although_nothing_more_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_records, "SPAN", 0.2)
    kept = Kept()

    async def act() -> None:
        logger = logging.Logger("test")
        handler = RepeatedRecords([kept], asyncio.get_running_loop())
        logger.addHandler(handler)

        def flood() -> None:
            for _ in range(100):
                logger.error("flood")

        await asyncio.to_thread(flood)
        await until(lambda: kept.texts[-1].startswith("… 95 more like it"))
        handler.close()

    run(act())
    assert len(kept.texts) == WRITTEN + 1


def test_a_flood_leaves_the_earlier_lines_of_host_log(home: Path) -> None:
    async def act() -> None:
        folders = Folders.resolve()
        buffer = LogBuffer(lambda _event: None, delay=60)
        with host_log(folders, buffer, "info"):
            logger = logging.getLogger("test.flood")
            logger.info("the line that explains it")
            for number in range(3_000):
                logger.error("a flood of one error, number %d, %s", number, "x" * 1_000)
            logger.error("a huge one: %s", "y" * 1_000_000)
            logger.error("a name: %s", "\udcff")
            await until(lambda: len(buffer.tail("host", 50)) >= 8)
        files = sorted(folders.logs.glob("host.log*"))
        assert [file.name for file in files] == ["host.log"]
        text = files[0].read_text(encoding="utf-8")
        assert "INFO    test.flood: the line that explains it" in text
        assert "… 2,995 more like it in" in text
        assert "more characters]" in text
        assert "a name: \\udcff" in text
        assert len(text) < 50_000
        assert buffer.tail("host", 50)[0] == "test.flood: the line that explains it"
        buffer.close()

    run(act())


def test_lines_that_do_not_fit_are_counted_and_the_rest_is_written(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_disk(home / "disk") as disk:
        log = LogFile(disk.folder / "host.log")
        logger = logging.Logger("one")
        logger.addHandler(log)
        logger.warning("before")
        with disk.full():
            for number in range(50):
                logger.warning("%d %s", number, "x" * 200)
        logger.warning("after")
        with disk.full():
            logger.warning("y" * 9000)
            log.close()
        lines = (disk.folder / "host.log").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "before"
    told = next(line for line in lines if "lines are lost" in line)
    assert lines[lines.index(told) + 1] == "after"
    whole = [line for line in lines if line.endswith("x" * 200) and line[0].isdigit()]
    # What was torn off stands before the count in the same line.
    found = re.search(r"(\d+) lines are lost: No space left on device$", told)
    assert found is not None
    assert 50 <= len(whole) + int(found[1]) <= 51
    assert capsys.readouterr().err == ""


def test_a_message_that_is_a_defect_of_ours_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = LogFile(home / "host.log")
    log.handle(logging.LogRecord("one", logging.INFO, "", 0, "%d", ("no number",), None))
    log.close()
    assert "no number" in capsys.readouterr().err
