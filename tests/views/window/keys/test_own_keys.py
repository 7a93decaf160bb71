"""Keys that the person chose: at once, at the next start, never two actions with the same, and back again."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from engine_host.protocol.engines import EngineState
from sndr_gui.host.notices import Notices
from sndr_gui.kit import shortcuts
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.views.widgets.labels import Paragraph
from sndr_gui.views.window.main import Window
from sndr_gui.views.window.pages import PAGES, page_entry
from sndr_gui.views.window.shortcut_sheet import ShortcutSheet
from tests.views.conftest import Stage
from tests.views.presets.opened import dialog
from tests.views.samples import host as samples

OWN = {
    "filter": "Ctrl+Alt+F",
    "relaunch": "Ctrl+Alt+R",
    "start": "Ctrl+Alt+G",
    "save": "Ctrl+Alt+S",
    "history": "Ctrl+Alt+J",
    "compare": "Ctrl+Alt+M",
}


@pytest.fixture(autouse=True)
def usual_keys() -> Iterator[None]:
    """Each test begins, and leaves the others, with the usual keys."""
    shortcuts.choose({})
    yield
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


async def test_what_a_page_says_has_the_chosen_keys_also_after_its_next_refresh(
    stage: Stage, qtbot: QtBot
) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.running)
    for page in PAGES:
        stage.window.go(page.name)
    stage.window.go("chat")
    await front(stage, qtbot)
    sheet = opened_at(stage, shortcuts.SHORTCUTS["filter"].does)
    for name, pressed in OWN.items():
        does = shortcuts.SHORTCUTS[name].does
        place = next(number for number, line in enumerate(sheet.rows.shown) if line.does == does)
        sheet.table.setCurrentIndex(sheet.rows.index(place, 0))
        QTest.keySequence(sheet.editor.field, QKeySequence(pressed))
    assert stage.file.current.keys == OWN
    sheet.close_button.click()
    await front(stage, qtbot)
    assert any(said.startswith("Ctrl+Alt+J earlier") for said in told(stage.window.page))
    stage.host.set_engine(samples.engine(EngineState.FAILED))
    await stage.until(lambda: not stage.state.running)
    assert_pages_name_the_chosen_keys(stage)


async def test_pages_that_are_made_after_the_next_start_name_the_chosen_keys(stage: Stage) -> None:
    shortcuts.choose(OWN)
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.running)
    assert_pages_name_the_chosen_keys(stage)


def assert_pages_name_the_chosen_keys(stage: Stage) -> None:
    usual = [shortcuts.SHORTCUTS[name].keys for name in OWN]
    found = set()
    for page in PAGES:
        stage.window.go(page.name)
        for said in told(stage.window.page):
            assert not any(re.search(rf"{re.escape(key)}(?!\w)", said) for key in usual), said
            found |= {name for name, key in OWN.items() if key in said}
    assert found == OWN.keys()


def told(page: QWidget) -> list[str]:
    """What the controls of a page say: tooltips, placeholders and paragraphs."""
    return [
        *(part.toolTip() for part in page.findChildren(QWidget)),
        *(part.placeholderText() for part in page.findChildren(QLineEdit)),
        *(part.text() for part in page.findChildren(Paragraph)),
    ]


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
