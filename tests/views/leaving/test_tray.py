"""The tray: what its menu does, that a desktop without one goes without, and the settings of the window."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from engine_host.client.at_login.window_entry import read_entry
from engine_host.protocol.engines import EngineState
from sndr_gui.models.settings.at_login import PresetAtLogin
from sndr_gui.views.leaving.tray import Tray
from sndr_gui.views.settings.page import SettingsView
from tests.views.conftest import Stage
from tests.views.samples import host as samples


def labels(tray: Tray) -> list[str]:
    tray.fill()
    return [one.text() for one in tray.menu.actions() if one.text()]


async def test_the_menu_says_what_runs_and_does_it(stage: Stage) -> None:
    shown: list[bool] = []
    tray = Tray(stage.window, stage.pages.home, lambda: shown.append(True), lambda: False)
    tray.set_wanted(True)
    assert not tray.shown, "there is none, and nothing is said"
    await stage.until(lambda: "Start the demo model" in labels(tray))
    assert labels(tray)[0] == "No engine runs"
    stage.host.set_engine(samples.engine(EngineState.READY, name="a&b <i>x</i>"))
    await stage.until(lambda: stage.state.live)
    said = labels(tray)
    assert said[0] == "a&&b <i>x</i>: running"
    assert "Start the demo model" not in said
    actions = {one.text(): one for one in tray.menu.actions()}
    actions["Copy the endpoint"].trigger()
    assert QGuiApplication.clipboard().text() == samples.endpoint().url
    actions["Stop a&&b <i>x</i>"].trigger()
    await stage.until(lambda: stage.host.sent("DELETE", "/v1/engines/engine-1"))
    actions["Show the window"].trigger()
    assert shown == [True]
    tray.set_wanted(False)


async def test_the_icon_comes_and_goes_with_its_setting(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("PySide6.QtWidgets.QSystemTrayIcon.show", lambda _icon: None)
    tray = Tray(stage.window, stage.pages.home, stage.window.show, lambda: True)
    tray.set_wanted(True)
    assert tray.shown
    assert tray.icon is not None
    assert "SNDR Control Center" in tray.icon.toolTip()
    tray.set_wanted(False)
    assert not tray.shown


async def test_the_window_starts_at_login_when_it_is_told_to(stage: Stage) -> None:
    stage.window.go("settings")
    page = stage.window.page
    assert isinstance(page, SettingsView)
    card = page.window_card
    assert not card.tray.isEnabled(), "there is none offscreen"
    assert not card.login.isChecked()
    assert not card.preset.isEnabled()
    QTest.mouseClick(card.login, Qt.MouseButton.LeftButton, pos=card.login.rect().center())
    assert read_entry().on
    assert card.preset.isEnabled()
    QTest.mouseClick(card.login, Qt.MouseButton.LeftButton, pos=card.login.rect().center())
    assert not read_entry().on
    path = read_entry().path
    path.write_text("[Desktop Entry]\nExec=mine\n", encoding="utf-8")
    QTest.mouseClick(card.login, Qt.MouseButton.LeftButton, pos=card.login.rect().center())
    assert "was not written by this program" in card.refusal.text()


async def test_the_preset_of_a_login_is_started_once(stage: Stage) -> None:
    starter = PresetAtLogin(stage.session, stage.pages.actions, ["--at-login", "--start-preset=demo"])
    stage.connection.changed.emit()
    stage.connection.changed.emit()
    await stage.until(lambda: stage.host.sent("POST", "/v1/plans"))
    assert [one["preset"] for one in stage.host.sent("POST", "/v1/plans")] == ["demo"]
    starter.deleteLater()
