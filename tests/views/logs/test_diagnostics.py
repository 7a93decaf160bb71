"""A report is looked through before it is saved, and saved as it was shown."""

import zipfile
from pathlib import Path

import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog

from engine_host.cli.root import root
from engine_host.core.paths import Folders
from sndr_gui.views.logs.diagnostics import DiagnosticsDialog
from sndr_gui.views.logs.page import LogsView
from tests.views.conftest import Stage


async def collected(stage: Stage) -> DiagnosticsDialog:
    """Return the dialog with its report, of a machine without a running host."""
    folders = Folders.resolve()
    folders.logs.mkdir(parents=True)
    (folders.logs / "host.log").write_text("it said sk-hunter22hunter22\n", encoding="utf-8")
    await stage.host.stop()
    await stage.until(lambda: not stage.connection.connected)
    stage.window.go("logs")
    page = stage.window.page
    assert isinstance(page, LogsView)
    QTest.mouseClick(page.diagnostics, Qt.MouseButton.LeftButton)
    (dialog,) = page.findChildren(DiagnosticsDialog)
    await stage.until(lambda: dialog.model.bundle is not None)
    return dialog


async def test_every_file_is_shown_with_its_text_and_saved_so(stage: Stage, home: Path) -> None:
    dialog = await collected(stage)
    assert "missing; README.txt says why" in dialog.state.text()
    assert dialog.shown.toPlainText().startswith("Diagnostics of SNDR Control Center")
    names = [dialog.files.item(place).text().partition("  ·")[0] for place in range(dialog.files.count())]
    dialog.files.setCurrentRow(names.index("logs/host.log"))
    assert dialog.shown.toPlainText() == "it said [redacted]\n"

    dialog.save.click()
    (asked,) = dialog.findChildren(QFileDialog)
    asked.reject()
    target = home / "report.zip"
    dialog.model.save(str(target))
    await stage.until(lambda: not shiboken6.isValid(dialog))
    with zipfile.ZipFile(target) as archive:
        assert [name.partition("/")[2] for name in archive.namelist()] == names


async def test_a_place_that_is_taken_is_said_and_another_can_be_chosen(stage: Stage, home: Path) -> None:
    dialog = await collected(stage)
    (taken := home / "taken.zip").write_text("mine", encoding="utf-8")
    dialog.model.save(str(taken))
    await stage.until(lambda: "is there already" in dialog.state.text())
    assert taken.read_text(encoding="utf-8") == "mine"
    assert dialog.save.isEnabled()
    dialog.model.save(str(home / "other.zip"))
    await stage.until(lambda: not shiboken6.isValid(dialog))
    assert (home / "other.zip").is_file()


async def test_a_dialog_that_is_closed_while_it_collects_is_gone(stage: Stage) -> None:
    stage.window.go("logs")
    page = stage.window.page
    assert isinstance(page, LogsView)
    await stage.host.stop()
    page.diagnostics.click()
    (dialog,) = page.findChildren(DiagnosticsDialog)
    assert not dialog.save.isEnabled()
    model = dialog.model
    dialog.reject()
    await stage.until(lambda: model.bundle is not None)
    assert not shiboken6.isValid(dialog)


async def test_the_command_beside_it_exists(stage: Stage) -> None:
    dialog = await collected(stage)
    assert dialog.model.command == "sndr diagnostics"
    assert dialog.model.command.split()[1] in root.commands
