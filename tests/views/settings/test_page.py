"""The page of settings: setting, resetting, where a value comes from, and a refusal at its row."""

import asyncio
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit

from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import SettingsChangedEvent
from sndr_gui.kit import theme
from sndr_gui.kit.look.choices import Accent, Density, Look, Motion, ThemeChoice
from sndr_gui.kit.look.colours import STRONG_DARK, with_accent
from sndr_gui.kit.look.level import Level
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.models.settings.entries import ENTRIES, EXPERT
from sndr_gui.models.settings.look import window_entry
from sndr_gui.views.home.page import HomeView
from sndr_gui.views.launch.page import LaunchView
from sndr_gui.views.settings.page import SettingsView
from tests.views.conftest import Stage
from tests.views.samples import host as samples


def settings(stage: Stage) -> SettingsView:
    stage.window.go("settings")
    page = stage.window.page
    assert isinstance(page, SettingsView)
    return page


async def test_settings_set_reset_and_provenance(stage: Stage) -> None:
    page = settings(stage)

    def last() -> dict[str, Any]:
        body: dict[str, Any] = stage.host.sent("PUT", "/v1/settings")[-1]
        return body

    port = page._rows["endpoint.port"].control
    assert isinstance(port, QLineEdit)
    port.setFocus()
    port.selectAll()
    QTest.keyClicks(port, "9000")
    stage.host.settings = samples.settings(endpoint__port=9000)
    QTest.keyClick(port, Qt.Key.Key_Return)
    await stage.until(lambda: stage.host.sent("PUT", "/v1/settings"))
    assert last()["values"] == {"endpoint.port": 9000}
    await stage.until(lambda: page.model.provenance("endpoint.port") == "set by you")
    for said in (port, page._rows["endpoint.port"]._label):
        assert said.toolTip().endswith("sndr settings set endpoint.port 9000"), "the value of now"
    reset = page._rows["endpoint.port"]._reset
    await stage.until(reset.isEnabled)
    QTest.mouseClick(reset, Qt.MouseButton.LeftButton)
    await stage.until(
        lambda: stage.host.sent("PUT", "/v1/settings")[-1] == {"values": {"endpoint.port": None}}
    )
    switch = page._rows["engine.keep"].control
    assert isinstance(switch, QCheckBox)
    switch.click()
    await stage.until(lambda: last()["values"] == {"engine.keep": True})


async def test_settings_name_choices_as_the_other_pages_do(stage: Stage) -> None:
    page = settings(stage)
    await stage.until(lambda: page._rows)
    server = page._rows["engine.server"].control
    assert isinstance(server, QComboBox)
    assert [server.itemText(place) for place in range(2)] == ["Automatic", "Built here"]
    assert server.itemData(0) == "auto"
    own = page._rows["engine.own_server"].control
    assert isinstance(own, QLineEdit)
    assert own.placeholderText().startswith("none")


async def test_settings_refused_value_is_told_at_its_row(stage: Stage) -> None:
    page = settings(stage)
    problem = Problem(reason=Reason.SETTING_INVALID, message="Port 0 is no port.")
    stage.host.refuse["/v1/settings"] = problem
    page.model.put("endpoint.port", 0)
    row = page._rows["endpoint.port"]
    await stage.until(lambda: row._problem is not None and row._problem.isVisible())
    assert row._problem is not None
    assert row._problem._what.text() == "Port 0 is no port."


async def test_settings_follow_changes_made_elsewhere(stage: Stage) -> None:
    page = settings(stage)
    stage.host.settings = samples.settings(engine__streams=2)
    stage.host.publish(SettingsChangedEvent(names=("engine.streams",)))
    control = page._rows["engine.streams"].control
    assert isinstance(control, QLineEdit)
    await stage.until(lambda: control.text() == "2")
    await asyncio.sleep(0.05)


async def test_the_look_changes_at_a_click_and_is_kept(stage: Stage) -> None:
    page = settings(stage)
    look = page.look
    try:
        for name, place in (("theme", 3), ("accent", 2), ("density", 1), ("motion", 1)):
            button = look.controls[name].buttons[place]
            assert button.accessibleName().startswith(f"{window_entry(name).label}: ")
            button.click()
        assert theme.current() is with_accent(STRONG_DARK, Accent.TEAL)
        assert theme.compact()
        assert QGuiApplication.styleHints().cursorFlashTime() == 0
        kept = SettingsFile(stage.file.folder / "window.json").current
        assert kept.look == Look(ThemeChoice.HIGH_CONTRAST, Accent.TEAL, Density.COMPACT, Motion.REDUCED)
        look.scale.setCurrentIndex(look.scale.findData(150))
        look.scale.activated.emit(look.scale.currentIndex())
        assert look.scale_said.text() == "100 % now; 150 % from the next start."
        assert look.sized.font().pixelSize() == round(13 * 1.5)
        # An edge around every control that has words or a value.
        for control in (page.window_card.welcome, look.scale, look.controls["theme"].buttons[0]):
            edge = control.grab().toImage().pixelColor(control.width() // 2, 0)
            assert edge.lightness() > 150, control.accessibleName()
    finally:
        theme.wear(Look(ThemeChoice.LIGHT))
    assert QGuiApplication.styleHints().cursorFlashTime() > 0


async def test_settings_are_searched_and_the_simple_level_has_fewer(stage: Stage) -> None:
    page = settings(stage)
    await stage.until(lambda: page._rows)

    def shown() -> set[str]:
        return {name for name, line in page._rows.items() if not line.isHidden()}

    every = set(page._rows)
    assert shown() == every
    QTest.keySequence(stage.window, QKeySequence("Ctrl+F"))
    assert page.filter.hasFocus()
    QTest.keyClicks(page.filter, "port endpoint")
    assert "endpoint.port" in shown()
    assert shown() < every
    assert page.look.isHidden()
    assert not page.none.isVisible()
    page.filter.setText("nothing has these words")
    assert not shown()
    assert page.none.isVisible()
    # What the palette leads to is shown whatever is searched.
    stage.pages.show_setting("endpoint.port")
    assert page.filter.text() == ""
    assert shown() == every
    stage.window.go("launch")
    launch = stage.window.page
    assert isinstance(launch, LaunchView)
    await stage.until(lambda: launch.model.subject is not None and not launch.form.isHidden())
    stage.window.go("home")
    home = stage.window.page
    assert isinstance(home, HomeView)
    assert not home.servers.isHidden()
    stage.window.go("settings")
    page.level.buttons[0].click()
    assert stage.file.current.level is Level.SIMPLE
    assert shown() == every - EXPERT
    assert launch.form.isHidden()
    assert home.servers.isHidden()
    page.filter.setText("own llama-server")
    assert shown() == {"engine.own_server"} & every
    page.filter.clear()
    stage.pages.show_setting("endpoint.host")
    assert "endpoint.host" in shown()
    page.level.buttons[1].click()
    assert shown() == every


def test_what_the_simple_level_leaves_out_is_there() -> None:
    assert {entry.name for entry in ENTRIES} > EXPERT
