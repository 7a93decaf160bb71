"""Several engines at a time: one is chosen for all pages, and none is taken for another."""

import time

from PySide6.QtCore import Qt
from PySide6.QtGui import QCloseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from engine_host.protocol.engines import Engine, EngineState, RequestState
from engine_host.protocol.events import EngineRequestEvent, TelemetryEvent
from engine_host.protocol.telemetry import Sample
from sndr_gui.models.monitor.graphs import RATES
from sndr_gui.views.chat.page import ChatView
from sndr_gui.views.engine.choice import EngineChoice
from sndr_gui.views.engine.page import EngineView
from sndr_gui.views.home.page import HomeView
from sndr_gui.views.leaving.question import LeaveDialog
from sndr_gui.views.logs.page import LogsView
from sndr_gui.views.monitor.page import MonitorView
from sndr_gui.views.patches.page import PatchesView
from sndr_gui.views.window.commands import commands
from tests.views.conftest import Stage
from tests.views.samples import engines as engine_samples
from tests.views.samples import host as samples

CHAT = "/openai/v1/chat/completions"
HOSTILE = "<img src=x>\u202e" + "very-long-name-" * 40


def first(state: EngineState = EngineState.READY) -> Engine:
    now = time.time()
    return samples.engine(state, name="first", created_at=now - 900, ready_at=now - 890)


def second(state: EngineState = EngineState.READY) -> Engine:
    at = time.time() - 300
    return engine_samples.vllm(state, id="engine-2", name="second", created_at=at)


async def both(stage: Stage, *more: Engine) -> None:
    """Two engines that run, the first of them chosen as it was there before."""
    for engine in (first(), second(), *more):
        stage.host.set_engine(engine)
    await stage.until(lambda: len(stage.state.live) == 2 + len(more))


def chosen(stage: Stage) -> str:
    return stage.state.engine.name if stage.state.engine is not None else ""


async def test_every_page_offers_the_choice_and_follows_it(stage: Stage) -> None:
    await both(stage)
    choices: list[EngineChoice] = []
    for name, kind in (
        ("chat", ChatView),
        ("engine", EngineView),
        ("patches", PatchesView),
        ("monitor", MonitorView),
    ):
        stage.window.go(name)
        page = stage.window.page
        assert isinstance(page, kind)
        choices.append(page.choice)
        assert page.choice.isVisible()
        assert "first" in page.choice.box.currentText()
        assert "running" in page.choice.box.currentText()
        await stage.until(lambda: "first" in stage.window.page.subtitle.text())
    box = choices[-1].box
    assert {box.itemText(place).split("  ·  ")[1] for place in range(2)} == {
        "llama.cpp prebuilt",
        "vLLM 0.32.0 (CPU)",
    }
    box.setFocus()
    QTest.keyClick(box, Qt.Key.Key_Up)
    assert chosen(stage) == "second"
    assert all("second" in one.box.currentText() for one in choices)
    assert "second" in stage.window.page.subtitle.text()


async def test_a_single_engine_leaves_nothing_to_choose(stage: Stage) -> None:
    stage.host.set_engine(first())
    await stage.until(lambda: stage.state.running)
    for name in ("chat", "engine", "patches", "monitor"):
        stage.window.go(name)
        assert not stage.window.page.choice.isVisible(), name  # type: ignore[attr-defined]
    stage.window.go("home")
    home = stage.window.page
    assert isinstance(home, HomeView)
    assert not home.engines.isVisible()
    assert home.stop.text() == "Stop"


async def test_another_start_moves_nothing_and_ones_own_is_shown(stage: Stage) -> None:
    stage.host.set_engine(first())
    await stage.until(lambda: stage.state.running)
    stage.host.set_engine(second(EngineState.STARTING))
    await stage.until(lambda: len(stage.state.live) == 2)
    assert chosen(stage) == "first"
    stage.pages.actions.start_model("sndr-demo")
    await stage.until(lambda: chosen(stage) == "sndr-demo")


async def test_home_has_a_row_for_each_and_acts_on_the_right_one(stage: Stage) -> None:
    stage.window.go("home")
    home = stage.window.page
    assert isinstance(home, HomeView)
    await both(stage)
    at = time.time() + 1
    values = {"engine.engine-1.decode_rate": 12.5, "engine.engine-2.decode_rate": 142.6}
    stage.host.publish(TelemetryEvent(sample=Sample(at=at, values=values)))
    await stage.until(
        lambda: [line.rate.text() for line in home.engines.lines] == ["12.5 tok/s now", "142.6 tok/s now"]
    )
    assert [line.name.text() for line in home.engines.lines] == ["first", "second"]
    assert home.stop.text() == "Stop first"
    home.engines.lines[1].name.click()
    assert chosen(stage) == "second"
    assert home.stop.text() == "Stop second"
    request = samples.request(RequestState.DECODE, engine="engine-1")
    stage.host.publish(EngineRequestEvent(request=request))
    await stage.until(lambda: home.engines.lines[0].requests.text() == "1 request")
    stop = home.engines.lines[0].stop
    stop.click()
    assert stop.text() == "Stop anyway"
    assert home.stop.text() == "Stop second", "the question is of the other one"
    stop.click()
    await stage.until(lambda: ("DELETE", "/v1/engines/engine-1", None) in stage.host.received)
    assert ("DELETE", "/v1/engines/engine-2", None) not in stage.host.received
    await stage.until(lambda: stop.text() == "Stopping…")
    assert home.stop.isEnabled()


async def test_a_row_opens_chat_and_engine_with_it(stage: Stage) -> None:
    stage.window.go("home")
    home = stage.window.page
    assert isinstance(home, HomeView)
    await both(stage)
    home.engines.lines[1].show_engine.click()
    assert (stage.window.current, chosen(stage)) == ("engine", "second")
    stage.window.go("home")
    home.engines.lines[0].chat.click()
    assert (stage.window.current, stage.pages.chat.model) == ("chat", "first")


async def test_a_conversation_keeps_its_engine_and_says_when_that_ended(stage: Stage) -> None:
    await both(stage)
    stage.window.go("chat")
    page = stage.window.page
    assert isinstance(page, ChatView)
    model = page.model
    model.send("Go")
    await stage.until(lambda: not model.busy and len(model.messages) == 2)
    stage.state.choose(stage.state.engines["engine-2"])
    assert model.model == "first", "what is chosen elsewhere does not change who is talked to"
    stage.host.set_engine(first(EngineState.UNLOADED))
    await stage.until(lambda: not model.available)
    assert page.subtitle.text() == "first, which this conversation is with, has ended."
    assert page.offer.isVisible()
    assert not page.again.isVisible()
    assert page.go_on.text() == "Continue with second"
    page.go_on.click()
    assert model.available
    model.send("And now?")
    await stage.until(lambda: not model.busy and len(model.messages) == 4)
    assert [body["model"] for body in stage.host.sent("POST", CHAT)] == ["first", "second"]
    assert model.messages[1].metrics().startswith("first  ·  ")
    assert model.messages[3].metrics().startswith("second  ·  ")
    model.new_chat()
    assert model.model == "second"


async def test_a_conversation_goes_on_with_its_model_started_again(stage: Stage) -> None:
    await both(stage)
    model = stage.pages.chat
    stage.window.go("chat")
    model.send("Go")
    await stage.until(lambda: not model.busy and len(model.messages) == 2)
    again = first().model_copy(update={"id": "engine-3", "created_at": time.time()})
    stage.host.set_engine(again)
    stage.host.set_engine(first(EngineState.UNLOADED))
    await stage.until(lambda: "engine-1" not in stage.state.engines)
    assert (model.available, model.model) == (True, "first")


async def test_monitor_shows_no_values_of_an_engine_that_runs_beside(stage: Stage) -> None:
    stage.window.go("monitor")
    page = stage.window.page
    assert isinstance(page, MonitorView)
    await both(stage)
    await stage.until(lambda: page.model.loaded)
    page.choice.box.setCurrentIndex(0)
    page.choice.box.activated.emit(0)
    assert chosen(stage) == "second"
    sample = Sample(at=time.time() + 2, values={"engine.engine-1.decode_rate": 10.0, "ram.used": 1.0})
    stage.host.publish(TelemetryEvent(sample=sample))
    page.choice.box.setCurrentIndex(1)
    page.choice.box.activated.emit(1)
    await stage.until(lambda: [line.latest for line in page.model.lines_of(RATES)] == [10.0])
    page.choice.box.setCurrentIndex(0)
    page.choice.box.activated.emit(0)
    assert page.model.lines_of(RATES) == [], "the first one's rate under the second one's name"


async def test_monitor_that_is_opened_late_shows_the_engine_in_its_title(stage: Stage) -> None:
    await both(stage)
    assert chosen(stage) == "first"
    stage.window.go("monitor")
    page = stage.window.page
    assert isinstance(page, MonitorView)
    await stage.until(lambda: page.model.loaded)
    # Nothing was heard of any engine since the page was made: its history is that of the first one.
    assert [line.latest for line in page.model.lines_of(RATES) if not line.ended] != []
    assert page.graphs.rates.title.text().endswith("first")


async def test_monitor_tells_engines_apart(stage: Stage) -> None:
    stage.window.go("monitor")
    page = stage.window.page
    assert isinstance(page, MonitorView)
    await both(stage)
    await stage.until(lambda: page.model.loaded)
    at = time.time() + 2
    for later, rates in ((0, (10.0, 20.0)), (1, (11.0, 21.0))):
        values = {f"engine.engine-{n}.decode_rate": rate for n, rate in zip((1, 2), rates, strict=True)}
        stage.host.publish(TelemetryEvent(sample=Sample(at=at + later, values=values)))

    def decode() -> float | None:
        return next(line for line in page.model.lines_of(RATES)).latest

    await stage.until(lambda: decode() == 11.0)
    page.choice.box.setCurrentIndex(0)
    page.choice.box.activated.emit(0)
    assert chosen(stage) == "second"
    assert decode() == 21.0
    assert "second" in page.graphs.rates.title.text()
    for number, engine in ((1, "engine-1"), (2, "engine-2")):
        request = samples.request(RequestState.DECODE, number, engine=engine)
        stage.host.publish(EngineRequestEvent(request=request))
    await stage.until(lambda: page.model.requests.total == 2)
    assert not page.table.isColumnHidden(2)
    assert page.only.isVisible()
    shown = {page.table.model().index(place, 2).data() for place in range(2)}
    assert shown == {"first", "second"}
    page.only.setCurrentIndex(1)
    page.only.activated.emit(1)
    assert [row.engine for row in page.model.requests.shown] == ["engine-1"]


async def test_the_palette_names_what_it_acts_on(stage: Stage) -> None:
    await both(stage)
    found = {entry.title: entry for entry in commands(stage.pages)}
    wanted = {f"{does} {name}" for does in ("Stop", "Chat with", "Show") for name in ("first", "second")}
    assert wanted <= found.keys()
    found["Show second"].run()
    assert (stage.window.current, chosen(stage)) == ("engine", "second")
    found["Chat with first"].run()
    assert (stage.window.current, stage.pages.chat.model) == ("chat", "first")
    found["Stop second"].run()
    await stage.until(lambda: ("DELETE", "/v1/engines/engine-2", None) in stage.host.received)


async def test_closing_names_every_engine_that_would_end(stage: Stage) -> None:
    await both(stage)
    stage.connection.owned = True
    stage.host.publish(EngineRequestEvent(request=samples.request(RequestState.DECODE)))
    await stage.until(lambda: stage.state.requests)
    QApplication.sendEvent(stage.window, QCloseEvent())
    (asked,) = stage.window.findChildren(LeaveDialog)
    said = [label.text() for label in asked.findChildren(QLabel)]
    assert "first and second would end with this window" in said
    assert "One request of another program is being answered." in said
    asked.reject()
    stage.connection.owned = False


async def test_an_engine_that_fails_behind_ones_back_is_told_of(stage: Stage) -> None:
    await both(stage)
    stage.host.set_engine(engine_samples.failed(id="engine-2", name="second"))
    await stage.until(lambda: stage.window.toasts.shown)
    notice = stage.window.toasts.shown[0]
    assert notice.text == "second failed. vLLM ended: there is no memory left for the KV cache."
    assert chosen(stage) == "first"
    assert notice.action is not None
    notice.action()
    assert (stage.window.current, chosen(stage)) == ("engine", "second")


async def test_lines_of_logs_say_whose_they_are(stage: Stage) -> None:
    await both(stage)
    stage.window.go("logs")
    page = stage.window.page
    assert isinstance(page, LogsView)
    await stage.until(lambda: "out of memory" in page.lines.toPlainText())
    assert "first          out of memory" in page.lines.toPlainText()
    stage.host.set_engine(first(EngineState.UNLOADED))
    await stage.until(lambda: "engine-1" not in stage.state.engines)
    assert page.model.source_title("engine-1") == "first (engine-1)"


async def test_requests_of_every_engine_are_there_after_connecting(stage: Stage) -> None:
    await both(stage)
    stage.host.requests = [samples.request(RequestState.DONE, 7)]
    await stage.connection._read("all")
    assert set(stage.state.requests) == {"req-7"}


async def test_a_hostile_name_widens_nothing_and_is_no_markup(stage: Stage) -> None:
    await both(stage, second().model_copy(update={"id": "engine-3", "name": HOSTILE}))
    stage.state.choose(stage.state.engines["engine-3"])
    stage.window.resize(900, 600)
    for name in ("home", "chat", "engine", "patches", "monitor"):
        stage.window.go(name)
        assert stage.window.width() == 900, name
        assert stage.window.page.minimumSizeHint().width() <= 900 - 208, name
