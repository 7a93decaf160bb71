"""What somebody sees who opens the window for the first time: small windows, wrong numbers, dead engines."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from engine_host.protocol import EngineState
from sndr_gui.views.chat import ChatView
from tests.views import samples
from tests.views.conftest import Stage


async def chat(stage: Stage, running: bool = True) -> ChatView:
    if running:
        stage.host.set_engine(samples.engine(EngineState.READY))
        await stage.until(lambda: stage.state.running is not None)
    stage.window.go("chat")
    page = stage.window.page
    assert isinstance(page, ChatView)
    return page


async def test_composer_grows_with_typed_and_wrapped_lines(stage: Stage) -> None:
    edit = (await chat(stage)).composer.edit
    stage.window.grab()
    line, one = edit.fontMetrics().lineSpacing(), edit.height()
    QTest.keyClicks(edit, "one")
    for _ in range(3):
        QTest.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
        QTest.keyClicks(edit, "more")
    assert edit.height() == one + 3 * line
    assert edit.verticalScrollBar().maximum() == 0, "every typed line is in sight"
    edit.setPlainText("a long sentence that wraps " * 12)
    stage.window.grab()
    assert edit.height() > one
    edit.setPlainText("line\n" * 30)
    assert edit.height() == one + 7 * line, "then it scrolls"
    edit.clear()
    assert edit.height() == one
