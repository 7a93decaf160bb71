"""Logs: no line is missing after the connection or some events were lost, and its search says what it is."""

import time

from PySide6.QtTest import QTest

from engine_host.cli.status import logs
from engine_host.protocol.base import Severity
from engine_host.protocol.events import LogLineEvent, MissedEvent
from engine_host.protocol.logs import LogLine
from sndr_gui.models.logs.page import KEPT_TEXT
from sndr_gui.views.logs.page import LogsView
from tests.views.conftest import Stage


async def opened(stage: Stage) -> LogsView:
    """Logs with its lines read."""
    stage.window.go("logs")
    page = stage.window.page
    assert isinstance(page, LogsView)
    await stage.until(lambda: page.model.loaded)
    return page


def line(text: str, source: str = "host", number: int = 2) -> LogLine:
    """One line of a source."""
    return LogLine(source=source, number=number, at=time.time(), severity=Severity.INFO, text=text)


async def test_lines_of_a_lost_connection_are_there_when_logs_is_back(stage: Stage) -> None:
    page = await opened(stage)
    stage.window.go("home")
    await stage.host.stop()
    await stage.until(lambda: not stage.connection.connected)
    stage.host.log_lines.append(line("written meanwhile"))
    await stage.host.start()
    stage.connection.retry()
    await stage.until(lambda: stage.connection.connected)
    stage.window.go("logs")
    await stage.until(lambda: "written meanwhile" in page.lines.toPlainText())
    assert page.lines.toPlainText().count("serving") == 1


async def test_lines_that_no_event_brought_are_read_at_once_or_when_logs_is_back(stage: Stage) -> None:
    page = await opened(stage)
    stage.host.log_lines.append(line("missed in front"))
    stage.host.publish(MissedEvent(first=1, last=2))
    await stage.until(lambda: "missed in front" in page.lines.toPlainText())
    stage.window.go("home")
    stage.host.log_lines.append(line("missed behind", number=3))
    stage.host.publish(MissedEvent(first=3, last=4))
    await stage.until(lambda: stage.state.seq == stage.host.seq)
    stage.window.go("logs")
    await stage.until(lambda: "missed behind" in page.lines.toPlainText())


async def test_a_failure_is_shown_with_an_empty_search(stage: Stage) -> None:
    page = await opened(stage)
    QTest.keyClicks(page.search, "Nothing like it")
    await stage.until(page._empty.isVisible)
    stage.pages.open_log("engine-1")
    assert page.search.text() == ""
    assert "out of memory" in page.lines.toPlainText()
    assert not page._typed.isActive()


async def test_what_is_searched_for_stays_as_it_was_typed_when_a_source_comes(stage: Stage) -> None:
    page = await opened(stage)
    QTest.keyClicks(page.search, "Serving")
    await stage.until(lambda: page.model.search == "serving")
    stage.host.publish(LogLineEvent(lines=(line("first", source="engine-2", number=1),)))
    await stage.until(lambda: page.sources.findData("engine-2") >= 0)
    assert page.search.text() == "Serving"
    assert page.lines.blockCount() == 1


async def test_without_a_host_the_lines_at_hand_show_the_failure(stage: Stage) -> None:
    page = await opened(stage)
    await stage.host.stop()
    await stage.until(lambda: not stage.connection.connected)
    stage.pages.open_log("engine-1")
    assert page.sources.currentData() == "engine-1"
    assert "out of memory" in page.lines.toPlainText()
    assert "serving" not in page.lines.toPlainText()


async def test_the_command_line_follows_the_level_and_the_source_that_are_shown(stage: Stage) -> None:
    page = await opened(stage)
    assert page._equivalent_command.label.text() == "sndr logs -f"
    page.levels.setCurrentText("Warnings")
    assert page._equivalent_command.label.text() == "sndr logs --level warning -f"
    page.sources.setCurrentIndex(page.sources.findData("engine-1"))
    page.levels.setCurrentText("Errors")
    assert page._equivalent_command.label.text() == "sndr logs engine-1 --level error -f"
    context = logs.make_context("logs", page._equivalent_command.label.text().split()[2:])
    assert (context.params["source"], context.params["level"]) == ("engine-1", page.model.severity)
    stage.pages.open_log("engine-1")
    assert page._equivalent_command.label.text() == "sndr logs engine-1 -f", (
        "a failure is shown among all its lines"
    )


async def test_logs_filter_follow_and_append(stage: Stage) -> None:
    page = await opened(stage)
    await stage.until(lambda: page.lines.blockCount() == 4)
    page.levels.setCurrentIndex(2)
    assert page.lines.toPlainText().endswith("out of memory")
    assert page.lines.blockCount() == 1
    page.levels.setCurrentIndex(0)
    page.sources.setCurrentIndex(page.sources.findData("host"))
    assert page.model.command() == "sndr logs host -f"
    line = LogLine(source="host", number=2, at=0.0, severity=Severity.INFO, text="one more")
    other = LogLine(source="engine-1", number=4, at=0.0, severity=Severity.INFO, text="hidden")
    stage.host.publish(LogLineEvent(lines=(line, other)))
    await stage.until(lambda: "one more" in page.lines.toPlainText())
    assert "hidden" not in page.lines.toPlainText()
    QTest.keyClicks(page.search, "nothing like it")
    await stage.until(lambda: page._empty.isVisible())
    assert page._empty.sentence.text() == "No line matches the filters."


async def test_logs_without_a_line_speak_of_no_filter(stage: Stage) -> None:
    stage.host.log_lines = []
    page = await opened(stage)
    await stage.until(lambda: page.model.loaded)
    assert page._empty.isVisible()
    assert page._empty.sentence.text() == "There are no lines yet."


async def test_logs_hold_ten_thousand_lines(stage: Stage) -> None:
    page = await opened(stage)
    await stage.until(lambda: page.model.loaded)
    lines = tuple(
        LogLine(source="host", number=n, at=0.0, severity=Severity.INFO, text=f"line {n}")
        for n in range(12_000)
    )
    stage.host.publish(LogLineEvent(lines=lines))
    await stage.until(lambda: "line 11999" in page.lines.toPlainText())
    assert page.lines.blockCount() <= 10_000


async def test_huge_lines_are_kept_up_to_a_size(stage: Stage) -> None:
    page = await opened(stage)
    for number in range(40):
        many = tuple(line("x" * 8_000, number=number * 100 + one) for one in range(100))
        stage.state.logged.emit(many)
    assert sum(len(one.text) for one in page.model.lines) <= KEPT_TEXT
    assert page.model.lines[-1].number == 3_999
    assert len(page.model.lines) > 2_000
