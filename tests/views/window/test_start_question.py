"""A start asks before it ends an engine or does what a stranger's preset wants, wherever it is begun."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from engine_host.core.errors import consent_needed
from engine_host.core.findings.table import finding
from engine_host.protocol.engines import EngineState, RequestState
from engine_host.protocol.events import EngineRequestEvent
from engine_host.protocol.launch.consents import ConsentNeeded, Demand
from engine_host.protocol.launch.plans import EngineRef, LaunchPlan, LaunchRequest, StartRequest
from sndr_gui.views.launch.page import LaunchView
from sndr_gui.views.window.start_question import ConsentDialog, ReplaceDialog
from tests.views.conftest import Stage
from tests.views.launch.test_plans import planned
from tests.views.presets.opened import dialog
from tests.views.samples import host as samples
from tests.views.widgets.visible_text import visible_text

NEEDED = ConsentNeeded(
    digest="d" * 64,
    demands=(
        Demand(file="own/mine.yaml", line=7, key="settings.x", what="--tools all", does="Runs commands."),
        Demand(file="own/mine.yaml", key="patches", what="off: all", does="Who knows.", known=False),
    ),
    contents=("d" * 64,),
)
RUNS = EngineRef(id="engine-1", name="sndr-demo")
COMMAND = "sndr run sndr-demo --instead-of sndr-demo"


def starts(stage: Stage) -> list[StartRequest]:
    return [StartRequest.model_validate(one) for one in stage.host.sent("POST", "/v1/engines")]


def started(stage: Stage) -> list[str]:
    """The plans that were started."""
    return [one.plan for one in starts(stage)]


def beside(asked: LaunchRequest) -> LaunchPlan:
    """The start beside the engine: its own name is taken, another is free."""
    if asked.name is not None:
        return samples.plan(
            id="plan-both", name=asked.name, command=f"sndr run sndr-demo --name {asked.name}"
        )
    taken = finding(
        "name_taken", command="sndr run sndr-demo", name="sndr-demo", engine="engine-1", free="sndr-demo-2"
    )
    return samples.plan(id="plan-taken", findings=(taken,))


async def running(stage: Stage, answering: bool = False) -> None:
    """An engine that runs, whose place every start would take."""
    stage.host.plan = samples.plan(instead_of=(RUNS,), command=COMMAND)
    stage.host.plan_beside = beside
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.running)
    if answering:
        stage.host.publish(EngineRequestEvent(request=samples.request(RequestState.DECODE)))
        await stage.until(lambda: stage.state.open_requests("engine-1"))


async def asks(stage: Stage) -> ReplaceDialog:
    await stage.until(lambda: stage.pages.actions.question is not None)
    await stage.until(lambda: not stage.pages.actions.starting)
    return dialog(ReplaceDialog)


def of_the_palette(stage: Stage, typed: str) -> None:
    palette = stage.window.palette_box
    palette.open()
    QTest.keyClicks(palette.edit, typed)
    QTest.keyClick(palette.edit, Qt.Key.Key_Return)


async def begun(stage: Stage, where: str) -> None:
    """A start as a person begins it at one of the places of the window."""
    if where == "launch":
        view = await planned(stage)
        assert view.placement.box.currentText() == "Automatic (replaces one)"
        view.start.start.click()
    elif where == "palette":
        stage.window.go("logs")
        of_the_palette(stage, "start sndr-demo")
    elif where == "preset":
        stage.pages.actions.start_preset("demo-llamacpp")
    else:
        failed = samples.engine(EngineState.FAILED, id="engine-0")
        stage.host.set_engine(failed)
        await stage.until(lambda: "engine-0" in stage.state.engines)
        stage.pages.home.stopping.relaunch(failed)


@pytest.mark.parametrize("where", ["launch", "palette", "preset", "relaunch of a failed one"])
async def test_nothing_is_ended_by_one_click(stage: Stage, where: str) -> None:
    await running(stage, answering=True)
    await begun(stage, where)
    asked = await asks(stage)
    shown = visible_text(asked)
    assert "This start ends sndr-demo" in shown
    assert "sndr-demo is answering 1 request: what is not finished in a few seconds is cut off." in shown
    assert COMMAND in shown
    assert not started(stage)
    QTest.keyClick(asked, Qt.Key.Key_Escape)
    await stage.until(lambda: not asked.isVisible())
    assert not started(stage)
    assert not stage.window.toasts.shown, "it is a question and no failure"


async def test_the_answer_ends_it(stage: Stage) -> None:
    await running(stage)
    stage.pages.actions.start_model("sndr-demo")
    asked = await asks(stage)
    assert "sndr-demo is ready and answers nothing right now." in visible_text(asked)
    assert (asked.replace.text(), asked.cancel.isDefault()) == ("End sndr-demo and start", True)
    asked.replace.click()
    await stage.until(lambda: started(stage) == ["plan-1"])


async def test_both_are_kept_under_a_free_name(stage: Stage) -> None:
    await running(stage)
    stage.pages.actions.start_model("sndr-demo")
    asked = await asks(stage)
    assert "Both can run: this one as sndr-demo-2, beside it." in visible_text(asked)
    assert asked.keep.text() == "Keep both, start sndr-demo-2"
    assert "sndr run sndr-demo --name sndr-demo-2" in asked.keep.toolTip()
    for _ in range(4):
        if asked.keep.hasFocus():
            break
        QTest.keyClick(asked.focusWidget() or asked, Qt.Key.Key_Tab)
    QTest.keyClick(asked.keep, Qt.Key.Key_Return)
    await stage.until(lambda: started(stage) == ["plan-both"])


async def test_without_room_for_both_it_says_why(stage: Stage) -> None:
    await running(stage)
    short = finding(
        "no_room_beside", missing=2**30, device="main memory", beside=["sndr-demo"], instead_of=["sndr-demo"]
    )
    stage.host.plan_beside = lambda _asked: samples.plan(findings=(short,))
    stage.pages.actions.start_model("sndr-demo")
    asked = await asks(stage)
    assert not asked.keep.isVisible()
    assert "Both cannot run now: " in visible_text(asked)


async def test_what_is_under_way_is_told_as_it_changes(stage: Stage) -> None:
    await running(stage, answering=True)
    stage.pages.actions.start_model("sndr-demo")
    asked = await asks(stage)
    stage.host.publish(EngineRequestEvent(request=samples.request(RequestState.DONE)))
    await stage.until(lambda: asked.doing.text() == "sndr-demo is ready and answers nothing right now.")
    stage.host.set_engine(samples.engine(EngineState.UNLOADED))
    await stage.until(lambda: asked.doing.text() == "sndr-demo has ended meanwhile.")


@pytest.mark.parametrize("answering", [False, True])
async def test_a_place_that_a_person_chose_asks_only_where_answers_are_lost(
    stage: Stage, answering: bool
) -> None:
    await running(stage, answering)
    view = await planned(stage)
    view.placement.box.setCurrentIndex(2)
    assert view.model.form.instead_of == ("sndr-demo",)
    await stage.until(lambda: view.model.can_start)
    view.start.start.click()
    if answering:
        await asks(stage)
        assert not started(stage)
        return
    await stage.until(lambda: started(stage) == ["plan-1"])
    assert stage.pages.actions.question is None


async def test_a_relaunch_of_the_running_one_asks_nothing_more(stage: Stage) -> None:
    await running(stage)
    stage.window.go("home")
    stage.pages.home.relaunch()
    await stage.until(lambda: started(stage) == ["plan-1"])
    assert stage.pages.actions.question is None


async def test_launch_stands_as_it_was_after_cancel(stage: Stage) -> None:
    await running(stage)
    await begun(stage, "launch")
    asked = await asks(stage)
    asked.cancel.click()
    view = stage.window.page
    assert isinstance(view, LaunchView)
    await stage.until(lambda: view.start.start.isEnabled())
    assert view.start.start.text() == "Start"


@pytest.mark.parametrize("allowed", [True, False])
async def test_each_demand_is_shown_and_the_start_waits_for_a_yes(stage: Stage, allowed: bool) -> None:
    stage.host.refuse["/v1/engines"] = consent_needed(NEEDED, "its first start", "sndr launch mine").problem
    stage.pages.actions.start_preset("mine")
    await stage.until(lambda: stage.pages.actions.question is not None)
    await stage.until(lambda: not stage.pages.actions.pending("start"))
    asked = dialog(ConsentDialog)
    shown = visible_text(asked)
    for words in ("--tools all", "Runs commands.", "line 7, settings.x", "off: all", f"--accept {'d' * 64}"):
        assert words in shown
    assert asked.cancel.isDefault()
    assert not stage.window.toasts.shown, "it is a question and no failure"
    stage.host.refuse.clear()
    if not allowed:
        asked.cancel.click()
        assert [one.consent for one in starts(stage)] == [None]
        return
    asked.allow.click()
    await stage.until(lambda: len(starts(stage)) == 2)
    assert starts(stage)[1].consent == NEEDED.digest
