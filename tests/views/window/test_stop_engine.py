"""Stop and Relaunch of an engine that answers: every page asks first, and the answer is one click away."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from engine_host.protocol.engines import EngineState, RequestState
from engine_host.protocol.events import EngineRequestEvent
from tests.views.conftest import Stage
from tests.views.samples import host as samples

STOPPED = ("DELETE", "/v1/engines/engine-1", None)


async def answering(stage: Stage, page: str) -> None:
    """An engine that answers one request, while a page without its buttons is shown."""
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.running)
    stage.host.publish(EngineRequestEvent(request=samples.request(RequestState.DECODE)))
    await stage.until(lambda: stage.state.requests)
    stage.window.go(page)


def chosen(stage: Stage, typed: str) -> None:
    """A command of the palette is run."""
    palette = stage.window.palette_box
    palette.open()
    QTest.keyClicks(palette.edit, typed)
    QTest.keyClick(palette.edit, Qt.Key.Key_Return)


def answer(stage: Stage, words: str) -> QPushButton:
    """The button of the notice that asks."""
    made = stage.window.toasts.findChildren(QPushButton)
    return next(one for one in made if one.isVisible() and one.text().strip() == words)


async def test_stop_from_the_palette_asks_on_every_page(stage: Stage) -> None:
    await answering(stage, "logs")
    chosen(stage, "stop sndr")
    assert [notice.text for notice in stage.window.toasts.shown] == ["sndr-demo: 1 request is running."]
    assert STOPPED not in stage.host.received
    answer(stage, "Stop anyway").click()
    await stage.until(lambda: STOPPED in stage.host.received)
    await stage.until(lambda: not stage.pages.actions.pending("stop engine-1"))
    assert not stage.window.toasts.shown


@pytest.mark.parametrize("twice", [False, True])
async def test_a_relaunch_cuts_nothing_off_unasked(stage: Stage, twice: bool) -> None:
    await answering(stage, "monitor")
    chosen(stage, "relaunch sndr")
    said = [notice.text for notice in stage.window.toasts.shown]
    assert said == ["sndr-demo: 1 request is running. What is not finished in a few seconds is cut off."]
    assert not stage.host.sent("POST", "/v1/engines")
    if twice:
        chosen(stage, "relaunch sndr")
    else:
        answer(stage, "Relaunch anyway").click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/engines"))
    await stage.until(lambda: not stage.pages.actions.pending("relaunch engine-1"))
    assert not stage.window.toasts.shown


async def test_the_answer_in_the_notice_outlasts_the_question_in_the_button(stage: Stage) -> None:
    await answering(stage, "monitor")
    home = stage.pages.home
    home.stop()
    assert home.stopping.question(stage.state.engine)
    home.stopping._forget.timeout.emit()
    assert not home.stopping.question(stage.state.engine)
    answer(stage, "Stop anyway").click()
    await stage.until(lambda: STOPPED in stage.host.received)
    await stage.until(lambda: not stage.pages.actions.pending("stop engine-1"))


async def test_an_idle_engine_is_stopped_at_once(stage: Stage) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.running)
    chosen(stage, "stop sndr")
    await stage.until(lambda: STOPPED in stage.host.received)
    await stage.until(lambda: not stage.pages.actions.pending("stop engine-1"))
    assert not stage.window.toasts.shown
