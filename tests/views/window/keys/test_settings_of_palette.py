"""Every setting that the page Settings has is reached from the palette."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from sndr_gui.kit.look.choices import Density, Motion
from sndr_gui.kit.settings import OnClose
from sndr_gui.models.settings.look import LOOK_ENTRIES, OWN_ENTRIES, window_entry
from sndr_gui.views.settings.line import OwnLine
from sndr_gui.views.settings.page import SettingsView
from sndr_gui.views.settings.row import SettingRow
from sndr_gui.views.window.commands import commands
from tests.views.conftest import Stage

OWN = tuple(entry.name for entry in (*LOOK_ENTRIES, *OWN_ENTRIES))


def run(stage: Stage, typed: str) -> None:
    palette = stage.window.palette_box
    palette.open()
    QTest.keyClicks(palette.edit, typed)
    QTest.keyClick(palette.edit, Qt.Key.Key_Return)


def settings(stage: Stage) -> SettingsView:
    page = stage.window.page
    assert isinstance(page, SettingsView)
    return page


async def test_each_line_of_settings_is_a_row_of_it(stage: Stage) -> None:
    stage.window.go("settings")
    page = settings(stage)
    lines = {line.entry.name for line in page.findChildren(OwnLine)}
    lines |= {line._entry.name for line in page.findChildren(SettingRow)}
    assert lines
    found = {
        entry.key.partition(" ")[2] for entry in commands(stage.pages) if entry.key.startswith("setting")
    }
    assert found == lines
    assert set(OWN) <= lines


@pytest.mark.parametrize("name", OWN)
async def test_a_setting_of_the_window_is_brought_into_sight(stage: Stage, name: str) -> None:
    stage.window.resize(900, 640)
    run(stage, f"setting: {window_entry(name).label}")
    page = settings(stage)
    line = page._own[name]
    focused: QWidget | None = stage.window.focusWidget()
    assert focused is line.control or not line.control.isEnabled()
    assert line.visibleRegion().boundingRect().height() == line.height(), "it was scrolled to"


async def test_a_language_is_chosen_and_the_page_says_from_when_on(stage: Stage) -> None:
    run(stage, "language deutsch")
    assert stage.file.current.language == "de"
    assert settings(stage).look.language_said.text() == "From the next start."
    run(stage, "sprache english")
    assert stage.file.current.language == "en", "whoever cannot read the language of now"
    run(stage, "zoom 125")
    assert stage.file.current.scale == 125


async def test_choices_hold_at_once(stage: Stage) -> None:
    run(stage, "density compact")
    run(stage, "reduced animation")
    run(stage, "engines closing keep running")
    run(stage, "conversations off")
    now = stage.file.current
    assert (now.density, now.motion, now.on_close) == (Density.COMPACT, Motion.REDUCED, OnClose.KEEP)
    assert not now.keep_chats
    chosen = {entry.title for entry in commands(stage.pages) if entry.hint == "chosen"}
    assert {"Density: compact", "Motion: reduced", "Keep conversations: switched off"} <= chosen
    stage.pages.settings.set_own("density", Density.COMFORTABLE)


async def test_the_command_that_does_the_same_is_shown(stage: Stage) -> None:
    palette = stage.window.palette_box
    palette.open()
    QTest.keyClicks(palette.edit, "setting port")
    assert palette.list.currentItem().text() == "Setting: Port"
    assert palette.foot.text().startswith("sndr settings set endpoint.port ")
    QTest.keyClicks(palette.edit, "qqq")
    assert palette.foot.text() == "Enter runs it, Esc closes"
