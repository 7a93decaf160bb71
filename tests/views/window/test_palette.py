"""The command palette over a window whose pages are built anew meanwhile."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from shiboken6 import delete

from tests.views.conftest import Stage


async def test_a_command_runs_though_the_control_that_had_the_focus_is_gone(stage: Stage) -> None:
    before = QPushButton("a row that is rebuilt", stage.window)
    before.show()
    before.setFocus()
    palette = stage.window.palette_box
    palette.open()
    delete(before)
    QTest.keyClicks(palette.edit, "monit")
    QTest.keyClick(palette.edit, Qt.Key.Key_Return)
    assert not palette.isVisible()
    assert stage.window.current == "monitor"


async def test_the_focus_goes_back_to_where_it_was(stage: Stage) -> None:
    before = QPushButton("it stays", stage.window)
    before.show()
    before.setFocus()
    stage.window.palette_box.open()
    QTest.keyClick(stage.window.palette_box.edit, Qt.Key.Key_Escape)
    assert before.hasFocus()
