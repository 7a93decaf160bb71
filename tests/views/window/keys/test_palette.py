"""The command palette over a window whose pages are built anew meanwhile."""

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPointF, Qt
from PySide6.QtGui import QFont, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from shiboken6 import delete

from engine_host.protocol.endpoint.routes import RouteTargets
from engine_host.protocol.engines import EngineState
from engine_host.protocol.language import install
from sndr_gui.kit.look.choices import ThemeChoice
from sndr_gui.kit.settings import LONGEST_RECENT, MOST_RECENT, SettingsFile, WindowSettings
from sndr_gui.models.launch.presets import LaunchPresets
from sndr_gui.models.window import fuzzy
from sndr_gui.models.window.palette import Entry
from sndr_gui.views.patches.page import PatchesView
from sndr_gui.views.routes.page import RoutesView
from sndr_gui.views.settings.page import SettingsView
from sndr_gui.views.window.commands import commands
from sndr_gui.views.window.palette import Palette, title_line
from tests.views.conftest import Stage
from tests.views.samples import host as samples
from tests.views.samples import routes as route_samples

TO_A = RouteTargets(engines=("a",))


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


def of_presets(stage: Stage) -> dict[str, Entry]:
    return {entry.title: entry for entry in commands(stage.pages) if entry.hint.startswith("preset")}


async def judged(stage: Stage) -> LaunchPresets:
    stage.window.go("launch")
    presets = stage.pages.launch.presets
    await stage.until(lambda: presets.verdicts is not None and presets.page is not None)
    return presets


async def test_the_demo_is_offered_as_home_offers_it(stage: Stage) -> None:
    def offered() -> bool:
        return any(entry.title == "Start the demo model" for entry in commands(stage.pages))

    await stage.until(lambda: stage.pages.home.actions.demo_model() is not None)
    assert offered() == (not stage.pages.session.state.live)
    stage.pages.session.state.engines = {}
    assert offered()
    stage.pages.session.state.models = None
    assert not offered()


async def test_presets_are_started_only_where_they_can_be(stage: Stage) -> None:
    presets = await judged(stage)
    fitting = {row.item.preset.title: row for row in presets.fitting}
    assert {row.ready for row in fitting.values()} == {True, False}
    found = of_presets(stage)
    ready = {f"Start {title}" for title, row in fitting.items() if row.ready}
    assert set(found) == ready | {f"Show {row.item.preset.title}" for row in presets.every}
    presets.set_filter("nothing has this in its name")
    assert set(of_presets(stage)) == set(found), "what the list is narrowed to is the list's matter"


async def test_presets_are_offered_as_soon_as_they_are_judged(stage: Stage) -> None:
    palette = stage.window.palette_box
    QTest.keyClick(stage.window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    assert palette.isVisible()
    assert of_presets(stage) == {}
    QTest.keyClicks(palette.edit, "start")
    QTest.keyClick(palette.edit, Qt.Key.Key_Down)
    chosen = palette.list.currentItem().text()
    await stage.until(lambda: any(title.startswith("Start") for title in of_presets(stage)))
    wanted = {title for title in of_presets(stage) if title.startswith("Start")}
    await stage.until(lambda: wanted <= set(shown(palette)))
    assert palette.list.currentItem().text() == chosen


async def test_a_preset_that_lacks_something_is_shown_on_launch(stage: Stage) -> None:
    presets = await judged(stage)
    row = next(row for row in presets.fitting if not row.ready)
    stage.window.go("home")
    entry = of_presets(stage)[f"Show {row.item.preset.title}"]
    assert entry.hint == "preset, not ready"
    entry.run()
    assert (stage.window.current, presets.chosen) == ("launch", row.item.preset.id)
    assert not stage.host.sent("POST", "/v1/engines")


async def test_the_state_of_a_preset_is_told_in_the_language_of_the_window(stage: Stage) -> None:
    presets = await judged(stage)
    key = next(f"preset {row.item.preset.id}" for row in presets.fitting if not row.ready)
    install("de")
    try:
        hints = {entry.key: entry.hint for entry in commands(stage.pages)}
    finally:
        install("en")
    assert hints[key] == "Preset, nicht bereit"


async def test_checkpoints_are_offered_only_where_vllm_is_installed(stage: Stage) -> None:
    page = stage.host.models
    checkpoint = page.models[0].model_copy(update={"id": "c", "name": "checkpoint", "format": "safetensors"})
    stage.state.models = page.model_copy(update={"models": (checkpoint,)})
    await stage.until(lambda: stage.pages.installations.page is not None)

    def offered() -> bool:
        return any(entry.title == "Start checkpoint" for entry in commands(stage.pages))

    assert offered() is (stage.pages.installations.resolve("") is not None)
    installations = stage.pages.installations.page
    assert installations is not None
    none = tuple(one.model_copy(update={"present": False}) for one in installations.installations)
    stage.pages.installations.page = installations.model_copy(update={"installations": none})
    assert not offered()
    one = (none[0].model_copy(update={"present": True}), *none[1:])
    stage.pages.installations.page = installations.model_copy(update={"installations": one})
    assert offered()


def shown(palette: Palette) -> list[str]:
    return [palette.list.item(row).text() for row in range(palette.list.count())]


def run(stage: Stage, typed: str) -> None:
    palette = stage.window.palette_box
    palette.open()
    QTest.keyClicks(palette.edit, typed)
    QTest.keyClick(palette.edit, Qt.Key.Key_Return)


async def test_the_recent_ones_stand_first_and_are_kept_with_the_window(stage: Stage, tmp_path: Path) -> None:
    run(stage, "monitor")
    run(stage, "theme dark")
    run(stage, "theme light")
    run(stage, "monitor")
    stage.window.palette_box.open()
    assert shown(stage.window.palette_box)[:4] == ["Monitor", "Theme: light", "Theme: dark", "Home"]
    kept = SettingsFile(tmp_path / "window.json").current.recent_commands
    assert kept == ("page monitor", "Theme: light", "Theme: dark")


@pytest.mark.parametrize("kept", ['"all"', "[1]", "{}"])
def test_recent_ones_that_are_none_are_refused(kept: str) -> None:
    with pytest.raises(ValueError, match="recent"):
        WindowSettings.parse(f'{{"recent_commands": {kept}}}')
    many = json.dumps({"recent_commands": ["n" * 10_000] * 500})
    read = WindowSettings.parse(many).recent_commands
    assert len(read) == MOST_RECENT
    assert len(read[0]) == LONGEST_RECENT


async def test_it_leads_to_a_setting(stage: Stage) -> None:
    stage.window.resize(900, 600)
    run(stage, "setting log level")
    page = stage.window.page
    assert isinstance(page, SettingsView)
    line = page._rows["host.log_level"]
    assert line.control.hasFocus()
    assert line.visibleRegion().boundingRect().height() == line.height(), "it was scrolled to"
    run(stage, "setting address")
    assert page._rows["endpoint.host"].control.hasFocus()


async def test_it_leads_to_a_patch_that_the_table_hides(stage: Stage) -> None:
    stage.window.go("patches")
    await stage.until(lambda: stage.pages.patches.page is not None)
    page = stage.window.page
    assert isinstance(page, PatchesView)
    page.filter.setText("nothing is called so")
    assert not page.model.rows.shown
    stage.window.go("home")
    patch = stage.host.patches.patches[-1]
    run(stage, f"patch {patch.title}")
    assert stage.window.current == "patches"
    chosen = page.model.rows.row_at(page.table.chosen)
    assert chosen is not None
    assert chosen.patch.id == patch.id


async def test_patches_are_read_when_it_is_opened(stage: Stage) -> None:
    palette = stage.window.palette_box
    QTest.keyClick(stage.window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(palette.edit, "patch")
    titles = {f"Patch: {patch.title}" for patch in stage.host.patches.patches}
    await stage.until(lambda: titles & set(shown(palette)))
    assert stage.window.current == "home"


async def test_it_leads_to_a_route_once_its_page_has_read_it(stage: Stage) -> None:
    stage.host.routes = {name: route_samples.route(name, TO_A) for name in ("big", "code", "small")}
    route = "small"
    QTest.keyClick(stage.window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    await stage.until(lambda: stage.pages.routes.routes)
    run(stage, f"route {route}")
    page = stage.window.page
    assert isinstance(page, RoutesView)
    assert page.cards[route].edit.hasFocus()


async def test_a_running_engine_is_gone_to_its_log_read_and_itself_stopped(stage: Stage) -> None:
    engine = samples.engine(EngineState.READY)
    stage.host.set_engine(engine)
    await stage.until(lambda: stage.state.running)
    run(stage, f"log of {engine.name}")
    assert (stage.window.current, stage.pages.logs.source) == ("logs", engine.id)
    run(stage, f"show {engine.name}")
    assert stage.window.current == "engine"
    run(stage, f"stop {engine.name}")
    await stage.until(lambda: stage.host.sent("DELETE", f"/v1/engines/{engine.id}"))
    await stage.until(lambda: not stage.pages.actions.pending(f"stop {engine.id}"))


async def test_pages_of_the_list_are_turned(stage: Stage) -> None:
    palette = stage.window.palette_box
    palette.open()
    QTest.keyClick(palette.edit, Qt.Key.Key_PageDown)
    assert palette.list.currentRow() == 8
    QTest.keyClick(palette.edit, Qt.Key.Key_PageUp)
    assert palette.list.currentRow() == 0
    QTest.keyClick(palette.edit, Qt.Key.Key_Up)
    assert palette.list.currentRow() == palette.list.count() - 1
    told = palette.edit.accessibleDescription()
    assert palette.list.currentItem().text() in told
    assert told.endswith(f"{palette.list.count()} of {palette.list.count()}")
    palette.edit.setText("qqqzzz")
    assert palette.count.text().startswith("0 of ")
    assert "Nothing has these letters" in palette.edit.accessibleDescription()


HOSTILE = (
    "\u202etxet neddih",
    "<b>bold</b> <img src='file:///etc/hostname'> &lt;",
    "m" * 10_000,
    "two\nlines\x00\x1b[0m\u2028and more",
    "\u05e9\u05dc\u05d5\u05dd model",
    "\U0001f680" * 300,
)


@pytest.mark.parametrize("theme_choice", [ThemeChoice.LIGHT, ThemeChoice.DARK])
async def test_hostile_names_are_drawn_in_their_line(stage: Stage, theme_choice: ThemeChoice) -> None:
    stage.pages.settings.set_theme(theme_choice)
    page = stage.host.models
    models = tuple(
        page.models[0].model_copy(update={"id": f"m{place}", "name": name})
        for place, name in enumerate(HOSTILE)
    )
    stage.state.set_models(page.model_copy(update={"models": models}))
    palette = stage.window.palette_box
    palette.open()
    height = palette.list.sizeHintForRow(0)
    for typed in ("start", "start m", "start <b", "\U0001f680", "start \u05dc\u05d5", "neddih"):
        palette.edit.setText(typed)
        palette.grab()
        assert palette.list.count()
        for row in range(palette.list.count()):
            assert "\n" not in palette.list.item(row).text()
            assert palette.list.sizeHintForRow(row) == height
        assert palette.list.horizontalScrollBar().maximum() == 0
    stage.pages.settings.set_theme(ThemeChoice.LIGHT)


@pytest.mark.parametrize(
    ("title", "typed"),
    [("Start Qwen3-Coder", "q3c"), ("\U0001f680\U0001f680 rocket", "rock"), ("m" * 160, "mmm")],
)
def test_the_letters_that_were_typed_are_bold(dressed: QApplication, title: str, typed: str) -> None:
    name = fuzzy.prepared(title)
    line = title_line(name.text, fuzzy.matched(name, typed), dressed.font(), 400)
    units = line.text().encode("utf-16-le")
    bold = b"".join(units[2 * one.start : 2 * (one.start + one.length)] for one in line.formats())
    assert bold.decode("utf-16-le").casefold() == typed
    assert all(one.format.fontWeight() == QFont.Weight.DemiBold for one in line.formats())
    assert line.boundingRect().width() <= 400
    assert line.text() == name.text or line.text().endswith("…")


async def test_what_cannot_be_done_yet_is_found_and_says_what_it_lacks(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(stage.pages.home), "can_build", property(lambda _home: True))
    monkeypatch.setattr(type(stage.pages.home), "can_measure", property(lambda _home: False))
    found = {entry.title: entry for entry in commands(stage.pages)}["Compare both servers"]
    assert found.hint == "Build the other server first."
    stage.window.go("logs")
    found.run()
    assert stage.window.current == "home"


async def test_a_click_beside_it_closes_it_also_on_what_takes_no_focus(stage: Stage) -> None:
    palette = stage.window.palette_box
    palette.open()

    def click(part: QWidget) -> None:
        # As it comes from the system: to the window, which hands it to the control below the pointer.
        spot = QPointF(part.mapTo(stage.window, part.rect().center()))
        left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        event = QMouseEvent(QEvent.Type.MouseButtonPress, spot, spot, left, left, none)
        QCoreApplication.sendEvent(stage.window.windowHandle(), event)

    click(palette.edit)
    assert palette.isVisible()
    click(stage.window.sidebar.buttons["logs"])
    assert not palette.isVisible()
