"""The dialog after a crash: the report is shown masked, and copied as it is shown."""

from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication

from engine_host.core.paths import Folders
from engine_host.core.processes.crash_marks import marked, take_crashes
from sndr_gui.views.window.crash_report import CrashDialog, title_of
from tests.views.conftest import Stage

SECRET = "sk-hunter22hunter22"


async def test_the_report_is_shown_masked_first_and_can_be_copied(stage: Stage, home: Path) -> None:
    folder = Folders.resolve().crashes
    with pytest.raises(RuntimeError), marked(folder, "window", "1"):
        raise RuntimeError(f"it said {SECRET} <b>bold</b>")
    crashes = take_crashes(folder)
    assert title_of(crashes).startswith("The window did not end in order last time")
    await stage.host.stop()
    await stage.until(lambda: not stage.connection.connected)
    dialog = CrashDialog(stage.window, stage.session, crashes)
    dialog.show()
    assert not dialog.isModal()
    await stage.until(lambda: dialog.model.bundle is not None)
    await stage.until(lambda: "RuntimeError" in dialog.shown.toPlainText())
    shown = dialog.shown.toPlainText()
    assert SECRET not in shown
    assert "<b>bold</b>" in shown, "as text"
    dialog.copied.click()
    assert QGuiApplication.clipboard().text() == shown
    assert dialog.files.currentItem().text().startswith("crashes/window-")
    assert dialog.save.isEnabled()
    dialog.reject()
