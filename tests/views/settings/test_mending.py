"""A settings file that is wrong, in the window: told, shown with its line, mended only when asked."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton

from engine_host.protocol.errors import Problem, Reason
from sndr_gui.views.settings.mending import MendingDialog
from sndr_gui.views.settings.page import SettingsView
from tests.views.conftest import Stage
from tests.views.samples import host as samples

HOSTILE = "threads = '<b>all</b>\u202e'"
WRONG = Problem(
    reason=Reason.SETTING_INVALID,
    message="engine.threads in /c/settings.toml, line 3 is wrong.",
    evidence={"line": 3, "text": HOSTILE},
)


def click(made: QPushButton) -> None:
    QTest.mouseClick(made, Qt.MouseButton.LeftButton)


async def test_it_is_told_and_mended_only_when_asked(stage: Stage) -> None:
    wrong = samples.settings().model_copy(update={"problem": WRONG})
    stage.host.settings, stage.host.repair = wrong, "--- a\n+++ b\n-" + HOSTILE
    stage.state.set_settings(wrong)
    (notice,) = stage.window.toasts.shown
    assert "the rest of it is used" in notice.text
    assert notice.action is not None
    notice.action()
    page = stage.window.page
    assert isinstance(page, SettingsView)
    assert page.mending.isVisible()
    assert page.mending.place.text() == f"Line 3: {HOSTILE}"
    click(page.mending.mend)
    (dialog,) = stage.window.findChildren(MendingDialog)
    await stage.until(dialog.repair.isEnabled)
    assert HOSTILE in dialog.diff.toPlainText()
    assert all(one.textFormat() == Qt.TextFormat.PlainText for one in dialog.findChildren(QLabel))
    assert not any("mend" in path for _, path, _ in stage.host.received)
    click(dialog.repair)
    await stage.until(lambda: not page.mending.isVisible())
    assert [body for _, path, body in stage.host.received if path == "/v1/settings/mend"] == [
        {"how": "repair"}
    ]
    assert not stage.window.toasts.shown


async def test_what_cannot_be_repaired_can_be_set_aside_or_left(stage: Stage) -> None:
    stage.host.settings = samples.settings().model_copy(update={"problem": WRONG})
    stage.window.go("settings")
    page = stage.window.page
    assert isinstance(page, SettingsView)
    assert not page.mending.isVisible()
    stage.state.set_settings(stage.host.settings)
    click(page.mending.mend)
    (dialog,) = stage.window.findChildren(MendingDialog)
    await stage.until(lambda: dialog.model.found is not None)
    assert not dialog.repair.isEnabled()
    assert dialog.aside.isEnabled()
    click(dialog.close_button)
    assert not dialog.isVisible()
    assert page.mending.isVisible(), "it is still wrong"
