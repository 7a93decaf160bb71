"""Home: empty, starting, ready, failed, disconnected; and the requests of its buttons."""

import time
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from engine_host.protocol.endpoint.example import EXAMPLE_QUESTION
from engine_host.protocol.endpoint.on_demand import LoadSetting, OnDemandChange, OnDemandState
from engine_host.protocol.engines import EngineState, RequestState, SpeedComparison, SpeedRow
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.events import (
    EngineRequestEvent,
    EngineStageEvent,
    JobStepEvent,
    OnDemandEvent,
    ServersChangedEvent,
    TelemetryEvent,
)
from engine_host.protocol.jobs import JobKind, JobState
from engine_host.protocol.launch.plans import ServerChoice
from engine_host.protocol.telemetry import Sample
from sndr_gui.views.home.page import HomeView
from sndr_gui.views.logs.page import LogsView
from sndr_gui.views.widgets.fields import ChoiceBox
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


async def test_home_empty_teaches_and_starts_the_demo(stage: Stage) -> None:
    page = home(stage)
    assert page.hero.isVisible()
    assert not page.stop.isVisible()
    QTest.mouseClick(page.hero.start, Qt.MouseButton.LeftButton)
    assert page.hero.start.text() == "Starting…", "a click answers at once"
    await stage.until(lambda: page.starting.isVisible())
    assert stage.host.sent("POST", "/v1/plans")[0]["model"] == "sndr-demo"
    sent = stage.host.sent("POST", "/v1/engines")
    assert sent == [{"plan": "plan-1", "replace": True, "consent": None}]
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


async def test_the_snippets_ask_what_every_example_asks_and_stream(stage: Stage) -> None:
    page = home(stage)
    await ready(stage)
    for form, streams in (("curl", '"stream": true'), ("python", "stream=True")):
        text = page.model.snippet(form)
        assert EXAMPLE_QUESTION in text
        assert streams in text


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
    assert page.record.label.text() == "sndr autopsy engine-1"
    QTest.mouseClick(page.failure.log, Qt.MouseButton.LeftButton)
    assert stage.window.current == "logs"
    logs = stage.window.page
    assert isinstance(logs, LogsView)
    await stage.until(lambda: logs.lines.textCursor().selectedText().endswith("out of memory"))


async def test_a_start_that_is_refused_is_kept_among_the_failed_ones(stage: Stage) -> None:
    page = home(stage)
    stage.host.refuse["/v1/plans"] = Problem(reason=Reason.MODEL_FILE_MISSING, message="It is cut off.")
    await stage.until(lambda: page.model.actions.demo_model())
    page.model.start_demo()
    await stage.until(lambda: stage.host.sent("POST", "/v1/engines/refused"))
    await stage.until(lambda: page.model.actions.problem)
    assert page.model.actions.problem is not None
    assert page.model.actions.problem.message == "It is cut off."


async def test_home_builds_for_what_is_chosen(stage: Stage) -> None:
    page = home(stage)
    assert "sndr engine build llama.cpp" in page.servers.build.toolTip()
    page.servers.target.setFocus()
    QTest.keyClick(page.servers.target, Qt.Key.Key_End)
    assert page.servers.target.currentText() == "CPU"
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
    assert page.model.gain() == "The servers have not been compared on this machine."
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
    await stage.until(lambda: not stage.connection.connected)
    await stage.until(lambda: "last seen" in page.subtitle.text())
    assert not page.stop.isEnabled()
    assert page._cards[1].value.text() == "8 / 32 GiB"


async def test_a_model_is_loaded_with_other_settings_for_once(stage: Stage) -> None:
    page = home(stage)
    host = stage.host
    host.load_settings = (
        LoadSetting(name="context", caption="Context", help="tokens", kind="whole", unit="tokens",
                    minimum=128, maximum=4096, step=1, value=1024, given=True),
        LoadSetting(name="flash_attention", caption="Flash attention", help="h", kind="choice",
                    choices=("auto", "on", "off"), value="auto"),
        LoadSetting(name="extra_arguments", caption="<b>More</b>", help="h", kind="words"),
    )  # fmt: skip
    host.on_demand["small"] = samples.on_demand(OnDemandState.LOADABLE)
    host.publish(OnDemandEvent(change=OnDemandChange.USED, model=host.on_demand["small"]))
    await stage.until(lambda: page.on_demand.isVisible())
    line = page.on_demand.lines[0]
    QTest.mouseClick(line.other, Qt.MouseButton.LeftButton)
    await stage.until(lambda: line.dialog is not None)
    dialog = line.dialog
    assert dialog is not None
    context, flash = dialog.fields["context"], dialog.fields["flash_attention"]
    assert isinstance(context, QLineEdit)
    assert isinstance(flash, ChoiceBox)
    assert context.placeholderText() == "1024 tokens"
    assert context.accessibleDescription() == "tokens (128 to 4,096 tokens)"
    for typed in ("5,000", "12", "1.5", "much", "nan"):
        context.setText(typed)
        assert not dialog.send.isEnabled()
        assert dialog.wrong.text().startswith("Context")
    context.setText("2,048")
    flash.setCurrentIndex(2)
    assert dialog.send.isEnabled()
    assert dialog.command.label.text() == (
        "sndr on-demand load small --set context=2048 --set flash_attention=on"
    )
    dialog.send.click()
    await stage.until(lambda: bool(host.sent("POST", "/v1/on-demand/small/load")))
    overrides = host.sent("POST", "/v1/on-demand/small/load")[0]["overrides"]
    assert (overrides["context"], overrides["flash_attention"]) == (2048, "on")
    await stage.until(lambda: line.dialog is None)


async def test_models_on_demand_say_what_they_do_and_are_loaded_and_ended(stage: Stage) -> None:
    page = home(stage)
    assert not page.on_demand.isVisible(), "nothing is loaded on demand"
    host = stage.host

    def change(state: OnDemandState, **fields: Any) -> None:
        host.on_demand["small"] = samples.on_demand(state, **fields)
        host.publish(OnDemandEvent(change=OnDemandChange.USED, model=host.on_demand["small"]))

    change(OnDemandState.LOADABLE)
    await stage.until(lambda: page.on_demand.isVisible())
    line = page.on_demand.lines[0]
    assert (line.state.text(), line.act.accessibleName()) == ("loadable", "Load small")
    QTest.mouseClick(line.act, Qt.MouseButton.LeftButton)
    await stage.until(lambda: bool(host.sent("POST", "/v1/on-demand/small/load")))
    change(OnDemandState.LOADING, waiting=2)
    await stage.until(lambda: line.state.text() == "loading, 2 requests wait")
    change(OnDemandState.LOADED, last_used=time.time() - 180, unloads_at=time.time() + 420, engine="e")
    await stage.until(lambda: line.state.text().startswith("idle for 3 min"))
    assert "stops in " in line.state.text()
    assert line.act.accessibleName() == "Unload small"
    QTest.mouseClick(line.act, Qt.MouseButton.LeftButton)
    await stage.until(lambda: bool(host.sent("POST", "/v1/on-demand/small/unload")))
    problem = Problem(reason=Reason.OUT_OF_MEMORY, message="There is no room <b>for</b> small.")
    change(OnDemandState.LOADABLE, problem=problem)
    await stage.until(lambda: line.state.text() == "loadable")
    QTest.mouseClick(line.remove, Qt.MouseButton.LeftButton)
    await stage.until(lambda: not host.on_demand)
    host.publish(OnDemandEvent(change=OnDemandChange.REMOVED, model=samples.on_demand()))
    await stage.until(lambda: not page.on_demand.isVisible())


async def test_a_model_on_demand_that_answers_is_not_unloaded_by_one_click(stage: Stage) -> None:
    page, host = home(stage), stage.host
    engine = samples.engine(EngineState.READY, name="small")
    host.set_engine(engine)
    host.publish(EngineRequestEvent(request=samples.request(RequestState.DECODE)))
    host.on_demand["small"] = samples.on_demand(OnDemandState.LOADED, engine=engine.id)
    host.publish(OnDemandEvent(change=OnDemandChange.USED, model=host.on_demand["small"]))
    await stage.until(lambda: page.on_demand.isVisible() and stage.state.open_requests(engine.id))
    line = page.on_demand.lines[0]
    line.act.click()
    assert [notice.text for notice in stage.window.toasts.shown] == ["small: 1 request is running."]
    assert not host.sent("POST", "/v1/on-demand/small/unload")
    line.act.click()
    await stage.until(lambda: bool(host.sent("POST", "/v1/on-demand/small/unload")))


async def test_cards_are_no_higher_in_a_large_window(stage: Stage) -> None:
    page = home(stage)
    await ready(stage)
    stage.window.resize(1280, 820)
    stage.window.grab()
    await stage.until(lambda: page._cards_row.height() > 0)
    before = page._cards_row.height()
    stage.window.resize(2560, 1440)
    stage.window.grab()
    await stage.until(lambda: page.width() > 2000)
    stage.window.grab()
    assert page._cards_row.height() <= before
    assert page._trend_card.height() == page._trend_card.maximumHeight()


async def test_home_says_where_the_key_that_the_endpoint_asks_for_is_made(stage: Stage) -> None:
    page = home(stage)
    host = stage.state.host
    assert host is not None
    locked = host.endpoint.model_copy(update={"key_required": True})
    stage.state.host = host.model_copy(update={"endpoint": locked})
    assert ": sndr keys create NAME makes one" in page.model.reach()
    assert "file" not in page.model.reach(), "keys are hashes, and no file is edited"
