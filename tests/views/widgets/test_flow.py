"""Widgets of a flow never lie on each other, whenever they came."""

from PySide6.QtWidgets import QPushButton, QStackedWidget, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from sndr_gui.views.widgets.flow import Flow


def test_what_comes_while_the_page_is_hidden_has_a_place(qtbot: QtBot) -> None:
    pages, page, other = QStackedWidget(), QWidget(), QWidget()
    one, two, three = (QPushButton(name) for name in ("one", "two", "three"))
    flow = Flow(one, two, three)
    QVBoxLayout(page).addWidget(flow)
    two.hide()
    for each in (page, other):
        pages.addWidget(each)
    qtbot.addWidget(pages)
    pages.resize(600, 200)
    pages.show()
    pages.setCurrentWidget(other)
    two.show()
    pages.setCurrentWidget(page)
    assert two.isVisible()
    assert one.geometry().right() < two.geometry().left()
    assert two.geometry().right() < three.geometry().left()


def test_a_lower_one_stands_in_the_middle_of_its_line(qtbot: QtBot) -> None:
    high, low, below = QWidget(), QWidget(), QWidget()
    for widget, width, height in ((high, 100, 32), (low, 100, 26), (below, 200, 20)):
        widget.setFixedSize(width, height)
    flow = Flow(high, low, below)
    qtbot.addWidget(flow)
    flow.resize(320, 100)
    flow.show()
    assert (high.y(), low.y(), below.y()) == (0, 3, 40)
    assert flow.minimumHeight() == 60
