"""Visible text is read without a turn of the event loop in between."""

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from tests.views.widgets.visible_text import visible_text


def test_a_line_that_was_just_added_is_read_and_a_hidden_one_is_not(qtbot: QtBot) -> None:
    card = QWidget()
    qtbot.addWidget(card)
    lines = QVBoxLayout(card)
    card.show()
    late, hidden = QLabel("late"), QLabel("hidden")
    lines.addWidget(late)
    lines.addWidget(hidden)
    hidden.hide()
    assert late.isHidden(), "Qt shows it in the next turn"
    assert visible_text(card) == "late"
