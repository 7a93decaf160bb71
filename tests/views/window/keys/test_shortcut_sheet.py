"""The sheet of shortcuts says what keys really do: it is compared with the keys of the window's controls."""

import ast
import re
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

import sndr_gui
from engine_host.protocol.engines import EngineState
from engine_host.protocol.language import install
from sndr_gui.kit.shortcuts import SHORTCUTS, is_fixed
from sndr_gui.views.window.pages import GROUPS, PAGES, page_entry
from sndr_gui.views.window.shortcut_sheet import EVERYWHERE, SheetRow, ShortcutSheet, sheet_rows
from tests.views.conftest import Stage
from tests.views.presets.opened import dialog
from tests.views.samples import host as samples

SOURCES = Path(sndr_gui.__file__).parent
KEYS = re.compile(r"(Ctrl|Alt|Shift|Meta)\+\S+")
# Keys of one control that has the focus: it reads them itself.
OF_A_CONTROL = {"Left", "Return", "Delete", "Down", "Up", "Esc", "Shift+Return"}


def native(pressed: str) -> str:
    return QKeySequence(pressed).toString(QKeySequence.SequenceFormat.NativeText)


def bound(widget: QWidget) -> set[str]:
    """The keys of a widget's shortcuts and buttons, besides those of single controls."""
    found = {one.key().toString() for one in widget.findChildren(QShortcut)}
    found |= {one.shortcut().toString() for one in widget.findChildren(QAbstractButton)}
    return found - OF_A_CONTROL - {"", "Del", "Enter"}


def of_table(page: str | None) -> set[str]:
    """The keys of a page, or those of every page, as the table has them."""
    there = (one for one in SHORTCUTS.values() if (page in one.pages if page else not one.pages))
    return {key for one in there for key in one.each}


def test_keys_are_named_in_the_tables_alone() -> None:
    tables = {SOURCES / "kit/shortcuts.py", SOURCES / "views/window/pages.py"}
    named = {
        f"{path.relative_to(SOURCES)}:{node.lineno}: {node.value}"
        for path in SOURCES.rglob("*.py")
        if path not in tables
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and KEYS.fullmatch(node.value)
    }
    assert not named


def test_no_sentence_has_the_keys_of_an_action_that_others_can_be_chosen_for() -> None:
    chosen = {one.keys for name, one in SHORTCUTS.items() if not is_fixed(name)}
    chosen |= {page.usual_keys for page in PAGES}
    named = {key: re.compile(rf"(?<![\w+]){re.escape(key)}(?![\w+])") for key in chosen if len(key) > 1}
    named["?"] = re.compile(r"\(\?\)")
    tables = {SOURCES / "kit/shortcuts.py", SOURCES / "views/window/pages.py"}
    told = {
        f"{path.relative_to(SOURCES)}:{node.lineno}: {key}"
        for path in SOURCES.rglob("*.py")
        if path not in tables
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for key, pattern in named.items()
        if pattern.search(node.value)
    }
    assert not told, "give them to the sentence as a value, {keys}"


def test_no_keys_do_two_things_in_one_place() -> None:
    for page in PAGES:
        there = [one for one in SHORTCUTS.values() if not one.pages or page.name in one.pages]
        pressed = [QKeySequence(key).toString() for one in there for key in one.each]
        pressed += [QKeySequence(one.shortcut).toString() for one in PAGES]
        assert len(pressed) == len(set(pressed)), page.name


def test_keys_that_do_the_same_are_told_in_the_language_of_the_window() -> None:
    wanted = [f"{native(one.keys)} oder {native(one.also)}" for one in SHORTCUTS.values() if one.also]
    install("de")
    try:
        told = [row.keys for row in sheet_rows("home")]
    finally:
        install("en")
    assert wanted
    assert set(wanted) <= set(told)


async def test_every_shortcut_of_the_window_is_in_the_table(stage: Stage) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.running)
    for page in PAGES:
        stage.window.go(page.name)
        told = of_table(page.name) - OF_A_CONTROL
        assert bound(stage.window.page) == told, page.name
    everywhere = of_table(None) | {page.shortcut for page in PAGES}
    of_pages = set().union(*(of_table(page.name) for page in PAGES))
    assert bound(stage.window) - of_pages == everywhere


@pytest.mark.parametrize("page", [page.name for page in PAGES])
def test_the_sheet_has_all_of_them_in_the_groups_of_the_sidebar(page: str) -> None:
    rows = sheet_rows(page)
    lines = [row for row in rows if not row.is_title]
    wanted = {" or ".join(map(native, one.each)) for one in SHORTCUTS.values()}
    assert {row.keys for row in lines} == wanted | {native(one.shortcut) for one in PAGES}
    assert len(lines) == len(SHORTCUTS) + len(PAGES), "each has one row"
    own = [one.does for one in SHORTCUTS.values() if page in one.pages]
    here = [f"On this page: {page_entry(page).title}"] if own else []
    assert [row.does for row in rows[1 : len(own) + 1]] == own
    assert [row.keys for row in rows if row.is_title] == [*here, EVERYWHERE, *(one.title for one in GROUPS)]
    for group in GROUPS:
        place = rows.index(SheetRow(group.title))
        first = rows[place + 1 : place + 1 + len(group.pages)]
        assert [row.does for row in first] == [f"Go to {one.title}" for one in group.pages]


def test_a_title_stands_above_what_was_found_alone() -> None:
    way = SheetRow(native(page_entry("logs").shortcut), "Go to Logs", EVERYWHERE)
    assert sheet_rows("home", "go to logs") == [SheetRow("Watch"), way]
    assert sheet_rows("home", "watch") == []


@pytest.mark.parametrize("pressed", SHORTCUTS["sheet"].each)
async def test_keys_open_it_and_it_is_filtered(stage: Stage, qtbot: QtBot, pressed: str) -> None:
    with qtbot.waitActive(stage.window):
        stage.window.activateWindow()
    QTest.keySequence(stage.window, QKeySequence(pressed))
    sheet = dialog(ShortcutSheet)
    assert len([row for row in sheet.rows.shown if not row.is_title]) == len(SHORTCUTS) + len(PAGES)
    QTest.keyClicks(sheet.filter, "palette nonsense")
    assert not sheet.rows.shown
    assert sheet.none.isVisible()
    sheet.filter.setText("chat message")
    assert [row.keys for row in sheet.rows.shown] == ["Use", native("Return")]
    assert not sheet.none.isVisible()
    for control in (sheet.filter, sheet.table, sheet.close_button):
        assert control.accessibleName()
        assert control.focusPolicy() & Qt.FocusPolicy.TabFocus
    QTest.keyClick(sheet, Qt.Key.Key_Escape)
    assert not sheet.isVisible()


async def test_a_question_mark_that_is_typed_stays_text(stage: Stage, qtbot: QtBot) -> None:
    with qtbot.waitActive(stage.window):
        stage.window.activateWindow()
    written = QPlainTextEdit(stage.window)
    written.show()
    written.setFocus()
    QTest.keyClicks(written, "why?")
    assert written.toPlainText() == "why?"
    assert not stage.window.findChildren(ShortcutSheet)


async def test_the_palette_opens_it(stage: Stage) -> None:
    palette = stage.window.palette_box
    palette.open()
    QTest.keyClicks(palette.edit, "shortcuts")
    QTest.keyClick(palette.edit, Qt.Key.Key_Return)
    dialog(ShortcutSheet).close_button.click()
