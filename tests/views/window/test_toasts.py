"""Notices over the page: short until somebody wants the rest, and gone when they no longer hold."""

import asyncio

import pytest
from PySide6.QtCore import QEvent, QTimer
from PySide6.QtWidgets import QApplication, QPushButton

from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.launch.plans import LaunchRequest
from sndr_gui.views.window.pages import PAGES
from sndr_gui.views.window.toasts import Toast, brief
from tests.views.conftest import Stage

LONG = (
    "Qwen3.6 27B, INT4, is not on this machine; it is in a repository. It takes 16 GiB. "
    "Fetch it with the command that the page of the preset shows, or choose a model that is here already. "
    "Nothing was started."
)


def toasts(stage: Stage) -> list[Toast]:
    return stage.window.toasts.findChildren(Toast)


def test_first_sentences_are_shown() -> None:
    assert brief("Short.") == "Short."
    assert brief(LONG) == (
        "Qwen3.6 27B, INT4, is not on this machine; it is in a repository. It takes 16 GiB."
    )
    cut = brief("word " * 60)
    assert cut.endswith("word …")
    assert len(cut) <= 160


async def test_a_long_notice_is_opened_by_its_button(stage: Stage) -> None:
    stage.notices.error("start", LONG)
    (toast,) = toasts(stage)
    assert toast.sentence.text() == brief(LONG)
    assert toast.accessibleName() == LONG, "a screen reader says all of it"
    height = stage.window.toasts.height()
    toast.more.click()
    assert toast.sentence.text() == LONG
    assert toast.more.isHidden()
    await stage.until(lambda: stage.window.toasts.height() > height)
    stage.notices.info("other", "Short.")
    assert toasts(stage)[-1].more.isHidden()


async def test_a_notice_whose_action_is_the_way_on_stays(stage: Stage) -> None:
    stage.notices.warning("passing", "Short.")
    stage.notices.warning("lasting", "Short.", lasting=True)
    # Only the newest is shown in so low a window.
    (passing, lasting) = toasts(stage)
    for toast, leaves in ((passing, True), (lasting, False)):
        timer = toast.findChild(QTimer)
        assert timer is not None
        timer.stop()
        QApplication.sendEvent(toast, QEvent(QEvent.Type.Leave))
        assert timer.isActive() == leaves
    stage.notices.withdraw("lasting")
    assert [one.notice.key for one in toasts(stage) if not one.isHidden()] == ["passing"]


async def test_a_notice_stays_while_the_keyboard_is_at_its_action(stage: Stage) -> None:
    stage.notices.info("gone", "Short.", action_text="Undo", action=lambda: None)
    (toast,) = toasts(stage)
    timer = toast.findChild(QTimer)
    assert timer is not None
    undo = next(one for one in toast.findChildren(QPushButton) if one.text() == "Undo")
    undo.setFocus()
    timer.timeout.emit()
    assert stage.window.toasts.shown
    stage.window.sidebar.buttons["home"].setFocus()
    timer.timeout.emit()
    assert not stage.window.toasts.shown


async def test_why_a_start_failed_goes_when_it_is_tried_again(stage: Stage) -> None:
    problem = Problem(reason=Reason.MODEL_FILE_MISSING, message="It is not here.", fix=Fix(text="Fetch it."))
    stage.host.refuse["/v1/plans"] = problem
    stage.pages.actions.start_preset("big-24")
    await stage.until(lambda: stage.window.toasts.shown)
    stage.host.refuse.clear()
    stage.pages.actions.start_preset("big-24")
    assert not stage.window.toasts.shown
    await stage.until(lambda: stage.host.sent("POST", "/v1/engines"))
    assert LaunchRequest.model_validate(stage.host.sent("POST", "/v1/plans")[-1]).preset == "big-24"


@pytest.mark.parametrize("size", [(900, 600), (1280, 820)])
async def test_notices_cover_nothing_of_the_page(stage: Stage, size: tuple[int, int]) -> None:
    stage.window.resize(*size)
    for number in range(4):
        stage.notices.error(f"n{number}", LONG, action_text="Open", action=lambda: None)
    await stage.until(lambda: stage.window.toasts.isVisible())
    seen = [one for one in toasts(stage) if one.isVisible()]
    assert [one.notice.key for one in seen] == (["n3"] if size[1] < 720 else ["n1", "n2", "n3"])
    for entry in PAGES:
        stage.window.go(entry.name)
        stage.window.grab()
        await asyncio.sleep(0.05)
        assert (stage.window.width(), stage.window.height()) == size
        page, strip = stage.window.page, stage.window.toasts
        below = page.mapTo(stage.window, page.rect().bottomLeft()).y()
        assert below <= strip.mapTo(stage.window, strip.rect().topLeft()).y(), entry.name
        assert page.minimumSizeHint().height() <= page.height(), entry.name


async def test_the_focus_stays_by_the_page_when_a_notice_leaves(stage: Stage) -> None:
    stage.window.go("settings")
    stage.notices.info("link", "Done.", action_text="Open", action=lambda: None)
    (toast,) = toasts(stage)
    action = next(one for one in toast.findChildren(QPushButton) if one.text() == "Open")
    stage.window.activateWindow()
    action.setFocus()
    await stage.until(lambda: stage.window.focusWidget() is action)
    stage.notices.withdraw("link")
    focused = stage.window.focusWidget()
    assert focused is not None
    assert not stage.window.sidebar.isAncestorOf(focused)
