"""The list of known values: which of Enter's keys takes an entry, and which is the dialog's."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLineEdit, QPushButton, QVBoxLayout, QWidget

from sndr_gui.views.widgets.fields import Completer

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)


@pytest.fixture
def dialog(dressed: QApplication) -> Iterator[QDialog]:
    made = QDialog()
    lines = QVBoxLayout(made)
    line, save = QLineEdit(), QPushButton("Add")
    lines.addWidget(line)
    lines.addWidget(save)
    save.setDefault(True)
    save.clicked.connect(made.accept)
    Completer(["L4-box", "h200-box", "box"], line)
    made.show()
    line.setFocus()
    yield made
    made.close()
    made.deleteLater()


def line_of(dialog: QDialog) -> QLineEdit:
    return dialog.findChildren(QLineEdit)[0]


def popup_of(line: QLineEdit) -> QWidget:
    popup = line.completer().popup()
    assert popup is not None
    return popup


@pytest.mark.parametrize("typed", ["box", "BO", "l4-box"])
@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_enter_is_the_dialogs_where_nothing_in_the_list_is_chosen(
    dialog: QDialog, typed: str, key: Qt.Key
) -> None:
    line = line_of(dialog)
    QTest.keyClicks(line, typed)
    popup = popup_of(line)
    assert popup.isVisible()
    QTest.keyClick(popup, key)
    assert not popup.isVisible()
    assert line.text() == typed
    assert dialog.result() == QDialog.DialogCode.Accepted


def test_enter_takes_what_is_chosen_and_the_next_one_is_the_dialogs(dialog: QDialog) -> None:
    line = line_of(dialog)
    QTest.keyClicks(line, "200")
    popup = popup_of(line)
    QTest.keyClick(popup, Qt.Key.Key_Down)
    QTest.keyClick(popup, Qt.Key.Key_Return)
    assert not popup.isVisible()
    assert line.text() == "h200-box"
    assert dialog.isVisible(), "the entry is to be seen before it is used"
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert dialog.result() == QDialog.DialogCode.Accepted
