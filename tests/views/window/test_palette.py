"""The command palette over a window whose pages are built anew meanwhile."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from shiboken6 import delete

from sndr_gui.models.window.palette import Entry
from sndr_gui.views.window.commands import commands
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


def of_presets(stage: Stage) -> dict[str, Entry]:
    return {entry.title: entry for entry in commands(stage.pages) if entry.hint.startswith("preset")}


async def test_presets_are_started_only_where_they_can_be(stage: Stage) -> None:
    stage.window.go("launch")
    presets = stage.pages.launch.presets
    await stage.until(lambda: presets.verdicts is not None and presets.page is not None)
    fitting = {row.item.preset.title: row for row in presets.fitting}
    assert {row.ready for row in fitting.values()} == {True, False}
    found = of_presets(stage)
    assert set(found) == {f"{'Start' if row.ready else 'Show'} {title}" for title, row in fitting.items()}
    presets.set_filter("nothing has this in its name")
    assert set(of_presets(stage)) == set(found), "what the list is narrowed to is the list's matter"


async def test_presets_are_offered_as_soon_as_they_are_judged(stage: Stage) -> None:
    palette = stage.window.palette_box
    QTest.keyClick(stage.window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    assert palette.isVisible()
    assert of_presets(stage) == {}
    palette.list.setCurrentRow(2)
    chosen = palette.list.currentItem().text()
    await stage.until(lambda: of_presets(stage))
    shown = [palette.list.item(row).text() for row in range(palette.list.count())]
    assert set(of_presets(stage)) <= set(shown)
    assert palette.list.currentItem().text() == chosen


async def test_a_preset_that_lacks_something_is_shown_on_launch(stage: Stage) -> None:
    stage.window.go("launch")
    presets = stage.pages.launch.presets
    await stage.until(lambda: presets.verdicts is not None and presets.page is not None)
    row = next(row for row in presets.fitting if not row.ready)
    stage.window.go("home")
    entry = of_presets(stage)[f"Show {row.item.preset.title}"]
    assert entry.hint == "preset, not ready"
    entry.run()
    assert (stage.window.current, presets.chosen) == ("launch", row.item.preset.id)
    assert not stage.host.sent("POST", "/v1/engines")


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
