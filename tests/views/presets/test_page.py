"""The Presets page: the list, its editor with form and YAML, and what other pages bring."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QTableView,
    QWidget,
)

from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import SavePreset
from sndr_gui.views.widgets.fields import NumberField
from tests.views.conftest import Stage
from tests.views.fakes.real_catalog import RealCatalog
from tests.views.presets.opened import MINE, checked, edited, page, save

NAMED = (QAbstractButton, QComboBox, QLineEdit, QPlainTextEdit, QTableView)


@pytest.mark.usefixtures("catalogue")
async def test_lists_ones_own_and_the_programs(stage: Stage) -> None:
    view = await page(stage)
    assert view.model.rows.total >= 30
    view.origins.buttons[1].click()
    assert view.model.rows.total == 0
    assert view.found.currentWidget() is view.empty
    assert "a variation of a shipped preset" in view.empty.sentence.text()
    view.filter.setText("no such preset")
    view.clear_filters.click()
    assert view.found.currentWidget() is view.table
    assert len(view.model.rows.shown) == view.model.rows.total >= 30
    view.filter.setText("no such preset")
    assert view.empty.sentence.text() == "No preset matches the search and the filters."
    view.filter.setText("demo llama")
    assert [row.id for row in view.model.rows.shown] == ["demo-llamacpp"]
    assert view.edit.text() == "View"
    assert not view.remove.isEnabled()


async def test_a_variation_is_made_saved_listed_and_its_save_undone(
    stage: Stage, catalogue: RealCatalog
) -> None:
    view = await page(stage)
    view.model.choose("demo-llamacpp")
    view.vary.click()
    editor = view.model.editor
    await checked(stage, view)
    assert (editor.target, editor.is_new, editor.dirty) == ("my-demo-llamacpp", True, True)
    await stage.until(lambda: "settings.context" in view.pane.fields.cells)
    context = view.pane.fields.cells["settings.context"].control
    assert isinstance(context, NumberField)
    assert context.edit.placeholderText() == "8192  ·  from preset"
    QTest.keyClicks(context.edit, "4096")
    await stage.until(lambda: "context: 4096" in view.pane.yaml.toPlainText())
    await checked(stage, view)
    assert editor.command.endswith("--set context=4096")
    await save(stage, view)
    file = catalogue.own / "my-demo-llamacpp.yaml"
    assert "context: 4096" in file.read_text()
    await stage.until(lambda: view.model.item("my-demo-llamacpp") is not None)
    await stage.until(lambda: view.subtitle.text().startswith("own preset, saved"))
    view.pane.undo_save.click()
    await stage.until(lambda: not file.exists() and editor.dirty)
    assert editor.is_new


@pytest.mark.usefixtures("catalogue")
async def test_a_shipped_preset_is_read_only_and_says_what_it_resolves_to(stage: Stage) -> None:
    view = await page(stage)
    view.model.open("qwen3.6-27b-k8v4-2x24")
    await stage.until(lambda: view.model.editor.resolved is not None)
    assert view.model.editor.read_only
    assert view.pane.yaml.isReadOnly()
    assert view.model.editor.faults == ()
    assert view.pane.settings.isVisible()
    rows = {one.name: one for one in view.pane.setting_rows.shown}
    assert rows["context"].value == 262144
    assert rows["context"].over[0].layer.value == "engine default"
    assert view.pane.vary.isVisible()
    view.pane.leave()
    assert view.stack.currentWidget() is view.list


async def test_removing_can_be_undone(stage: Stage, catalogue: RealCatalog) -> None:
    view = await edited(stage)
    view.pane.remove.click()
    file = catalogue.own / "mine.yaml"
    await stage.until(lambda: not file.exists() and not view.model.editor.is_open)
    await stage.until(lambda: view.model.item("mine") is None)
    await stage.until(lambda: "preset removed" in [notice.key for notice in stage.window.toasts.shown])
    notice = next(notice for notice in stage.window.toasts.shown if notice.key == "preset removed")
    assert notice.action is not None
    notice.action()
    await stage.until(lambda: file.is_file() and file.read_text() == MINE)
    await stage.until(lambda: view.model.item("mine") is not None)


@pytest.mark.usefixtures("catalogue")
async def test_other_pages_bring_a_preset_to_its_editor(stage: Stage) -> None:
    stage.pages.open_preset("demo-llamacpp")
    editor = stage.pages.presets.editor
    await stage.until(lambda: editor.is_open)
    assert (stage.window.current, editor.target, editor.is_new) == ("presets", "my-demo-llamacpp", True)
    await checked(stage, await page(stage))
    await stage.session.client.call(ops.SAVE_PRESET, SavePreset(text=MINE), id="mine")
    await stage.until(lambda: stage.pages.presets.item("mine") is not None)
    stage.pages.open_preset("mine")
    await stage.until(lambda: editor.id == "mine")
    # What was not saved of the other one is kept.
    assert stage.pages.presets.drafts.get("my-demo-llamacpp") is not None
    view = await page(stage)
    view.pane.fit.click()
    assert stage.window.current == "fit"
    assert stage.pages.fit.form.preset == "mine"


@pytest.mark.usefixtures("catalogue")
async def test_every_control_has_a_name_in_both_sizes(stage: Stage) -> None:
    view = await edited(stage)
    for size in ((1280, 820), (900, 600)):
        stage.window.resize(*size)
        await checked(stage, view)
        for widget in view.findChildren(QWidget):
            inner = widget.objectName().startswith("qt_") or widget.parent() is None
            if isinstance(widget, NAMED) and widget.isVisibleTo(view) and not inner:
                found = QAccessible.queryAccessibleInterface(widget)
                name = found.text(QAccessible.Text.Name)
                assert name, f"{type(widget).__name__} in {type(widget.parent()).__name__}"
        pane = view.pane
        right = max(button.geometry().right() for button in (pane.save, pane.discard, pane.fit))
        assert right <= pane.width()


@pytest.mark.usefixtures("catalogue")
async def test_the_keyboard_opens_and_leaves(stage: Stage) -> None:
    view = await page(stage)
    view.table.setFocus()
    QTest.keyClick(view.table, Qt.Key.Key_Return)
    await stage.until(lambda: view.model.editor.is_open)
    await stage.until(lambda: view.model.editor.resolved is not None)
    stage.window.palette_box.open()
    QTest.keyClick(stage.window.palette_box.edit, Qt.Key.Key_Escape)
    assert view.model.editor.is_open, "Esc closed what lay over the page"
    view.pane.yaml.setFocus()
    QTest.keyClick(view.pane.yaml, Qt.Key.Key_Escape)
    assert not view.model.editor.is_open


@pytest.mark.usefixtures("catalogue")
async def test_back_leaves_the_editor_and_then_the_page(stage: Stage) -> None:
    first = stage.window.current
    view = await page(stage)
    view.table.setFocus()
    QTest.keyClick(view.table, Qt.Key.Key_Return)
    await stage.until(lambda: view.model.editor.resolved is not None)
    stage.window.go_back()
    assert (view.model.editor.is_open, stage.window.current) == (False, "presets")
    stage.window.go_back()
    assert stage.window.current == first != "presets"
