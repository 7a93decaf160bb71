"""Monitor: what happened is marked on the graphs, said under the pointer, and leads to its log."""

import time

import pytest
from PySide6.QtCore import QCoreApplication, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest

from engine_host.protocol.base import Severity
from engine_host.protocol.events import MarkEvent
from engine_host.protocol.logs import LogLine
from engine_host.protocol.telemetry import Mark, MarkKind
from sndr_gui.kit import theme
from sndr_gui.kit.look.choices import ThemeChoice
from sndr_gui.views.graphs.plots import Graph
from sndr_gui.views.logs.page import LogsView
from sndr_gui.views.monitor.page import MonitorView
from tests.views.conftest import Stage


def mark(ago: float, kind: MarkKind, text: str, engine: str = "engine-1") -> Mark:
    return Mark(id=f"{ago}", at=time.time() - ago, kind=kind, text=text, engine=engine)


async def opened(stage: Stage, *marks: Mark) -> tuple[MonitorView, Graph]:
    """Monitor in front, with a graph and these marks."""
    stage.host.marks = marks
    stage.window.go("monitor")
    page = stage.window.page
    assert isinstance(page, MonitorView)
    await stage.until(lambda: page.graphs.rates.graph is not None and page.model.loaded)
    graph = page.graphs.rates.graph
    assert graph is not None
    await stage.until(lambda: len(graph.bunches) == len(marks))
    return page, graph


def place(graph: Graph, number: int) -> QPoint:
    """Return where a mark is, in pixels of the graph."""
    area = graph.getPlotItem().vb.sceneBoundingRect()
    x = graph._x_of(graph.bunches[number].at)
    found: QPoint = graph.mapFromScene(round(x), round(area.center().y()))
    return found


def point_at(graph: Graph, place: QPoint) -> None:
    """Move the pointer there; `QTest.mouseMove` would run the loop inside of a task of it."""
    glob = QPointF(graph.viewport().mapToGlobal(place))
    none = Qt.MouseButton.NoButton
    kind, keys = QMouseEvent.Type.MouseMove, Qt.KeyboardModifier.NoModifier
    QCoreApplication.sendEvent(graph.viewport(), QMouseEvent(kind, QPointF(place), glob, none, none, keys))


async def test_a_click_on_a_mark_opens_the_log_of_its_time(stage: Stage) -> None:
    now = time.time()
    stage.host.log_lines = [
        LogLine(
            source="engine-1", number=number, at=now - 200 + number, severity=Severity.INFO, text=f"l{number}"
        )
        for number in range(200)
    ]
    page, graph = await opened(
        stage,
        mark(150, MarkKind.STARTED, "demo started"),
        mark(60, MarkKind.OUT_OF_MEMORY, "demo <b>ran</b> out of memory"),
    )
    assert [bunch.group.title for bunch in graph.bunches] == ["Starts and ends", "Failures"]
    point_at(graph, place(graph, 1))
    card = page.graphs.rates
    await stage.until(lambda: "out of memory" in card.toolTip())
    assert "&lt;b&gt;ran" in card.toolTip(), "what an engine says is no HTML"
    assert "tok/s" in card.toolTip(), "the values of that time stand with it"
    QTest.mouseClick(graph.viewport(), Qt.MouseButton.LeftButton, pos=place(graph, 1))
    logs = stage.window.page
    assert isinstance(logs, LogsView)
    await stage.until(lambda: logs.lines.textCursor().selectedText() != "")
    at = graph.bunches[1].at
    chosen = logs.lines.textCursor().block().text()
    number = int(chosen.rpartition(" l")[2])
    assert abs(stage.host.log_lines[number].at - at) <= 2
    assert logs.model.source == "engine-1"


async def test_a_mark_that_is_older_than_the_log_says_so(stage: Stage) -> None:
    said: list[str] = []
    stage.notices.posted.connect(lambda notice: said.append(notice.text))
    _page, graph = await opened(stage, mark(100, MarkKind.STARTED, "demo started"))
    QTest.mouseClick(graph.viewport(), Qt.MouseButton.LeftButton, pos=place(graph, 0))
    await stage.until(lambda: any("no longer kept" in text for text in said))


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
async def test_marks_are_reached_by_keys(stage: Stage) -> None:
    _page, graph = await opened(
        stage,
        mark(150, MarkKind.STARTED, "demo started"),
        mark(60, MarkKind.PATCH_FAILED, "Patch p1 failed"),
    )
    graph.setFocus()
    QTest.keyClick(graph, Qt.Key.Key_Left)
    assert "Patch p1 failed" in graph.accessibleDescription()
    QTest.keyClick(graph, Qt.Key.Key_Left)
    QTest.keyClick(graph, Qt.Key.Key_Left)
    assert "demo started" in graph.accessibleDescription(), "before the first there is none"
    QTest.keyClick(graph, Qt.Key.Key_Right)
    QTest.keyClick(graph, Qt.Key.Key_Return)
    assert isinstance(stage.window.page, LogsView)


async def test_marks_come_by_events_and_are_switched_off_by_group(stage: Stage) -> None:
    page, graph = await opened(stage, mark(150, MarkKind.STARTED, "demo started"))
    stage.host.publish(MarkEvent(mark=mark(20, MarkKind.BENCH_BEGUN, "Bench: begun", "")))
    await stage.until(lambda: len(graph.bunches) == 2)
    said = page.marks.said
    assert said.text() == "2 events"
    switches = {switch.text(): switch for switch in page.marks.switches}
    assert all(not switch.icon().isNull() for switch in switches.values()), "each form is shown"
    QTest.keyClick(switches["Measurements"], Qt.Key.Key_Space)
    await stage.until(lambda: len(graph.bunches) == 1)
    assert said.text() == "1 event"
    QTest.keyClick(switches["Starts and ends"], Qt.Key.Key_Space)
    await stage.until(lambda: not graph.bunches)
    assert said.text() == "no events"
    for name in ("Measurements", "Starts and ends"):
        QTest.keyClick(switches[name], Qt.Key.Key_Space)
    await stage.until(lambda: len(graph.bunches) == 2)


async def test_keys_lead_to_the_legend_of_the_marks(stage: Stage) -> None:
    page, graph = await opened(stage, mark(150, MarkKind.STARTED, "demo started"))
    graph.setFocus()
    QTest.keyClick(graph, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    await stage.until(page.marks.switches[0].hasFocus)


async def test_marks_are_drawn_in_the_colours_of_the_theme(stage: Stage) -> None:
    _page, graph = await opened(stage, mark(100, MarkKind.DIED, "demo died"))
    for choice in (ThemeChoice.DARK, ThemeChoice.LIGHT):
        theme.choose(choice)
        x = graph._x_of(graph.bunches[0].at)
        picture = graph.grab().toImage()
        row = graph.getPlotItem().vb.sceneBoundingRect().top() + 5
        drawn = {
            picture.pixelColor(round(x) + dx, round(row) + dy).name()
            for dx in (-1, 0, 1)
            for dy in (-1, 0, 1)
        }
        assert theme.color("bad").name() in drawn, (choice, drawn)
