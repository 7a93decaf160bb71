"""Closing while engines run: asked once, remembered, and changed in Settings."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from engine_host.protocol.engines import EngineState
from sndr_gui.kit.settings import OnClose, SettingsFile
from sndr_gui.views.leaving.question import LeaveDialog
from sndr_gui.views.settings.page import SettingsView
from tests.views.conftest import Stage
from tests.views.samples import host as samples


def click(made: QPushButton) -> None:
    QTest.mouseClick(made, Qt.MouseButton.LeftButton)


async def asked(stage: Stage) -> LeaveDialog:
    """Return the question, with an engine that would end with the window."""
    stage.connection.owned = True
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.live)
    stage.window.close()
    stage.window.close()
    (dialog,) = (one for one in stage.window.findChildren(LeaveDialog) if one.isVisible())
    return dialog


async def test_engines_are_kept_and_the_answer_is_remembered(stage: Stage) -> None:
    left: list[bool] = []
    stage.window.closing.connect(lambda: left.append(True))
    dialog = await asked(stage)
    assert not left
    click(dialog.stay)
    assert (left, stage.file.current.on_close) == ([], OnClose.ASK)
    dialog = await asked(stage)
    dialog.remember.setChecked(True)
    click(dialog.keep)
    await stage.until(lambda: left)
    assert stage.host.sent("POST", "/v1/host/stay") == [{"stays": True}]
    assert SettingsFile(stage.file.folder / "window.json").current.on_close is OnClose.KEEP
    stage.window.show()
    stage.window.go("settings")
    page = stage.window.page
    assert isinstance(page, SettingsView)
    assert page.window_card.on_close.place == 1
    click(page.window_card.on_close.buttons[2])
    assert stage.file.current.on_close is OnClose.END
    stage.connection.owned = False


async def test_an_answer_for_this_time_alone_is_not_remembered(stage: Stage) -> None:
    left: list[bool] = []
    stage.window.closing.connect(lambda: left.append(True))
    dialog = await asked(stage)
    assert not dialog.remember.isChecked(), "one hurried click decides for this time alone"
    click(dialog.end)
    assert left == [True]
    assert stage.file.current.on_close is OnClose.ASK
    assert not stage.host.sent("POST", "/v1/host/stay")
    stage.connection.owned = False
