"""The Patches page: rows, facets, live outcomes, the pane, and what its buttons send."""

import time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu, QPushButton

from engine_host.protocol.engines import EngineState, InstallationPage, RequestState
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import (
    EngineRequestEvent,
    JobDoneEvent,
    JobStepEvent,
    PatchResultEvent,
    ServersChangedEvent,
)
from engine_host.protocol.jobs import JobKind, JobState
from engine_host.protocol.launch.plans import BisectResult, BisectTrial, BisectVerdict
from engine_host.protocol.patches import PatchFault, PatchOutcome, PatchResult, ProcessRole
from sndr_gui.views.patches.bisect import BisectDialog
from sndr_gui.views.patches.faults import FaultsDialog
from sndr_gui.views.patches.page import PatchesView
from sndr_gui.views.patches.restart import RestartDialog
from tests.pace import within
from tests.views.conftest import Stage
from tests.views.samples import host as samples
from tests.views.widgets.visible_text import visible_text


async def page(stage: Stage, engine: str = "vllm") -> PatchesView:
    if engine:
        plan = samples.vllm_plan() if engine == "vllm" else samples.plan()
        stage.host.set_engine(samples.engine(EngineState.READY, engine=engine, plan=plan))
        await stage.until(lambda: stage.state.running is not None)
    stage.window.go("patches")
    view = stage.window.page
    assert isinstance(view, PatchesView)
    await stage.until(lambda: view.model.page is not None)
    return view


def states(view: PatchesView) -> list[str]:
    return [row.state for row in view.model.rows.shown]


async def test_each_row_shows_the_worst_outcome_of_its_processes(stage: Stage) -> None:
    view = await page(stage)
    await stage.until(lambda: "failed" in states(view))
    assert states(view)[:7] == ["applied"] * 5 + ["failed", "skipped"]
    assert [card.text() for card in view.cards] == [
        "API server\n2 applied",
        "EngineCore\n5 applied, 1 skipped, 1 failed",
    ]


async def test_a_click_on_a_process_narrows_the_table_and_a_second_one_widens_it(stage: Stage) -> None:
    view = await page(stage)
    await stage.until(lambda: len(view.cards) == 2)
    view.cards[0].click()
    assert len(view.model.rows.shown) == 2
    view.cards[0].click()
    assert len(view.model.rows.shown) == 12


async def test_results_arrive_while_the_engine_starts(stage: Stage) -> None:
    view = await page(stage)
    await stage.until(lambda: len(view.cards) == 2)
    result = PatchResult(patch="P0007", outcome=PatchOutcome.APPLIED, ms=2.0)
    stage.host.publish(
        PatchResultEvent(engine="engine-1", pid=13, role=ProcessRole.WORKER, rank=0, result=result)
    )
    await stage.until(lambda: len(view.cards) == 3)
    assert view.cards[2].text() == "Worker 0\n1 applied"
    assert states(view)[7] == "applied"


async def test_an_engine_without_an_overlay_says_so(stage: Stage) -> None:
    view = await page(stage, engine="llama.cpp")
    assert view.model.hint[0] == "llama.cpp has no overlay"
    assert set(states(view)) == {"on"}


async def test_no_engine_shows_the_way_to_launch(stage: Stage) -> None:
    view = await page(stage, engine="")
    assert view.launch.isVisible()


async def test_the_pane_shows_the_change_and_sends_its_commands(stage: Stage) -> None:
    view = await page(stage)
    await stage.until(lambda: "failed" in states(view))
    view.table.selectRow(1)
    await stage.until(lambda: view.model.detail is not None)
    assert view.pane.isVisible()
    view.pane.switch.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/patches/switch"))
    assert stage.host.sent("POST", "/v1/patches/switch") == [{"names": ["P0001"], "to": "off"}]
    view.pane.probe.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/engines/engine-1/patches/probe"))


async def test_figures_of_the_evidence_are_written_out(stage: Stage) -> None:
    view = await page(stage)
    await stage.until(lambda: "failed" in states(view))
    view.table.selectRow(1)
    await stage.until(lambda: view.model.detail is not None)
    shown = visible_text(view.pane).splitlines()
    assert [line for line in shown if line.endswith(" tokens")] == ["1,775,210 tokens", "2,085,648 tokens"]
    assert "10 tok/s" in shown


def restart_dialog(view: PatchesView) -> RestartDialog:
    view.pane.without.click()
    found: list[RestartDialog] = [one for one in view.findChildren(RestartDialog) if one.isVisible()]
    return found[-1]


WITHOUT = "/v1/engines/engine-1/patches/P0001/start-without"


async def test_a_start_without_a_patch_asks_while_a_model_is_loaded(stage: Stage) -> None:
    view = await page(stage)
    await stage.until(lambda: "failed" in states(view))
    view.table.selectRow(1)
    await stage.until(lambda: view.model.detail is not None)
    assert view.pane.without.accessibleName() == "Start without this patch"
    dialog = restart_dialog(view)
    assert dialog.windowTitle() == "Start sndr-demo without P0001?"
    assert "stopped and started again" in dialog.does.text()
    assert dialog.cuts.isHidden()
    QTest.keyClick(dialog, Qt.Key.Key_Return)
    assert not dialog.isVisible()
    dialog = restart_dialog(view)
    request = samples.request(RequestState.DECODE, 77)
    stage.host.publish(EngineRequestEvent(request=request))
    await stage.until(dialog.cuts.isVisible)
    assert dialog.cuts.text().startswith("1 request is running")
    assert "cut off" in dialog.accessibleDescription()
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not stage.host.sent("POST", WITHOUT)
    dialog = restart_dialog(view)
    assert dialog.restart.accessibleName() == "Start sndr-demo without P0001"
    dialog.restart.setFocus()
    QTest.keyClick(dialog.restart, Qt.Key.Key_Space)
    await stage.until(lambda: stage.host.sent("POST", WITHOUT))
    await stage.until(lambda: not view.findChildren(RestartDialog))


async def test_a_start_that_is_not_loaded_yet_is_replaced_without_a_question(stage: Stage) -> None:
    view = await page(stage)
    view.table.selectRow(1)
    await stage.until(lambda: view.model.detail is not None)
    assert restart_dialog(view)
    stage.host.set_engine(samples.engine(EngineState.STARTING, engine="vllm", plan=samples.vllm_plan()))
    await stage.until(lambda: not view.findChildren(RestartDialog))
    view.pane.without.click()
    await stage.until(lambda: stage.host.sent("POST", WITHOUT))


async def test_a_family_or_all_are_switched_from_the_menu(stage: Stage) -> None:
    view = await page(stage)
    menu = view.switches.menu()
    menu.aboutToShow.emit()
    titles = [action.text() for action in menu.actions() if not action.isSeparator()]
    assert titles[0].startswith("All ")
    assert len(titles) > 2
    for place, name in ((0, "all"), (-1, titles[-1].split("  ")[0])):
        chosen = [action for action in menu.actions() if not action.isSeparator()][place].menu()
        assert isinstance(chosen, QMenu)
        off = next(action for action in chosen.actions() if action.text() == "Switch off")
        assert f"sndr patches switch off {name}" in off.toolTip()
        off.trigger()
        await stage.until(lambda: not view.model.pending("switch"))
        assert stage.host.sent("POST", "/v1/patches/switch")[-1] == {"names": [name], "to": "off"}


async def test_the_filter_and_the_facets_work_together(stage: Stage) -> None:
    view = await page(stage)
    view.filter.setText("loader")
    assert {row.patch.family for row in view.model.rows.shown} == {"loader"}
    box = view.choices["range"]
    box.setCurrentIndex(box.findData("==0.32.0"))
    box.activated.emit(box.currentIndex())
    assert not view.model.rows.shown


def installed(version: str = "0.32.0") -> InstallationPage:
    one = samples.installation(version=version, id=f"{version}-cpu")
    return InstallationPage(seq=0, installations=(one,))


async def bisect_dialog(stage: Stage, view: PatchesView) -> BisectDialog:
    await stage.until(lambda: "failed" in states(view))
    view.table.selectRow(1)
    view.pane.bisect.click()
    dialog = view.findChild(BisectDialog)
    assert dialog is not None
    return dialog


async def test_a_bisection_with_an_own_command_needs_a_readable_one(stage: Stage) -> None:
    view = await page(stage)
    dialog = await bisect_dialog(stage, view)
    dialog.check.setCurrentIndex(3)
    assert not dialog.start.isEnabled()
    dialog.command.setText("./check.sh 'open")
    assert not dialog.start.isEnabled()
    dialog.command.setText("./check.sh one")
    await stage.until(
        lambda: dialog.equivalent_command.label.text() == "sndr patches bisect sndr-demo -- ./check.sh one"
    )
    dialog.start.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/patches/bisect"))
    sent = stage.host.sent("POST", "/v1/patches/bisect")[0]
    assert sent["check"]["command"] == ["./check.sh", "one"]
    assert sent["launch"]["server"] == "auto"
    assert sent["launch"]["instead_of"] == ["sndr-demo"], "its trials take the place of what they are about"


async def test_the_dialog_of_a_bisection_shows_the_command_line_of_its_plan(stage: Stage) -> None:
    stage.host.plan = samples.vllm_plan(command="sndr run qwen --engine vllm --without P0004")
    view = await page(stage)
    dialog = await bisect_dialog(stage, view)
    await stage.until(dialog.equivalent_command.isVisible)
    wanted = "sndr patches bisect qwen --engine vllm --without P0004 --check"
    assert dialog.equivalent_command.label.text() == f"{wanted} starts"
    dialog.check.setCurrentIndex(2)
    assert dialog.equivalent_command.label.text() == f"{wanted} same_answer"
    dialog.reject()


@pytest.mark.parametrize(
    ("start", "bisects"),
    [
        ("sndr run 'my model' --keep --replace", "sndr patches bisect 'my model'"),
        ("sndr run demo --instead-of demo", "sndr patches bisect demo --instead-of demo"),
        (
            "sndr launch demo --set context=512 --replace",
            "sndr patches bisect --preset demo --set context=512",
        ),
    ],
)
async def test_the_command_line_of_a_bisection_is_one_that_it_takes(
    stage: Stage, start: str, bisects: str
) -> None:
    stage.host.plan = samples.vllm_plan(command=start)
    view = await page(stage)
    dialog = await bisect_dialog(stage, view)
    await stage.until(dialog.equivalent_command.isVisible)
    assert dialog.equivalent_command.label.text() == f"{bisects} --check starts"
    dialog.reject()


async def test_a_bisection_shows_its_steps_and_then_what_it_found(stage: Stage) -> None:
    view = await page(stage)
    view.model.choose("P0003")
    stage.host.publish(JobStepEvent(job=samples.job(JobKind.PATCH_BISECT, JobState.RUNNING)))
    await stage.until(view.bisection.isVisible)
    assert "Step 2 of 4" in view.bisection.job._step.text()
    assert not view.pane.bisect.isEnabled(), "one at a time"
    view.bisection.job.cancel.click()
    await stage.until(lambda: ("DELETE", "/v1/jobs/job-1", None) in stage.host.received)
    trials = (
        BisectTrial(patches=("P0001", "P0002"), passed=False, why="it did not answer", seconds=41.0),
        BisectTrial(patches=("P0002",), passed=True, why="it answered", seconds=40.0),
    )
    found = BisectResult(
        verdict=BisectVerdict.FOUND,
        sentence="P0001 makes the check fail.",
        culprits=(("P0001",),),
        trials=trials,
        command="sndr run sndr-demo --without P0001",
    )
    noon = time.mktime((2026, 11, 27, 12, 0, 0, 0, 0, -1))
    done = samples.job(
        JobKind.PATCH_BISECT, JobState.DONE, result=found.model_dump(mode="json"), ended_at=noon
    )
    stage.host.publish(JobDoneEvent(job=done))
    await stage.until(view.bisection.sentence.isVisible)
    assert view.bisection.job._step.text() == "Done, 2026-11-27 12:00."
    assert view.bisection.sentence.text() == "P0001 makes the check fail."
    assert view.bisection.equivalent_command.label.text() == "sndr run sndr-demo --without P0001"
    view.bisection.more.click()
    assert view.bisection.trials.isVisible()
    culprit = next(made for made in view.bisection.findChildren(QPushButton) if made.text() == "P0001")
    culprit.click()
    assert view.model.chosen == "P0001"
    view.bisection.away.click()
    assert not view.bisection.isVisible()


async def test_the_source_is_asked_of_the_environment_that_runs(stage: Stage) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY, engine="vllm", plan=samples.vllm_plan()))
    await stage.until(lambda: stage.state.running is not None)
    view = await page(stage, engine="")
    view.model.choose("P0001")
    await stage.until(lambda: view.model.detail is not None)
    assert stage.host.queries[-1] == {"vllm": "0.32.0-cpu"}


async def test_the_range_of_the_vllm_that_runs_narrows_the_table(stage: Stage) -> None:
    stage.host.installations = installed("0.31.1")
    stage.pages.installations.load()
    await stage.until(lambda: stage.pages.installations.page == stage.host.installations)
    view = await page(stage, engine="")
    box = view.choices["range"]
    assert box.itemText(0) == "Any version"
    assert box.itemText(1) == "For 0.31.1, which is here"
    box.setCurrentIndex(1)
    box.activated.emit(1)
    assert {row.patch.applies_to.vllm for row in view.model.rows.shown} == {">=0.26,<0.33"}
    assert [box.itemText(0) for box in view.choices.values()] == [
        "Any family",
        "Any state",
        "Any kind",
        "Any version",
    ]


async def test_without_vllm_the_page_installs_it(stage: Stage) -> None:
    stage.host.installations = samples.installations(present=False)
    stage.host.patch = samples.patch_detail().model_copy(update={"vllm": None, "operations": ()})
    stage.pages.installations.load()
    await stage.until(lambda: stage.pages.installations.page == stage.host.installations)
    view = await page(stage, engine="")
    assert view.model.hint[0] == "vLLM is not installed"
    assert view.install is not None
    assert view.install.isVisible()
    assert not view.launch.isVisible()
    view.table.selectRow(1)
    await stage.until(lambda: view.pane.install.isVisible())
    view.pane.install.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/installations/0.32.0-cpu"))
    await stage.until(view.install.job.isVisible)
    stage.host.installations = samples.installations()
    stage.host.patch = samples.patch_detail()
    stage.host.publish(JobDoneEvent(job=samples.install_job("0.32.0-cpu", state=JobState.DONE)))
    stage.host.publish(ServersChangedEvent())
    await stage.until(lambda: view.model.detail is not None and view.model.detail.vllm == "0.32.0")
    await stage.until(lambda: not view.pane.install.isVisible())
    assert not view.install.isVisible()


async def test_nothing_is_to_be_installed_while_vllm_runs_from_a_folder_of_the_person(stage: Stage) -> None:
    stage.host.installations = samples.installations(present=False)
    stage.pages.installations.load()
    view = await page(stage)
    known = stage.pages.installations
    await stage.until(lambda: known.all and known.resolve("") is None)
    assert view.model.missing is None
    assert view.install is None or not view.install.isVisible()


async def test_folders_that_cannot_be_used_are_listed_with_their_problems(stage: Stage) -> None:
    problem = Problem(reason=Reason.PATCH_INVALID, message="patch.toml has an unknown key: titel.")
    fault = PatchFault(folder="/patches/broken", problem=problem)
    stage.host.patches = samples.patches().model_copy(update={"faults": (fault,)})
    view = await page(stage)
    assert view.faults.text() == "1 folder cannot be used"
    view.faults.click()
    dialog = view.findChild(FaultsDialog)
    assert dialog is not None
    assert dialog.boxes[0]._what.text() == "patch.toml has an unknown key: titel."
    dialog.close_button.click()


async def test_actions_stand_above_what_is_to_read_and_nothing_is_cut(stage: Stage) -> None:
    stage.window.resize(900, 600)
    view = await page(stage)
    view.table.selectRow(1)
    await stage.until(lambda: view.model.detail is not None)
    stage.window.grab()
    for made in (view.pane.without, view.pane.bisect, view.pane.probe):
        assert made.mapTo(view.pane, made.rect().bottomLeft()).y() < 150
        assert made.mapTo(view.pane, made.rect().topRight()).x() <= view.pane_area.viewport().width()
    for box in view.choices.values():
        words = box.fontMetrics().horizontalAdvance(box.currentText())
        assert words <= box.width() - 40, f"{box.currentText()} is cut"
        assert box.mapTo(view, box.rect().topRight()).x() <= view.width()


async def test_four_hundred_rows_are_filtered_within_a_click(stage: Stage) -> None:
    stage.host.patches = samples.patches(400)
    view = await page(stage)
    began = time.process_time()
    view.filter.setText("P02")
    # Drawn at once: processEvents() would nest the loop, and a task that is due meanwhile would be lost.
    view.grab()
    assert within(time.process_time() - began, 0.5)
    assert len(view.model.rows.shown) == 100
