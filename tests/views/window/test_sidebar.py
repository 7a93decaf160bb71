"""The sidebar: groups of pages, folded to icons by button, keys and palette, and kept so."""

from dataclasses import replace
from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFrame
from pytestqt.qtbot import QtBot

from sndr_gui.kit.settings import SettingsFile
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.window.context import PageContext
from sndr_gui.views.window.main import Window
from sndr_gui.views.window.pages import GROUPS, PAGES, page_entry
from tests.views.conftest import Stage


def test_the_first_ten_pages_have_the_digits_in_order() -> None:
    assert [page.shortcut for page in PAGES[:10]] == [f"Ctrl+{digit}" for digit in "1234567890"]
    assert len({QKeySequence(page.shortcut).toString() for page in PAGES}) == len(PAGES)


async def test_a_line_is_between_groups_and_nowhere_else(stage: Stage) -> None:
    sidebar = stage.window.sidebar
    lines = sorted(line.y() for line in sidebar.findChildren(QFrame, "rule"))
    places = [[sidebar.buttons[page.name].y() for page in group.pages] for group in GROUPS]
    assert len(lines) == len(GROUPS) - 1
    for above, line, below in zip(places, lines, places[1:], strict=False):
        assert max(above) < line < min(below)


async def test_folding_leaves_icons_that_are_named(stage: Stage, qtbot: QtBot) -> None:
    sidebar = stage.window.sidebar
    wide = sidebar.width()
    with qtbot.waitActive(stage.window):
        stage.window.activateWindow()
    QTest.keySequence(stage.window, QKeySequence("Ctrl+B"))
    assert sidebar.width() < wide / 3
    for group in GROUPS:
        for page in group.pages:
            button = sidebar.buttons[page.name]
            assert (button.text(), button.icon().isNull()) == ("", False)
            assert (button.accessibleName(), button.accessibleDescription()) == (page.title, group.title)
            keys = QKeySequence(page.shortcut).toString(QKeySequence.SequenceFormat.NativeText)
            assert button.toolTip() == f"{group.title}: {page.title}  ({keys})"
    QTest.mouseClick(sidebar.buttons["logs"], Qt.MouseButton.LeftButton)
    assert stage.window.current == "logs"
    assert sidebar.fold.accessibleName() == "Unfold the sidebar"
    sidebar.fold.setFocus()
    QTest.keyClick(sidebar.fold, Qt.Key.Key_Space)
    assert sidebar.width() == wide
    assert sidebar.buttons["logs"].text().strip() == "Logs"
    assert sidebar.buttons["logs"].toolTip().startswith("Logs  (")
    assert sidebar.fold.accessibleName() == "Fold the sidebar"


async def test_the_palette_folds_it(stage: Stage) -> None:
    palette = stage.window.palette_box
    for said in ("fold the sidebar", "unfold the sidebar"):
        palette.open()
        QTest.keyClicks(palette.edit, said)
        assert palette.list.item(0).text().casefold() == said
        QTest.keyClick(palette.edit, Qt.Key.Key_Return)
        assert stage.window.sidebar.folded is (said == "fold the sidebar")


async def test_a_folded_sidebar_is_folded_at_the_next_start(stage: Stage) -> None:
    stage.window.sidebar.fold.click()
    file = SettingsFile(stage.file.folder / "window.json")
    assert file.current.sidebar_folded
    again = Window(file, stage.notices)
    assert again.sidebar.folded
    assert again.sidebar.buttons["home"].text() == ""
    again.deleteLater()


@pytest.mark.parametrize("folded", [False, True])
async def test_no_button_is_cut_off_in_the_lowest_window(stage: Stage, folded: bool) -> None:
    sidebar = stage.window.sidebar
    sidebar.set_folded(folded)
    stage.window.resize(900, 600)
    stage.window.grab()
    assert stage.window.height() == 600
    rows = [*sidebar.buttons.values(), sidebar.fold]
    for above, below in pairwise(rows):
        assert above.geometry().bottom() < below.geometry().top()
    assert all(row.height() >= row.iconSize().height() for row in rows)
    assert rows[-1].geometry().bottom() < sidebar.height()


async def test_a_folder_that_cannot_be_written_is_told_and_it_folds_all_the_same(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_settings: object) -> None:
        raise OSError("read-only file system")

    monkeypatch.setattr(stage.file, "write", refuse)
    before = replace(stage.file.current)
    stage.window.sidebar.fold.click()
    assert stage.window.sidebar.folded
    assert stage.file.current == before
    assert "read-only file system" in stage.window.toasts.shown[-1].text


async def test_no_entry_moves_where_the_choice_of_host_comes(stage: Stage) -> None:
    sidebar, choice = stage.window.sidebar, stage.window.host_choice
    choice.setVisible(False)
    await stage.until(lambda: not choice.isVisible())
    before = sidebar.buttons["home"].y()
    choice.setVisible(True)
    await stage.until(lambda: choice.isVisible() and choice.box.height() > 20)
    assert sidebar.buttons["home"].y() == before
    assert choice.box.height() == choice.box.sizeHint().height()


async def test_a_page_that_takes_time_shows_its_place_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, seen = page_entry("patches"), []
    tops: list[int] = []
    colours: set[str] = set()
    window = stage.window

    def build(context: PageContext) -> Page:
        # As painted while the page is made: the title of its place over the page before.
        above = window._stack.childAt(window._stack.rect().center())
        while above is not None and not isinstance(above, Page):
            above = above.parentWidget()
        assert isinstance(above, Page)
        seen.append((above.title.text(), window.sidebar.buttons["patches"].isChecked()))
        tops.append(above.title.mapTo(window._stack, QPoint()).y())
        drawn = window._stack.grab(window._stack.rect().adjusted(0, 80, 0, 0)).toImage()
        middle = drawn.width() // 2
        colours.update(drawn.pixelColor(middle, y).name() for y in range(drawn.height()))
        return entry.build(context)

    monkeypatch.setattr("sndr_gui.views.window.main.page_entry", lambda name: replace(entry, build=build))
    window.go("patches")
    assert seen == [(entry.title, True)]
    assert tops == [window.page.title.mapTo(window._stack, QPoint()).y()], "where it stays"
    assert len(colours) == 1, "nothing of the page before shines through"
    assert window._stack.currentWidget() is window.page
    assert window._stack._cover is None, "the page itself is in front"
