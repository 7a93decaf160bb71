"""The faces of each page: empty, starting, ready, failed, disconnected; and what its buttons send."""

import math
import time

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from engine_host.engines.llamacpp.servers import build_fix
from engine_host.protocol import (
    Action,
    EngineState,
    Finding,
    Fix,
    JobKind,
    JobState,
    LogLine,
    Problem,
    Reason,
    RequestState,
    ServerChoice,
    Severity,
    SpeedComparison,
    SpeedRow,
)
from engine_host.protocol.events import (
    EngineRequestEvent,
    EngineStageEvent,
    JobStepEvent,
    LogLineEvent,
    ServersChangedEvent,
    TelemetryEvent,
)
from engine_host.protocol.telemetry import Sample
from sndr_gui.models.launch.page import ListKind
from sndr_gui.views.home import HomeView
from sndr_gui.views.launch.page import LaunchView
from sndr_gui.views.logs import LogsView
from sndr_gui.views.monitor import MonitorView
from tests.views.conftest import Stage
from tests.views.samples import host as samples


def home(stage: Stage) -> HomeView:
    stage.window.go("home")
    page = stage.window.page
    assert isinstance(page, HomeView)
    return page


async def ready(stage: Stage, state: EngineState = EngineState.READY) -> None:
    stage.host.set_engine(samples.engine(state))
    await stage.until(lambda: stage.state.engine is not None and stage.state.engine.state is state)


# Home.


async def test_home_empty_teaches_and_starts_the_demo(stage: Stage) -> None:
    page = home(stage)
    assert page.hero.isVisible()
    assert not page.stop.isVisible()
    QTest.mouseClick(page.hero.start, Qt.MouseButton.LeftButton)
    assert page.hero.start.text() == "Starting…", "a click answers at once"
    await stage.until(lambda: page.starting.isVisible())
    assert stage.host.sent("POST", "/v1/plans")[0]["model"] == "sndr-demo"
    assert stage.host.sent("POST", "/v1/engines") == [{"plan": "plan-1", "replace": True}]
    assert all(stage.host.keys), "every command carries a key"


async def test_home_starting_shows_stages_and_cancels(stage: Stage) -> None:
    page = home(stage)
    await ready(stage, EngineState.STARTING)
    assert [row.state for row in page.model.stages()] == ["done", "running"]
    stage_time = samples.engine(EngineState.STARTING).stages[1]
    new = stage_time.model_copy(update={"name": "Verify", "started_at": stage_time.started_at + 1})
    stage.host.publish(EngineStageEvent(engine="engine-1", stage=new))
    await stage.until(lambda: len(page.model.stages()) == 3)
    assert [row.state for row in page.model.stages()] == ["done", "done", "running"]
    QTest.mouseClick(page.starting.cancel, Qt.MouseButton.LeftButton)
    assert page.starting.cancel.text() == "Cancelling…"
    await stage.until(lambda: ("DELETE", "/v1/jobs/job-start", None) in stage.host.received)


async def test_home_ready_shows_numbers_and_no_invented_ones(stage: Stage) -> None:
    stage.host.telemetry = stage.host.telemetry.model_copy(update={"series": ()})
    page = home(stage)
    await ready(stage)
    shown = {value.caption: value.value for value in page.model.values()}
    assert shown["Decode, one request"] == "—"
    assert shown["RAM"] == "8 / 32 GiB"
    assert shown["KV cache"] == "12 %"
    values = {
        "engine.engine-1.decode_rate": 142.6,
        "ram.used": 16.0 * 2**30,
        "engine.engine-1.kv.tokens": 16384.0,
    }
    stage.host.publish(TelemetryEvent(sample=Sample(at=time.time(), values=values)))
    await stage.until(lambda: page._cards[0].value.text() == "142.6 tok/s")
    assert page._cards[1].value.text() == "16 / 32 GiB"
    assert page._cards[2].value.text() == "50 %"


async def test_home_stop_asks_once_more_while_requests_run(stage: Stage) -> None:
    page = home(stage)
    await ready(stage)
    for number in (1, 2, 3):
        stage.host.publish(EngineRequestEvent(request=samples.request(RequestState.DECODE, number)))
    await stage.until(lambda: len(stage.state.requests) == 3)
    QTest.mouseClick(page.stop, Qt.MouseButton.LeftButton)
    assert page.stop.text() == "3 requests are running. Stop anyway"
    assert not stage.host.received
    QTest.mouseClick(page.stop, Qt.MouseButton.LeftButton)
    await stage.until(lambda: ("DELETE", "/v1/engines/engine-1", None) in stage.host.received)
    await stage.until(lambda: page.stop.text() == "Stopping…")


async def test_home_failed_says_what_why_and_what_to_do(stage: Stage) -> None:
    page = home(stage)
    await ready(stage, EngineState.FAILED)
    await stage.until(lambda: page.failure.isVisible())
    assert "weights" in page.failure._what.text()
    assert "more memory" in page.failure._why.text()
    assert page.failure._command.label.text() == "sndr run sndr-demo --streams 1"
    QTest.mouseClick(page.failure.log, Qt.MouseButton.LeftButton)
    assert stage.window.current == "logs"
    logs = stage.window.page
    assert isinstance(logs, LogsView)
    await stage.until(lambda: logs.lines.textCursor().selectedText().endswith("out of memory"))


async def test_home_builds_for_what_is_chosen(stage: Stage) -> None:
    page = home(stage)
    assert "sndr engine build llama.cpp" in page.servers.build.toolTip()
    page.servers.target.setFocus()
    QTest.keyClick(page.servers.target, Qt.Key.Key_End)
    assert page.servers.target.currentText() == "Processor"
    assert "sndr engine build llama.cpp --backend cpu" in page.servers.build.toolTip()
    QTest.mouseClick(page.servers.build, Qt.MouseButton.LeftButton)
    await stage.until(lambda: stage.host.sent("POST", "/v1/servers/build"))
    assert stage.host.sent("POST", "/v1/servers/build") == [{"backend": "cpu"}]


async def test_a_build_that_fails_names_the_command_that_mends_it(stage: Stage) -> None:
    page = home(stage)
    fix = Fix(text="Install them.", command="apt-get install libvulkan-dev")
    lacking = Problem(reason=Reason.COMPILER_MISSING, message="Vulkan is not here.", fix=fix)
    failed = samples.job(JobKind.ENGINE_BUILD, JobState.FAILED).model_copy(update={"error": lacking})
    stage.host.publish(JobStepEvent(job=samples.job(JobKind.ENGINE_BUILD, JobState.RUNNING)))
    await stage.until(page.servers._job.isVisible)
    assert not page.servers._job.command.isVisible()
    stage.host.publish(JobStepEvent(job=failed))
    await stage.until(page.servers._job.command.isVisible)
    assert page.servers._job.command.label.text() == "apt-get install libvulkan-dev"


async def test_home_build_measure_and_gain(stage: Stage) -> None:
    page = home(stage)
    assert page.model.gain() == "Not measured on this machine."
    assert not page.servers.measure.isEnabled()
    QTest.mouseClick(page.servers.build, Qt.MouseButton.LeftButton)
    await stage.until(lambda: stage.host.sent("POST", "/v1/servers/build"))
    await stage.until(lambda: "Step 2 of 4" in page.servers._job._step.text())
    assert not page.servers.build.isEnabled()
    stage.host.publish(JobStepEvent(job=samples.job(JobKind.ENGINE_BUILD, JobState.DONE)))
    built = samples.servers(built=True)
    rows = tuple(
        SpeedRow(
            server=server,
            server_version="1",
            streams=1,
            decode_rate=rate,
            low=rate - 1,
            high=rate + 2,
            ttft=0.1,
        )
        for server, rate in ((ServerChoice.PREBUILT, 100.0), (ServerChoice.BUILT, 137.0))
    )
    comparison = SpeedComparison(model="sndr-demo", at=0.0, repeats=3, rows=rows)
    stage.host.servers = built.model_copy(update={"comparison": comparison})
    stage.host.publish(ServersChangedEvent())
    await stage.until(lambda: page.servers.measure.isEnabled())
    assert "+37 % at 1 stream" in page.model.gain()
    assert "± 2.0" in page.model.servers()[1].speed


async def test_home_disconnected_keeps_values_and_marks_their_age(stage: Stage) -> None:
    page = home(stage)
    await ready(stage)
    await stage.host.stop()
    await stage.until(lambda: not stage.link.connected)
    await stage.until(lambda: "last seen" in page.subtitle.text())
    assert not page.stop.isEnabled()
    assert page._cards[1].value.text() == "8 / 32 GiB"


# Launch.


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
    mend = next(made for made in page.plan.findings.findChildren(QPushButton) if made.text() == "Do it")
    assert mend.accessibleName() == "Build llama.cpp for this processor once."
    QTest.mouseClick(mend, Qt.MouseButton.LeftButton)
    await stage.until(lambda: stage.host.sent("POST", "/v1/servers/build"))
    assert mend.text() == "Do it"


async def test_launch_refused_plan_shows_the_problem(stage: Stage) -> None:
    stage.host.refuse["/v1/plans"] = Problem(reason=Reason.KV_TYPE_UNSUPPORTED, message="No such KV type.")
    page = launch(stage)
    await stage.until(lambda: page.plan.problem.isVisible())
    assert "No such KV type." in page.plan.problem._what.text()


async def test_launch_adds_a_folder(stage: Stage) -> None:
    launch(stage).model.models.add_folder("/more")
    await stage.until(lambda: stage.host.sent("POST", "/v1/models/scan") != [])
    assert stage.host.sent("PUT", "/v1/settings") == [{"values": {"models.folders": ["/models", "/more"]}}]


# Monitor.


def monitor(stage: Stage) -> MonitorView:
    stage.window.go("monitor")
    page = stage.window.page
    assert isinstance(page, MonitorView)
    return page


async def test_monitor_draws_history_with_gaps_then_live(stage: Stage) -> None:
    page = monitor(stage)
    await stage.until(lambda: page.model.loaded)
    await stage.until(lambda: page.rates.graph is not None and page.rates.graph._curves)
    assert page.rates.graph is not None
    _xs, ys = page.rates.graph._curves[0].getOriginalDataset()
    assert any(math.isnan(y) for y in ys), "a gap is a gap"
    before = len(page.model.lines["engine.decode_rate"].at)
    values = {"engine.engine-2.decode_rate": 99.0}
    stage.host.publish(TelemetryEvent(sample=Sample(at=time.time() + 2, values=values)))
    await stage.until(lambda: page.model.lines["engine.decode_rate"].latest == 99.0)
    assert len(page.model.lines["engine.decode_rate"].at) > before
    assert [line.title for line in page.model.memory()] == ["RAM used", "Engine RAM"]


async def test_monitor_lists_requests_and_cancels(stage: Stage) -> None:
    page = monitor(stage)
    assert not page.table.isVisible()
    stage.host.requests = [samples.request(RequestState.DECODE, 1)]
    stage.host.publish(EngineRequestEvent(request=stage.host.requests[0]))
    stage.host.publish(EngineRequestEvent(request=samples.request(RequestState.DONE, 2)))
    await stage.until(lambda: page.table.isVisible() and page.model.requests.total == 2)
    page.table.selectRow(0)
    assert page.cancel.isEnabled()
    QTest.mouseClick(page.cancel, Qt.MouseButton.LeftButton)
    await stage.until(lambda: ("DELETE", "/v1/engines/engine-1/requests/req-1", None) in stage.host.received)


async def test_monitor_disconnected_says_how_old_it_is(stage: Stage) -> None:
    page = monitor(stage)
    await stage.until(lambda: page.model.loaded)
    await stage.host.stop()
    await stage.until(lambda: "No connection" in page.subtitle.text())


# Logs.


def logs(stage: Stage) -> LogsView:
    stage.window.go("logs")
    page = stage.window.page
    assert isinstance(page, LogsView)
    return page


async def test_logs_filter_follow_and_append(stage: Stage) -> None:
    page = logs(stage)
    await stage.until(lambda: page.lines.blockCount() == 4)
    page.levels.setCurrentIndex(2)
    assert page.lines.toPlainText().endswith("out of memory")
    assert page.lines.blockCount() == 1
    page.levels.setCurrentIndex(0)
    page.sources.setCurrentIndex(page.sources.findData("host"))
    assert page.model.command() == "sndr logs host -f"
    line = LogLine(source="host", number=2, at=0.0, severity=Severity.INFO, text="one more")
    other = LogLine(source="engine-1", number=4, at=0.0, severity=Severity.INFO, text="hidden")
    stage.host.publish(LogLineEvent(lines=(line, other)))
    await stage.until(lambda: "one more" in page.lines.toPlainText())
    assert "hidden" not in page.lines.toPlainText()
    QTest.keyClicks(page.search, "nothing like it")
    await stage.until(lambda: page._empty.isVisible())
    assert page._empty.sentence.text() == "No line passes these filters."


async def test_logs_without_a_line_speak_of_no_filter(stage: Stage) -> None:
    stage.host.log_lines = []
    page = logs(stage)
    await stage.until(lambda: page.model.loaded)
    assert page._empty.isVisible()
    assert page._empty.sentence.text() == "There is no line yet."


async def test_logs_hold_ten_thousand_lines(stage: Stage) -> None:
    page = logs(stage)
    await stage.until(lambda: page.model.loaded)
    lines = tuple(
        LogLine(source="host", number=n, at=0.0, severity=Severity.INFO, text=f"line {n}")
        for n in range(12_000)
    )
    stage.host.publish(LogLineEvent(lines=lines))
    await stage.until(lambda: "line 11999" in page.lines.toPlainText())
    assert page.lines.blockCount() <= 10_000
