"""The Engine page: none, starting, a vLLM that speculates, llama.cpp, failed; and what its controls do."""

import time

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLabel
from pytestqt.qtbot import QtBot

from engine_host.protocol.engines import EngineState, RequestState, StageTime
from engine_host.protocol.events import (
    EngineRequestEvent,
    EngineStageEvent,
    PatchResultEvent,
    TelemetryEvent,
)
from engine_host.protocol.launch.plans import Layer, Setting
from engine_host.protocol.patches import PatchOutcome, PatchResult, ProcessRole
from engine_host.protocol.telemetry import Sample
from sndr_gui.views.engine.page import EngineView
from sndr_gui.views.logs.page import LogsView
from sndr_gui.views.patches.page import PatchesView
from tests.views.conftest import Stage
from tests.views.samples import engines as engine_samples
from tests.views.samples import host as samples


def shown(stage: Stage) -> EngineView:
    stage.window.go("engine")
    page = stage.window.page
    assert isinstance(page, EngineView)
    return page


async def running(stage: Stage, engine: str = "vllm") -> EngineView:
    made = engine_samples.vllm if engine == "vllm" else samples.engine
    stage.host.set_engine(made(EngineState.READY))
    await stage.until(lambda: stage.state.running is not None)
    page = shown(stage)
    await stage.until(lambda: page.model.mode == "running" and page.cards)
    return page


async def sent(stage: Stage, times: int) -> None:
    """Wait until the window sent that many starts."""
    await stage.until(lambda: len(stage.host.sent("POST", "/v1/engines")) == times)


def values(page: EngineView) -> dict[str, tuple[str, str]]:
    return {card.caption.text(): (card.value.text(), card.note.text()) for card in page.cards}


def words(page: EngineView) -> list[str]:
    """Every visible text of the page."""
    return [label.text() for label in page.findChildren(QLabel) if label.isVisible()]


async def test_no_engine_teaches_and_leads_to_launch(stage: Stage) -> None:
    page = shown(stage)
    assert page.empty.isVisible()
    assert page.empty.heading.text() == "No engine runs"
    assert "sndr run --demo" in words(page)
    assert not page.stop.isVisible()
    assert not page.start.isVisible()
    QTest.mouseClick(page.launch, Qt.MouseButton.LeftButton)
    assert stage.window.current == "launch"


async def test_starting_shows_stages_that_count_and_can_be_given_up(stage: Stage) -> None:
    stage.host.set_engine(engine_samples.vllm(EngineState.STARTING))
    await stage.until(lambda: stage.state.running is not None)
    page = shown(stage)
    assert page.start.title.text() == "Starting sndr-demo"
    assert [row.state for row in page.model.stages()] == ["done", "done", "running"]
    assert page.start.stages.isVisible(), "nothing is folded while it starts"
    assert page.start.strip.accessibleName().startswith("Stages of the start: Overlay 2.0 s, Weights 20.0 s")
    assert not page.stop.isVisible()
    assert not any(card.isVisible() for card in page.cards), "there are no numbers yet"
    last = engine_samples.vllm(EngineState.STARTING).stages[-1]
    serving = last.model_copy(update={"name": "Serving", "started_at": time.time()})
    stage.host.publish(EngineStageEvent(engine="engine-1", stage=serving))
    await stage.until(lambda: len(page.model.stages()) == 4)
    assert [row.state for row in page.model.stages()] == ["done", "done", "done", "running"]
    QTest.mouseClick(page.start.cancel, Qt.MouseButton.LeftButton)
    assert page.start.cancel.text() == "Cancelling…"
    await stage.until(lambda: ("DELETE", "/v1/jobs/job-start", None) in stage.host.received)
    await stage.until(lambda: not page.model.actions.pending("cancel job-start"))


async def test_vllm_shows_what_it_reports(stage: Stage) -> None:
    page = await running(stage)
    found = values(page)
    assert found["Requests"] == ("2 of 4", "1 waiting")
    assert found["KV cache"] == ("25 %", "25k of 100k tokens")
    assert found["Prefix cache"] == ("40 %", "400 of 1,000 prompt tokens")
    assert found["Preemptions"] == ("3", "KV cache was full")
    assert found["First token (engine)"] == ("40 ms", "median of 12 requests")
    assert "Ready after 40.0 s" in words(page)
    assert page.start.title.accessibleDescription().startswith("From the start of the engine's process")
    rows = {row.name: (row.p50, row.p95, row.count) for row in page.model.latencies()}
    assert rows["Between tokens"] == ("11 ms", "20 ms", "400")
    assert rows["Queue"] == ("< 300 ms", "< 300 ms", "12"), "only its bound is known"
    assert "3.40 tokens per step  ·  240 of 300 draft tokens accepted, 80 %" in words(page)
    assert page.speculation.bars.accessibleName().endswith("1: 90 %, 2: 80 %, 3: 70 %")


async def test_what_is_not_measured_is_a_dash_that_says_why(stage: Stage) -> None:
    stage.host.telemetry = stage.host.telemetry.model_copy(update={"series": ()})
    page = await running(stage)
    nothing = engine_samples.readings(
        prefix_queries_total=None,
        preemptions_total=None,
        latencies=(),
        prompt_tokens_total=None,
        acceptance_length=None,
        draft_tokens_total=0,
        draft_accepted_total=0,
        acceptance_by_position=(),
        kv_capacity=None,
    )
    stage.host.set_engine(engine_samples.vllm(EngineState.READY, readings=nothing))
    await stage.until(lambda: values(page)["Prefix cache"][0] == "—")
    dashes = [card for card in page.cards if card.value.text() == "—"]
    names = {card.caption.text() for card in dashes}
    assert names >= {
        "Prefill, one request",
        "First token (engine)",
        "KV cache",
        "Prefix cache",
        "Preemptions",
    }
    assert all(card.toolTip() for card in dashes)
    assert page.speculation.sentence.text().startswith("No draft tokens were verified yet")
    assert not page.speculation.bars.isVisible()


async def test_a_prefix_cache_that_is_off_says_so(stage: Stage) -> None:
    page = await running(stage)
    engine = engine_samples.vllm(
        EngineState.READY, readings=engine_samples.readings(prefix_queries_total=0, prefix_hits_total=0)
    )
    off = engine.plan.settings[0].model_copy(update={"value": False, "why": "hybrid models lose it"})
    plan = engine.plan.model_copy(update={"settings": (off,)})
    stage.host.set_engine(engine.model_copy(update={"plan": plan}))
    await stage.until(lambda: values(page)["Prefix cache"] == ("—", "off"))
    card = next(card for card in page.cards if card.caption.text() == "Prefix cache")
    assert "hybrid models lose it" in card.toolTip()


async def test_graphs_follow_the_samples(stage: Stage) -> None:
    page = await running(stage)
    await stage.until(lambda: page.rates.graph is not None)
    sample = {"engine.engine-1.prefill_rate": 900.0, "engine.engine-1.requests.running": 3.0}
    stage.host.publish(TelemetryEvent(sample=Sample(at=time.time(), values=sample)))
    await stage.until(lambda: "900 tok/s" in words(page))
    running_line, _waiting = page.model.lines("requests.running", "requests.waiting")
    assert running_line.latest == 3.0
    await stage.until(lambda: values(page)["Prefill, one request"] == ("900 tok/s", "median over 60 s"))
    assert page.acceptance.isVisible()


async def test_processes_lead_to_their_patches(stage: Stage) -> None:
    page = await running(stage)
    await stage.until(lambda: len(page.patches.processes) == 2)
    said = [button.text() for button in page.patches.processes]
    assert said == ["API server:  2 applied", "EngineCore:  5 applied, 1 skipped, 1 failed"]
    facts = {fact.name: fact.value for fact in page.model.facts()}
    assert facts["Processes"] == "API server 11  ·  EngineCore 12"
    assert "hopper" in words(page), "what was left out is there with the reason"
    result = PatchResult(patch="P0001", outcome=PatchOutcome.APPLIED)
    event = PatchResultEvent(engine="engine-1", pid=13, role=ProcessRole.WORKER, rank=0, result=result)
    stage.host.publish(event)
    await stage.until(lambda: len(page.patches.processes) == 3)
    QTest.mouseClick(page.patches.processes[0], Qt.MouseButton.LeftButton)
    assert stage.window.current == "patches"
    patches = stage.window.page
    assert isinstance(patches, PatchesView)
    await stage.until(lambda: len(patches.model.rows.shown) == 2)
    assert patches.model.facets.pid == 11


async def test_llama_cpp_shows_what_the_endpoint_measured(stage: Stage) -> None:
    page = await running(stage, "llama.cpp")
    for number in range(1, 11):
        done = samples.request(
            RequestState.DONE,
            number,
            ttft=0.01 * number,
            ended_at=time.time(),
            prompt_tokens=100,
            cached_tokens=25,
            decode_rate=100.0,
        )
        stage.host.publish(EngineRequestEvent(request=done))
    await stage.until(lambda: values(page)["First token (endpoint)"] == ("55 ms", "median of 10 requests"))
    assert values(page)["Prefix cache"] == ("25 %", "250 of 1,000 prompt tokens")
    assert values(page)["Preemptions"] == ("—", "none in llama.cpp")
    rows = {row.name: (row.p50, row.p95) for row in page.model.latencies()}
    assert rows["First token"] == ("55 ms", "100 ms")
    assert rows["Between tokens"] == ("10 ms", "10 ms")
    assert not page.patches.isVisible()
    assert "none: llama.cpp has no overlay" in words(page)
    assert not page.speculation.isVisible(), "it was started without drafts"
    assert not page.acceptance.isVisible()


async def test_failed_says_where_why_and_what_to_do(stage: Stage) -> None:
    stage.host.set_engine(engine_samples.failed())
    await stage.until(lambda: stage.state.engine is not None)
    page = shown(stage)
    said = words(page)
    assert "Failed in stage “Memory profile”" in said
    assert "vLLM ended: there is no memory left for the KV cache." in said
    assert "sndr run sndr-demo --engine vllm --gpu-memory 0.95" in said
    assert any("No available memory for the cache blocks." in text for text in said)
    assert [row.state for row in page.model.stages()] == ["done", "done", "failed"]
    assert page.start.stages.isVisible()
    assert not any(card.isVisible() for card in page.cards), "a dead engine has no numbers"
    assert page.relaunch.isVisible()
    QTest.mouseClick(page.failure.log, Qt.MouseButton.LeftButton)
    assert isinstance(stage.window.page, LogsView)


async def test_a_refused_start_offers_no_log_and_no_stages(stage: Stage) -> None:
    """Nothing of it ever ran."""
    stage.host.set_engine(samples.engine(EngineState.FAILED, stages=(), ready_at=None, pid=None))
    await stage.until(lambda: stage.state.engine is not None)
    page = shown(stage)
    await stage.until(page.failure.isVisible)
    assert {fact.value for fact in page.model.facts() if fact.name == "State"} == {"Refused"}
    assert "Started" not in {fact.name for fact in page.model.facts()}
    assert not page.failure.log.isVisible()
    assert not page.log.isVisible()
    assert not page.start.isVisible()
    assert page.relaunch.isVisible()


async def test_threads_are_those_of_the_engine(stage: Stage) -> None:
    setting = Setting(name="threads", value=4, layer=Layer.HARDWARE, why="")
    stage.host.set_engine(samples.engine(EngineState.READY, plan=samples.plan(settings=(setting,))))
    await stage.until(lambda: stage.state.running)
    assert "4 of 16 CPU threads" in shown(stage).subtitle.text()


async def test_another_start_can_be_chosen(stage: Stage) -> None:
    old = engine_samples.failed(id="engine-0", created_at=time.time() - 300)
    stage.host.set_engine(old)
    page = await running(stage)
    await stage.until(lambda: page.choice.box.isVisible())
    assert page.choice.box.count() == 2
    stage.window.grab()
    assert page.choice.box.width() >= page.choice.box.sizeHint().width(), "its end says which start it is"
    page.choice.box.setCurrentIndex(1)
    page.choice.box.activated.emit(1)
    assert page.failure.isVisible()
    assert not page.stop.isVisible()
    assert not page.relaunch.isVisible(), "starting it again would end the one that runs"
    page.choice.box.setCurrentIndex(0)
    page.choice.box.activated.emit(0)
    assert page.stop.isVisible()
    assert not page.failure.isVisible()


async def test_stop_asks_once_more_while_requests_run(stage: Stage) -> None:
    page = await running(stage)
    stage.host.publish(EngineRequestEvent(request=samples.request(RequestState.DECODE)))
    await stage.until(lambda: stage.state.requests)
    QTest.mouseClick(page.stop, Qt.MouseButton.LeftButton)
    assert page.stop.text() == "1 request is running. Stop anyway"
    assert not stage.host.received
    QTest.mouseClick(page.stop, Qt.MouseButton.LeftButton)
    await stage.until(lambda: ("DELETE", "/v1/engines/engine-1", None) in stage.host.received)
    await stage.until(lambda: page.stop.text() == "Stopping…")
    assert not page.stop.isEnabled()
    await stage.until(lambda: not page.model.actions.pending("stop engine-1"))


async def test_relaunch_keeps_its_keys(stage: Stage, qtbot: QtBot) -> None:
    page = await running(stage)
    with qtbot.waitActive(stage.window):
        stage.window.activateWindow()
    for times in (1, 2):
        QTest.keyClick(stage.window, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
        await sent(stage, times)
        stage.host.set_engine(engine_samples.vllm(EngineState.READY))
        await stage.until(lambda: page.model.mode == "running" and page.relaunch.isEnabled())


async def test_command_lines_are_copied_and_settings_open(stage: Stage) -> None:
    page = await running(stage)
    page.facts.argv._copy.click()
    copied = QGuiApplication.clipboard().text()
    assert copied == """python -m vllm serve /models/demo --speculative-config '{"method": "mtp"}'"""
    assert not page.settings.inner.isVisible()
    page.settings.fold.click()
    assert page.settings.inner.isVisible()
    assert "prefix_caching" in words(page)
    page.start.fold.click()
    assert page.start.stages.isVisible()


async def test_a_lost_host_keeps_the_page_and_its_buttons_wait(stage: Stage) -> None:
    page = await running(stage)
    await stage.host.stop()
    await stage.until(lambda: "last seen" in page.subtitle.text())
    assert page.start.isVisible()
    assert not page.stop.isEnabled()
    assert not page.relaunch.isEnabled()


async def test_every_control_has_a_name_and_can_be_reached(stage: Stage) -> None:
    stage.host.set_engine(engine_samples.failed(id="engine-0", created_at=time.time() - 300))
    page = await running(stage)
    await stage.until(lambda: page.choice.box.isVisible())
    for kind in (QAbstractButton, QComboBox):
        for control in page.findChildren(kind):
            if control.isVisible():
                face = QAccessible.queryAccessibleInterface(control)
                assert face.text(QAccessible.Text.Name), control
                assert control.focusPolicy() & Qt.FocusPolicy.TabFocus, control


async def test_it_fits_a_small_window(stage: Stage) -> None:
    page = await running(stage)
    for width, height in ((900, 600), (1440, 900)):
        stage.window.resize(width, height)
        stage.window.grab()
        parts = [*page.cards, *page.graphs, page.latencies, page.speculation, page.patches, page.facts]
        for part in parts:
            right = part.mapTo(page, part.rect().topRight()).x()
            assert right <= page.width(), "nothing is cut off at the right"
            for other in parts:
                inside = part.parentWidget() is other.parentWidget() and part is not other
                assert not inside or not part.geometry().intersects(other.geometry())


async def test_of_two_times_of_a_stage_each_says_whose_it_is(stage: Stage) -> None:
    now = time.time()
    said = "engine initialised in 3.25 s"
    serving = StageTime(name="Serving", detail=said, started_at=now - 5, ended_at=now - 3.3)
    stage.host.set_engine(engine_samples.vllm(EngineState.READY, stages=(serving,)))
    await stage.until(lambda: stage.state.running)
    page = shown(stage)
    page.start.fold.click()
    _picture, _name, detail, took = page.start.stages._lines[0]
    assert detail.text() == said
    assert took.text() == "1.7 s"
    assert took.accessibleName() == "Serving took 1.7 s"
    assert "took" in took.toolTip()
