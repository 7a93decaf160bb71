"""Form and YAML of a preset beside each other: kept in step, checked, and left as they were typed."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QLineEdit,
)

from sndr_gui.views.widgets.fields import ChoiceBox, NumberField
from tests.views.conftest import Stage
from tests.views.fakes.real_catalog import RealCatalog
from tests.views.presets.opened import MINE, checked, edited, page, save


@pytest.mark.usefixtures("catalogue")
async def test_form_and_yaml_are_kept_in_step_and_comments_stay(stage: Stage) -> None:
    view = await edited(stage)
    editor, fields, yaml = view.model.editor, view.pane.fields, view.pane.yaml
    context = fields.cells["settings.context"]
    assert context.content == "4096"
    assert context._note.text() == "inherited: 8192, from preset"
    editor.set_value(("settings", "streams"), 2)
    await stage.until(lambda: "streams: 2" in yaml.toPlainText())
    assert "# enough" in yaml.toPlainText()
    yaml.selectAll()
    yaml.insertPlainText(MINE.replace("4096", "2048"))
    await checked(stage, view)
    assert context.content == "2048"
    assert fields.cells["settings.streams"].content == ""
    # A change by the form can be taken back in the text.
    editor.set_value(("settings", "context"), None)
    await stage.until(lambda: "context" not in yaml.toPlainText())
    yaml.undo()
    assert yaml.toPlainText() == MINE.replace("4096", "2048")
    await checked(stage, view)
    assert context.content == "2048"


@pytest.mark.usefixtures("catalogue")
async def test_choices_flags_and_lists_reach_the_text(stage: Stage) -> None:
    view = await edited(stage)
    cells = view.pane.fields.cells
    attention, profile = cells["settings.flash_attention"].control, cells["profile"].control
    assert isinstance(attention, ChoiceBox)
    assert isinstance(profile, ChoiceBox)
    assert profile.itemText(0) == "latency  ·  from the original"
    attention.setCurrentIndex(attention.findData("on"))
    attention.activated.emit(attention.currentIndex())
    words = cells["settings.extra_arguments"].control
    assert isinstance(words, QLineEdit)
    QTest.keyClicks(words, "--no-warmup, --mlock")
    QTest.keyClick(words, Qt.Key.Key_Return)
    await stage.until(lambda: "--mlock" in view.model.editor.text)
    await checked(stage, view)
    data = view.model.editor.data
    assert data is not None
    assert data["settings"]["flash_attention"] == "on"
    assert data["settings"]["extra_arguments"] == ["--no-warmup", "--mlock"]
    assert "settings.kv_cache_dtype" not in cells


@pytest.mark.usefixtures("catalogue")
async def test_what_is_wrong_is_marked_at_its_line_and_cannot_be_saved(stage: Stage) -> None:
    view = await edited(stage)
    yaml = view.pane.yaml
    yaml.selectAll()
    yaml.insertPlainText(MINE.replace("context", "contxt"))
    await checked(stage, view)
    assert [(fault.line, fault.key) for fault in view.model.editor.faults] == [(6, "settings.contxt")]
    assert 6 in yaml._marks
    assert not view.pane.save.isEnabled()
    assert view.pane.faults.isVisible()
    view.pane.faults.selectRow(0)
    assert yaml.textCursor().blockNumber() == 5
    yaml.selectAll()
    yaml.insertPlainText("id: [")
    await checked(stage, view)
    assert view.model.editor.data is None
    assert "not valid YAML" in view.pane.fields._hint.text()
    assert not view.pane.fields.cells["title"].isEnabled()


async def test_line_breaks_of_other_systems_are_no_change(stage: Stage, catalogue: RealCatalog) -> None:
    text = MINE.replace("\n", "\r\n")
    view = await edited(stage, text=text)
    editor, yaml = view.model.editor, view.pane.yaml
    assert not editor.dirty
    yaml.moveCursor(QTextCursor.MoveOperation.End)
    yaml.insertPlainText("  streams: 2\n")
    await checked(stage, view)
    assert editor.text == text + "  streams: 2\r\n"
    await save(stage, view)
    assert (catalogue.own / "mine.yaml").read_bytes() == (text + "  streams: 2\r\n").encode()


@pytest.mark.usefixtures("catalogue")
async def test_return_keeps_the_indentation(stage: Stage) -> None:
    view = await edited(stage)
    yaml = view.pane.yaml
    yaml.go_to(5)
    QTest.keyClick(yaml, Qt.Key.Key_Return)
    QTest.keyClicks(yaml, "streams: 2")
    QTest.keyClick(yaml, Qt.Key.Key_Return)
    QTest.keyClicks(yaml, "threads: 1")
    assert "settings:\n  streams: 2\n  threads: 1\n  context: 4096" in yaml.toPlainText()
    QTest.keyClick(yaml, Qt.Key.Key_Tab)
    assert not yaml.hasFocus()
    await checked(stage, view)
    assert view.model.editor.faults == ()


@pytest.mark.usefixtures("catalogue")
async def test_saving_keeps_the_focus_and_the_place_in_the_form(stage: Stage) -> None:
    view = await page(stage)
    view.model.choose("demo-llamacpp")
    view.vary.click()
    await checked(stage, view)
    await stage.until(lambda: "settings.threads" in view.pane.fields.cells)
    control = view.pane.fields.cells["settings.threads"].control
    assert isinstance(control, NumberField)
    control.edit.setFocus()
    QTest.keyClicks(control.edit, "3")
    await stage.until(lambda: "threads: 3" in view.pane.yaml.toPlainText())
    bar = view.pane._form_area.verticalScrollBar()
    place = bar.value()
    await save(stage, view)
    await stage.until(lambda: "id" not in view.pane.fields.cells and not view.pane.save.isEnabled())
    await checked(stage, view)
    assert view.pane.fields.cells["settings.threads"].control is control
    assert view.window().focusWidget() is control.edit
    assert abs(bar.value() - place) <= 80
    assert view.pane.fields.cell_of(control.edit) is view.pane.fields.cells["settings.threads"]


@pytest.mark.usefixtures("catalogue")
async def test_problems_are_whole_and_leave_the_field_that_is_typed_in_sight(stage: Stage) -> None:
    view = await edited(stage)
    pane = view.pane
    await stage.until(lambda: "settings.kv_type_v" in pane.fields.cells)
    assert not any(key.startswith("patches.") for key in pane.fields.cells)
    area = pane._form_area
    bar = area.verticalScrollBar()
    cell = pane.fields.cells["settings.context"]
    control = cell.control
    assert isinstance(control, NumberField)
    control.edit.setFocus()
    # At the lower end of what is seen, where the problems will be.
    bar.setValue(cell.mapTo(pane.fields, cell.rect().bottomLeft()).y() - area.viewport().height())
    control.edit.selectAll()
    QTest.keyClicks(control.edit, "9000000")
    await stage.until(lambda: bool(view.model.editor.faults))
    await checked(stage, view)
    assert pane.faults.isVisible()

    def in_sight() -> bool:
        top = control.mapTo(area.viewport(), control.rect().topLeft()).y()
        return top >= 0 and top + control.height() <= area.viewport().height()

    await stage.until(in_sight)
    metrics = pane.faults.fontMetrics()
    message = view.model.editor.faults[0].message
    lines = metrics.horizontalAdvance(message) // pane.faults.columnWidth(2) + 1
    assert pane.faults.rowHeight(0) >= lines * metrics.height()
