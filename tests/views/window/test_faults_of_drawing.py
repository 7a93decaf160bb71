"""An error in drawing, or in the answer to another event, stays there: the window goes on and tells it."""

import asyncio
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QAbstractTableModel, QEvent, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QMouseEvent, QPaintEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTableView, QWidget

from sndr_gui.app import Report
from sndr_gui.kit.loop.application import Application, what_failed
from tests.views.conftest import Stage

Index = QModelIndex | QPersistentModelIndex


class Faulty(QWidget):
    """Fails at each drawing, and at each click."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(30, 30)
        self.drawn = 0

    def paintEvent(self, _event: QPaintEvent) -> None:
        self.drawn += 1
        raise ValueError("it cannot be drawn.")

    def mousePressEvent(self, _event: QMouseEvent) -> None:
        raise KeyError("it cannot be pressed")


class FaultyTable(QAbstractTableModel):
    """Fails at each cell."""

    def rowCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008 - as Qt has it
        return 5

    def columnCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008 - as Qt has it
        return 5

    def data(self, _index: Index, _role: int = 0) -> object:
        raise RuntimeError("it has no cells")


@pytest.fixture
def app() -> Iterator[Application]:
    found = QApplication.instance()
    assert isinstance(found, Application)
    before = found.failed
    yield found
    found.failed, found.quit_wanted = before, None


async def test_what_fails_at_drawing_is_told_once_and_the_others_go_on(
    stage: Stage, app: Application, capsys: pytest.CaptureFixture[str]
) -> None:
    met: list[Exception] = []
    report = Report(stage.notices, None)

    def failed(error: Exception) -> None:
        met.append(error)
        report.of_event(error)

    app.failed = failed
    body = stage.window.page.body
    faulty, table, model = [Faulty(), Faulty()], QTableView(), FaultyTable()
    table.setModel(model)
    for one in (*faulty, table):
        body.insertWidget(0, one)
    await stage.until(lambda: all(one.drawn for one in faulty))
    for _ in range(20):
        stage.window.update()
        await asyncio.sleep(0.02)
    assert all(one.drawn > 5 for one in faulty), "each is asked at each drawing, whatever failed before it"
    assert {what_failed(error) for error in met} == {"it cannot be drawn", "it has no cells"}
    # Met where it happened: nothing else of Python was asked between.
    assert all(str(error).count("override") == 1 for error in met)
    QTest.mouseClick(faulty[0], Qt.MouseButton.LeftButton)
    await stage.until(lambda: any("pressed" in one.text for one in stage.window.toasts.shown))
    assert capsys.readouterr().err.count("ValueError: ") == 1
    for one in (*faulty, table):
        body.removeWidget(one)
        one.deleteLater()
    assert stage.window.page.isVisible()


async def test_quitting_is_asked_for_and_not_done(stage: Stage, app: Application) -> None:
    asked: list[bool] = []
    app.quit_wanted = lambda: asked.append(True)
    event = QEvent(QEvent.Type.Quit)
    app.sendEvent(app, event)
    assert asked
    assert not event.isAccepted()
    assert stage.window.isVisible()
