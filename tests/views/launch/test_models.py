"""Launch with a model: settings, findings and their fixes, and the start."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from engine_host.engines.llamacpp.servers import build_fix
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Action, Fix, Problem, Reason
from engine_host.protocol.launch.plans import Finding
from sndr_gui.models.launch.page import ListKind
from sndr_gui.views.launch.page import LaunchView
from tests.views.conftest import Stage
from tests.views.samples import host as samples


def launch(stage: Stage) -> LaunchView:
    stage.window.go("launch")
    page = stage.window.page
    assert isinstance(page, LaunchView)
    page.model.show_list(ListKind.MODELS)
    return page


async def test_launch_plans_with_what_was_set_and_starts(stage: Stage) -> None:
    page = launch(stage)
    await stage.until(lambda: page.start.start.isEnabled())
    assert page.model.setting_rows()[0].layer == "model"
    QTest.keyClicks(page.sizes.context, "4096")
    page.sizes.boxes["kv_type_k"].setCurrentIndex(page.sizes.boxes["kv_type_k"].findData("q8_0"))
    await stage.until(
        lambda: (stage.host.sent("POST", "/v1/plans") or [{}])[-1].get("overrides", {}).get("context") == 4096
    )
    await stage.until(lambda: stage.host.sent("POST", "/v1/plans")[-1]["overrides"]["kv_type_k"] == "q8_0")
    assert len(stage.host.sent("POST", "/v1/plans")) <= 4, "typing is planned once it pauses"
    await stage.until(lambda: page.start.start.isEnabled())
    QTest.mouseClick(page.start.start, Qt.MouseButton.LeftButton)
    await stage.until(lambda: page.start.cancel.isVisible())
    assert page.start.start.text().startswith("Starting…")


async def test_launch_says_what_a_kv_type_means(stage: Stage) -> None:
    page = launch(stage)
    await stage.until(lambda: page.model.plan is not None)
    labels = [
        page.sizes.boxes["kv_type_k"].itemText(row) for row in range(page.sizes.boxes["kv_type_k"].count())
    ]
    assert labels == ["Default (f16)", "f16", "q8_0 with rotation", "q4_0 with rotation"]


async def test_launch_offers_only_what_the_server_does(stage: Stage) -> None:
    page = launch(stage)
    kinds = [
        page.sizes.boxes["kv_type_k"].itemData(place)
        for place in range(page.sizes.boxes["kv_type_k"].count())
    ]
    assert kinds == [None, "f16", "q8_0", "q4_0"]
    speculation = [
        page.form.box("speculation").itemData(place) for place in range(page.form.box("speculation").count())
    ]
    assert "draft-mtp" in speculation
    page.model.select("qwen3-8b")
    speculation = [
        page.form.box("speculation").itemData(place) for place in range(page.form.box("speculation").count())
    ]
    assert "draft-mtp" not in speculation, "this model has no MTP layer"


async def test_launch_filters_and_shows_why_a_model_cannot_start(stage: Stage, qtbot: QtBot) -> None:
    page = launch(stage)
    with qtbot.waitActive(stage.window):
        stage.window.activateWindow()
    QTest.keyClick(stage.window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert page.filter.hasFocus()
    QTest.keyClicks(page.filter, "brok")
    assert [row.id for row in page.model.models.rows.shown] == ["broken"]
    page.model.select("broken")
    await stage.until(lambda: page.plan.problem.isVisible())
    assert not page.start.start.isEnabled()


async def test_launch_finding_that_stops_and_its_fix(stage: Stage) -> None:
    action = Action(method="PUT", path="/v1/settings", body={"values": {"engine.streams": 1}})
    finding = Finding(
        id="memory",
        severity=Severity.ERROR,
        message="This does not fit.",
        fix=Fix(text="Use one stream", action=action),
    )
    stage.host.plan = samples.plan(findings=(finding,))
    page = launch(stage)
    await stage.until(lambda: page.model.plan is not None and page.model.plan.findings == (finding,))
    assert not page.start.start.isEnabled()
    mend = next(b for b in page.plan.findings.findChildren(QPushButton) if b.text() == "Use one stream")
    QTest.mouseClick(mend, Qt.MouseButton.LeftButton)
    await stage.until(lambda: stage.host.sent("PUT", "/v1/settings"))


async def test_a_fix_that_changes_the_start_is_a_click(stage: Stage) -> None:
    fix = Fix(
        text="Set speculation to draft-mtp and measure.",
        command="sndr run sndr-demo --speculation draft-mtp",
        settings={"speculation": "draft-mtp"},
    )
    finding = Finding(id="mtp_available", severity=Severity.INFO, message="It can draft.", fix=fix)
    foreign = Fix(text="Share it.", settings={"tensor_parallel": 2})
    other = Finding(id="too_few_gpus", severity=Severity.INFO, message="Not of llama.cpp.", fix=foreign)
    stage.host.plan = samples.plan(findings=(finding, other))
    page = launch(stage)
    await stage.until(lambda: page.model.plan is not None and len(page.model.plan.findings) == 2)
    shown = [made for made in page.plan.findings.findChildren(QPushButton) if made.isVisibleTo(page.plan)]
    mend = next(made for made in shown if made.text() == "Set speculation to draft-mtp")
    assert mend.accessibleName() == "Set speculation to draft-mtp: It can draft."
    assert "Set tensor_parallel to 2" not in [made.text() for made in shown], "this start has no such setting"
    asked = len(stage.host.sent("POST", "/v1/fit"))
    stage.host.plan = samples.plan(speculation="draft-mtp", argv=("llama-server", "--spec-type", "draft-mtp"))
    mend.setFocus()
    QTest.keyClick(mend, Qt.Key.Key_Space)
    assert page.form.box("speculation").currentData() == "draft-mtp"
    await stage.until(
        lambda: stage.host.sent("POST", "/v1/plans")[-1]["overrides"]["speculation"] == "draft-mtp"
    )
    await stage.until(lambda: "--spec-type" in page.plan._argv.label.text())
    await stage.until(lambda: len(stage.host.sent("POST", "/v1/fit")) > asked)
    assert stage.host.sent("POST", "/v1/fit")[-1]["speculation"] is True


async def test_the_faster_build_is_a_click_of_its_finding(stage: Stage) -> None:
    fix = build_fix("Build llama.cpp for this processor once.")
    finding = Finding(id="prebuilt_server", severity=Severity.INFO, message="The prebuilt runs.", fix=fix)
    stage.host.plan = samples.plan(findings=(finding,))
    page = launch(stage)
    await stage.until(lambda: page.model.plan is not None and page.model.plan.findings == (finding,))
    mend = next(made for made in page.plan.findings.findChildren(QPushButton) if made.text() == "Apply")
    assert mend.accessibleName() == "Build llama.cpp for this processor once."
    QTest.mouseClick(mend, Qt.MouseButton.LeftButton)
    await stage.until(lambda: stage.host.sent("POST", "/v1/servers/build"))
    assert mend.text() == "Apply"


async def test_launch_refused_plan_shows_the_problem(stage: Stage) -> None:
    stage.host.refuse["/v1/plans"] = Problem(reason=Reason.SETTING_INVALID, message="No such KV type.")
    page = launch(stage)
    await stage.until(lambda: page.plan.problem.isVisible())
    assert "No such KV type." in page.plan.problem._what.text()


async def test_launch_adds_a_folder(stage: Stage) -> None:
    launch(stage).model.models.add_folder("/more")
    await stage.until(lambda: stage.host.sent("POST", "/v1/models/scan") != [])
    assert stage.host.sent("PUT", "/v1/settings") == [{"values": {"models.folders": ["/models", "/more"]}}]
