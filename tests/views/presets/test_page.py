"""The Presets page over the real catalogue: list, form and YAML in step, saving, undo, drafts, conflicts."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QDialog,
    QLineEdit,
    QPlainTextEdit,
    QTableView,
    QWidget,
)

from engine_host.protocol.errors import Reason
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import EntryOrigin, SavePreset
from sndr_gui.models.presets.drafts import Draft, Drafts
from sndr_gui.views.presets.dialogs import CloseDialog, ImportDialog, SaveDialog
from sndr_gui.views.presets.page import PresetsView
from sndr_gui.views.widgets.fields import ChoiceBox, NumberField
from tests.views.conftest import Stage
from tests.views.fakes.real_catalog import RealCatalog

NAMED = (QAbstractButton, QComboBox, QLineEdit, QPlainTextEdit, QTableView)
Kind = TypeVar("Kind", bound=QDialog)
MINE = "format: 1\nid: mine\ntitle: Mine\nextends: demo-llamacpp\nsettings:\n  context: 4096  # enough\n"


@pytest.fixture
def catalogue(stage: Stage, tmp_path: Path) -> Iterator[RealCatalog]:
    """The real catalogue behind the host."""
    made = RealCatalog(stage, tmp_path / "host")
    yield made
    made.store.close()


async def page(stage: Stage) -> PresetsView:
    stage.window.go("presets")
    view = stage.window.page
    assert isinstance(view, PresetsView)
    await stage.until(lambda: view.model.page is not None and view.model.rows.total)
    return view


async def edited(stage: Stage, preset: str = "mine", text: str = MINE) -> PresetsView:
    """The editor of a preset of one's own that is saved."""
    view = await page(stage)
    await stage.session.client.call(ops.SAVE_PRESET, SavePreset(text=text), id=preset)
    await stage.until(lambda: view.model.item(preset) is not None)
    view.model.open(preset)
    await stage.until(lambda: view.model.editor.lint is not None and not view.model.editor.checking)
    return view


async def checked(stage: Stage, view: PresetsView) -> None:
    editor = view.model.editor
    await stage.until(
        lambda: not editor.checking and editor._edit_task is None and editor._check_task is None
    )


def dialog(kind: type[Kind]) -> Kind:
    """The open dialog of this kind."""
    return next(
        widget for widget in QApplication.topLevelWidgets() if isinstance(widget, kind) and widget.isVisible()
    )


async def save(stage: Stage, view: PresetsView) -> None:
    await checked(stage, view)
    view.pane.save.click()
    dialog(SaveDialog).save.click()
    await stage.until(lambda: not view.model.editor.dirty and not view.model.editor.saving)


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


@pytest.mark.usefixtures("catalogue")
async def test_leaving_with_changes_asks_and_a_draft_survives_the_window(stage: Stage) -> None:
    view = await edited(stage)
    editor = view.model.editor
    editor.set_value(("title",), "Other")
    await stage.until(lambda: editor.dirty)
    view.pane.leave()
    asked = dialog(CloseDialog)
    asked.keep.click()
    assert not editor.is_open
    assert next(row for row in view.model.rows.shown if row.id == "mine").kind == "own, draft"
    kept = Drafts(stage.file.folder / "preset-drafts.json").get("mine")
    assert kept is not None
    assert "title: Other" in kept.text
    view.model.open("mine")
    await stage.until(lambda: editor.restored is not None)
    assert "title: Other" in view.pane.yaml.toPlainText()
    view.pane.discard.click()
    await checked(stage, view)
    assert not editor.dirty
    assert Drafts(stage.file.folder / "preset-drafts.json").all == ()
    editor.set_value(("title",), "Third")
    await stage.until(lambda: editor.dirty)
    stage.window.deactivate()
    assert Drafts(stage.file.folder / "preset-drafts.json").get("mine") is not None


async def test_a_file_that_changed_meanwhile_is_shown_and_not_overwritten(
    stage: Stage, catalogue: RealCatalog
) -> None:
    view = await edited(stage)
    editor = view.model.editor
    file = catalogue.own / "mine.yaml"
    file.write_text(MINE.replace("Mine", "By hand"))
    editor.set_value(("settings", "context"), 2048)
    await stage.until(lambda: editor.dirty)
    await checked(stage, view)
    view.pane.save.click()
    dialog(SaveDialog).save.click()
    await stage.until(lambda: editor.conflict)
    assert "By hand" in file.read_text()
    assert editor.problem is not None
    assert editor.problem.reason is Reason.CONFLICT
    view.pane.compare.click()
    await stage.until(lambda: not editor.conflict and not editor.saving)
    await checked(stage, view)
    assert "-title: By hand" in editor.diff
    await save(stage, view)
    assert "title: Mine" in file.read_text()
    view.pane.undo_save.click()
    await stage.until(lambda: "By hand" in file.read_text())
    await stage.until(lambda: "By hand" in view.pane.yaml.toPlainText())


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


async def test_a_file_that_cannot_be_used_is_listed_and_mended(stage: Stage, catalogue: RealCatalog) -> None:
    catalogue.own.mkdir(parents=True)
    (catalogue.own / "broken.yaml").write_text(MINE.replace("mine", "broken").replace("context", "contxt"))
    view = await page(stage)
    broken = next(row for row in view.model.rows.shown if row.id == "broken")
    assert (broken.status, broken.own) == ("cannot be used", True)
    view.model.choose("broken")
    assert "line 6" in view.hint.text()
    view.remove.click()
    await stage.until(lambda: not (catalogue.own / "broken.yaml").exists())
    await stage.until(lambda: "preset removed" in [notice.key for notice in stage.window.toasts.shown])
    notice = next(notice for notice in stage.window.toasts.shown if notice.key == "preset removed")
    assert notice.action is not None
    notice.action()
    await checked(stage, view)
    assert view.model.editor.is_new
    assert "contxt" in view.pane.yaml.toPlainText()
    view.model.editor.leave(keep=False)
    (catalogue.own / "broken.yaml").write_text(MINE.replace("mine", "broken").replace("context", "contxt"))
    view.model.load()
    await stage.until(lambda: any(row.status == "cannot be used" for row in view.model.rows.shown))
    view.model.choose("broken")
    view.edit.click()
    editor = view.model.editor
    await stage.until(lambda: editor.lint is not None)
    assert [fault.line for fault in editor.faults] == [6]
    view.pane.yaml.selectAll()
    view.pane.yaml.insertPlainText(MINE.replace("mine", "broken"))
    await save(stage, view)
    await stage.until(lambda: view.model.item("broken") is not None)


async def test_exported_and_imported_with_the_choice_of_another_id(
    stage: Stage, catalogue: RealCatalog, tmp_path: Path
) -> None:
    view = await edited(stage)
    view.pane.leave()
    out = tmp_path / "my export.yaml"
    view.model.export("mine", str(out))
    await stage.until(out.is_file)
    await stage.until(lambda: out.read_text().startswith("sndr_preset"))
    (catalogue.own / "mine.yaml").write_text(MINE.replace("4096", "1024"))
    view.model.import_file(str(out))
    await stage.until(lambda: view.model.pending_import is not None)
    asked = dialog(ImportDialog)
    assert asked.name.text() == "mine-2"
    assert shlex.split(asked.equivalent_command.label.text()) == [
        "sndr",
        "presets",
        "import",
        str(out),
        "--as",
        "mine-2",
    ]
    assert asked.replace.isVisible()
    asked.rename.click()
    await stage.until(lambda: view.model.item("mine-2") is not None)
    assert "1024" in (catalogue.own / "mine.yaml").read_text()
    view.model.import_text("x.yaml", "not: a preset\n")
    await stage.until(
        lambda: view.model.pending_import is not None and not view.model.pending_import.conflict
    )
    dialog(ImportDialog).reject()
    assert view.model.pending_import is None


@pytest.mark.usefixtures("catalogue")
async def test_a_draft_of_a_preset_that_was_never_saved_is_listed(stage: Stage) -> None:
    view = await page(stage)
    view.model.drafts.keep(Draft("new-one", MINE.replace("mine", "new-one"), at=1.0))
    view.model.load()
    await stage.until(lambda: any(row.id == "new-one" for row in view.model.rows.shown))
    view.model.open("new-one")
    await checked(stage, view)
    assert view.model.editor.is_new
    assert view.model.editor.origin is EntryOrigin.USER
    view.pane.discard.click()
    assert not view.model.editor.is_open
    notice = next(notice for notice in stage.window.toasts.shown if notice.key == "preset discarded")
    assert notice.action is not None
    notice.action()
    await checked(stage, view)
    assert view.model.editor.target == "new-one"


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
