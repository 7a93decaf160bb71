"""Choices and graphs leave the wheel to the page, and a list goes to what is typed."""

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView, QApplication, QComboBox, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from sndr_gui.kit import theme
from sndr_gui.kit.look.choices import Look, ThemeChoice
from sndr_gui.views.widgets.fields import ChoiceBox
from tests.views.conftest import Stage


def turn(widget: QWidget) -> None:
    """Turn the wheel over a widget as a mouse does: the widget may take the focus first."""
    if widget.focusPolicy() & Qt.FocusPolicy.WheelFocus.value & ~Qt.FocusPolicy.StrongFocus.value:
        widget.setFocus(Qt.FocusReason.MouseFocusReason)
    place = QPointF(widget.rect().center())
    event = QWheelEvent(
        place,
        QPointF(widget.mapToGlobal(place.toPoint())),
        QPoint(),
        QPoint(0, -120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
@pytest.mark.parametrize("letters", [6, 8, 12])
async def test_a_choice_is_as_large_as_qt_makes_it_and_its_list_is_made_later(
    stage: Stage, letters: int
) -> None:
    box, plain = ChoiceBox("Kind"), QComboBox()
    plain.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    for one in (box, plain):
        one.setParent(stage.window)
        one.setMinimumContentsLength(letters)
        one.ensurePolished()
    assert (box.sizeHint(), box.minimumSizeHint()) == (plain.sizeHint(), plain.minimumSizeHint())
    assert box.findChild(QAbstractItemView) is None
    box.fill([("One", 1), ("Two", 2)], 2)
    theme.wear(Look(ThemeChoice.DARK))
    box.show()
    box.showPopup()
    assert box.view().isVisible()
    assert box.currentData() == 2
    box.hidePopup()


def test_a_wheel_over_a_choice_does_not_change_it(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    lines = QVBoxLayout(window)
    box = ChoiceBox("Kind")
    box.fill((("one", 1), ("two", 2)), 1)
    lines.addWidget(box)
    window.show()
    qtbot.waitExposed(window)
    turn(box)
    assert (box.currentIndex(), box.hasFocus()) == (0, False)


async def test_every_choice_of_every_page_leaves_the_wheel_to_the_page(stage: Stage) -> None:
    found = 0
    for name in ("launch", "engine", "patches", "logs", "settings"):
        stage.window.go(name)
        for box in stage.window.page.findChildren(QComboBox):
            found += 1
            before = box.currentIndex()
            turn(box)
            assert box.currentIndex() == before, (name, box.accessibleName())
    assert found > 5


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
@pytest.mark.parametrize(
    ("typed", "chosen"),
    [("rtx 3060", "RTX 3060 · 12 GiB"), ("4090", "GeForce RTX 4090"), ("l", "L4"), ("no such", "L4")],
)
def test_an_open_list_goes_to_what_is_typed(qtbot: QtBot, typed: str, chosen: str) -> None:
    """Qt took the space of "RTX 3060" for a choice, and found nothing in the middle of a name."""
    box = ChoiceBox("GPU")
    qtbot.addWidget(box)
    box.fill([(name, name) for name in ("L4", "RTX A4000", "RTX 3060 · 12 GiB", "GeForce RTX 4090")], None)
    box.show()
    box.showPopup()
    QTest.keyClicks(box.view(), typed)
    QTest.keyClick(box.view(), Qt.Key.Key_Return)
    assert box.currentText() == chosen
    assert not box.view().isVisible()
