"""The keyboard's place on a page whose buttons are switched off while their work goes on."""

from dataclasses import dataclass

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QGroupBox, QHBoxLayout, QPushButton, QStackedWidget, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from engine_host.protocol.engines import EngineState
from sndr_gui.views.bench.page import BenchView
from sndr_gui.views.window.focus import FocusKeeper
from tests.views.conftest import Stage
from tests.views.samples import host as samples


@dataclass
class Form:
    """A sidebar, and a page with two cards."""

    window: QWidget
    area: QStackedWidget
    side: QPushButton
    first: QPushButton
    build: QPushButton
    cancel: QPushButton

    @property
    def focused(self) -> QWidget | None:
        return self.window.focusWidget()


@pytest.fixture
def form(qtbot: QtBot) -> Form:
    window, area, page = QWidget(), QStackedWidget(), QWidget()
    side, first, build, cancel = (QPushButton(name) for name in ("side", "first", "build", "cancel"))
    FocusKeeper(area)
    cards = QVBoxLayout(page)
    for members in ((first,), (cancel, build)):
        card = QGroupBox()
        lines = QVBoxLayout(card)
        for one in members:
            lines.addWidget(one)
        cards.addWidget(card)
    cancel.hide()
    outer = QHBoxLayout(window)
    outer.addWidget(side)
    area.addWidget(page)
    outer.addWidget(area)
    qtbot.addWidget(window)
    with qtbot.waitActive(window):
        window.show()
    build.setFocus()
    return Form(window, area, side, first, build, cancel)


def test_it_stays_in_the_card_and_comes_back(form: Form, qtbot: QtBot) -> None:
    form.build.setEnabled(False)
    form.cancel.show()
    qtbot.waitUntil(lambda: form.focused is form.cancel)
    form.cancel.hide()
    form.build.setEnabled(True)
    qtbot.waitUntil(lambda: form.focused is form.build)
    assert form.build.hasFocus()


def test_with_nothing_left_in_the_card_it_stays_on_the_page(form: Form, qtbot: QtBot) -> None:
    form.build.setEnabled(False)
    qtbot.waitUntil(lambda: form.focused is form.first)
    form.build.setEnabled(True)
    qtbot.waitUntil(lambda: form.focused is form.build)
    assert form.build.hasFocus()


def test_who_moved_on_is_not_called_back(form: Form, qtbot: QtBot) -> None:
    form.build.setEnabled(False)
    form.cancel.show()
    qtbot.waitUntil(lambda: form.focused is form.cancel)
    qtbot.keyClick(form.cancel, Qt.Key.Key_Backtab)
    moved_to = form.focused
    assert moved_to is not form.cancel
    form.build.setEnabled(True)
    qtbot.wait(20)
    assert form.focused is moved_to


def test_a_page_that_is_left_keeps_nothing(form: Form, qtbot: QtBot) -> None:
    other = QWidget()
    form.area.addWidget(other)
    form.area.setCurrentWidget(other)
    qtbot.wait(20)
    assert form.focused not in (form.first, form.build)


def test_a_control_that_is_gone_is_forgotten(form: Form, qtbot: QtBot) -> None:
    form.build.setEnabled(False)
    qtbot.waitUntil(lambda: form.focused is form.first)
    form.build.deleteLater()
    qtbot.wait(20)
    form.first.setEnabled(False)
    qtbot.wait(20)
    assert form.focused is form.side


async def test_tab_goes_into_a_page_that_was_opened_by_its_keys(stage: Stage) -> None:
    stage.window.activateWindow()
    stage.window.go("library")
    stage.window._center.setFocus()
    assert stage.window.focusNextPrevChild(True)
    focused = stage.window.focusWidget()
    assert focused is not None
    assert stage.window.page.isAncestorOf(focused)


async def test_after_a_click_on_measure_tab_stays_beside_it(stage: Stage) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    stage.window.activateWindow()
    stage.window.go("bench")
    page = stage.window.page
    assert isinstance(page, BenchView)
    await stage.until(page.start.isEnabled)
    stage.window._center.setFocus()
    place = page.start.mapTo(stage.window, page.start.rect().center())
    handle = stage.window.windowHandle()
    assert handle is not None
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    where = QPointF(place)
    # As the window hears of it: a click that QTest makes handles events, which ends what waits here.
    stage.window.eventFilter(
        handle, QMouseEvent(QEvent.Type.MouseButtonPress, where, where, left, left, none)
    )
    page.start.click()
    await stage.until(lambda: not page.start.isEnabled())
    assert stage.window.focusNextPrevChild(True)
    focused = stage.window.focusWidget()
    assert focused is not None
    assert page.measure.isAncestorOf(focused)
