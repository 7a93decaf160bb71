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
