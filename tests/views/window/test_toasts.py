"""Notices over the page: short until somebody wants the rest, and gone when they no longer hold."""

from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.launch.plans import LaunchRequest
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
    assert stage.window.toasts.height() > height
    stage.notices.info("other", "Short.")
    assert toasts(stage)[-1].more.isHidden()


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
