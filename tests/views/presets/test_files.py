"""Files of presets: drafts, changes from outside, files that cannot be used, export and import."""

import shlex
from pathlib import Path

import pytest

from engine_host.protocol.errors import Reason
from engine_host.protocol.presets import EntryOrigin
from sndr_gui.models.presets.drafts import Draft, Drafts
from sndr_gui.views.presets.dialogs import CloseDialog, ImportDialog, SaveDialog
from tests.views.conftest import Stage
from tests.views.fakes.real_catalog import RealCatalog
from tests.views.presets.opened import MINE, checked, dialog, edited, page, save


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
    await stage.until(lambda: "broken" not in [row.id for row in view.model.rows.shown])
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
