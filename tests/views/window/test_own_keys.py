"""Keys that the person chose: at once, at the next start, never two actions with the same, and back again."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from sndr_gui.host.notices import Notices
from sndr_gui.kit import shortcuts
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.views.window.main import Window
from sndr_gui.views.window.pages import page_entry
from sndr_gui.views.window.shortcut_sheet import ShortcutSheet
from tests.views.conftest import Stage
from tests.views.presets.opened import dialog


@pytest.fixture(autouse=True)
def usual_keys() -> None:
    """Each test begins, and leaves the others, with the usual keys."""
    shortcuts.choose({})


def opened_at(stage: Stage, does: str) -> ShortcutSheet:
    """The sheet, with an action chosen by its words."""
    QTest.keySequence(stage.window, QKeySequence("F1"))
    sheet = dialog(ShortcutSheet)
    place = next(number for number, line in enumerate(sheet.rows.shown) if line.does == does)
    sheet.table.setCurrentIndex(sheet.rows.index(place, 0))
    return sheet


async def front(stage: Stage, qtbot: QtBot) -> None:
    with qtbot.waitActive(stage.window):
        stage.window.activateWindow()


async def test_an_action_gets_other_keys_at_once_and_for_the_next_start(stage: Stage, qtbot: QtBot) -> None:
    await front(stage, qtbot)
    sheet = opened_at(stage, "Fold the sidebar to icons, or unfold it")
    QTest.keySequence(sheet.editor.field, QKeySequence("Ctrl+Shift+Y"))
    assert stage.file.current.keys == {"fold": "Ctrl+Shift+Y"}
    assert shortcuts.keys("fold") == "Ctrl+Shift+Y"
    assert any(line.keys == "Ctrl+Shift+Y" for line in sheet.rows.shown)
    sheet.close_button.click()
    assert "(Ctrl+Shift+Y)" in stage.window.sidebar.fold.toolTip()
    await front(stage, qtbot)
    before = stage.window.sidebar.folded
    QTest.keySequence(stage.window, QKeySequence("Ctrl+B"))
    assert stage.window.sidebar.folded is before
    QTest.keySequence(stage.window, QKeySequence("Ctrl+Shift+Y"))
    assert stage.window.sidebar.folded is not before
    shortcuts.choose({})
    again = Window(SettingsFile(stage.file.folder / "window.json"), Notices())
    assert "(Ctrl+Shift+Y)" in again.sidebar.fold.toolTip()
    again.deleteLater()


async def test_a_page_gets_other_keys(stage: Stage, qtbot: QtBot) -> None:
    await front(stage, qtbot)
    sheet = opened_at(stage, "Go to Logs")
    QTest.keySequence(sheet.editor.field, QKeySequence("Alt+L"))
    assert page_entry("logs").shortcut == "Alt+L"
    sheet.close_button.click()
    await front(stage, qtbot)
    QTest.keySequence(stage.window, QKeySequence("Alt+L"))
    assert stage.window.current == "logs"
    assert "(Alt+L)" in stage.window.sidebar.buttons["logs"].toolTip()


async def test_keys_that_are_taken_or_for_typing_are_refused(stage: Stage, qtbot: QtBot) -> None:
    await front(stage, qtbot)
    sheet = opened_at(stage, "Fold the sidebar to icons, or unfold it")
    for pressed, why in (
        ("Ctrl+K", "does something already: Find and run a command"),
        ("Ctrl+2", "does something already: Go to Launch"),
        ("Ctrl+C", "belongs to every text field"),
        ("Shift+X", "has to have Ctrl or Alt"),
    ):
        QTest.keySequence(sheet.editor.field, QKeySequence(pressed))
        assert why in sheet.editor.said.text()
    assert stage.file.current.keys == {}
    assert not sheet.editor.usual.isEnabled()
    sheet.close_button.click()


async def test_one_action_and_all_go_back_to_the_usual_keys(stage: Stage, qtbot: QtBot) -> None:
    await front(stage, qtbot)
    sheet = opened_at(stage, "Find and run a command")
    QTest.keySequence(sheet.editor.field, QKeySequence("F8"))
    sheet.editor.usual.click()
    assert stage.file.current.keys == {}
    QTest.keySequence(sheet.editor.field, QKeySequence("F8"))
    # What has gone may be given to another one; then the usual keys are not free.
    place = next(n for n, line in enumerate(sheet.rows.shown) if line.does == "Go to Home")
    sheet.table.setCurrentIndex(sheet.rows.index(place, 0))
    QTest.keySequence(sheet.editor.field, QKeySequence("Ctrl+K"))
    assert stage.file.current.keys == {"palette": "F8", "page home": "Ctrl+K"}
    sheet.editor.all_usual.click()
    assert stage.file.current.keys == {}
    sheet.close_button.click()
    await front(stage, qtbot)
    QTest.keySequence(stage.window, QKeySequence("Ctrl+K"))
    assert stage.window.palette_box.isVisible()
    QTest.keyClick(stage.window.palette_box.edit, Qt.Key.Key_Escape)


async def test_keys_of_single_controls_stay(stage: Stage, qtbot: QtBot) -> None:
    await front(stage, qtbot)
    sheet = opened_at(stage, "Send the message")
    assert not sheet.editor.field.isEnabled()
    assert "single control" in sheet.editor.said.text()
    for control in (sheet.editor.field, sheet.editor.usual, sheet.editor.all_usual):
        assert control.accessibleName()
    sheet.close_button.click()


@pytest.mark.parametrize("own", [{"fold": "nonsense"}, {"send": "Ctrl+7"}, {"no such": "F3"}, {"fold": ""}])
def test_whatever_a_file_says_there_are_keys(own: dict[str, str]) -> None:
    shortcuts.choose(own)
    assert shortcuts.keys("fold") == "Ctrl+B"
    assert shortcuts.keys("send") == "Return"


def test_two_actions_with_the_same_keys_in_a_file_leave_one(tmp_path: Path) -> None:
    shortcuts.choose({"fold": "F3", "palette": "F3"})
    assert (shortcuts.keys("fold"), shortcuts.keys("palette")) == ("F3", "Ctrl+K")
