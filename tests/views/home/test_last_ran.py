"""What ran last is offered again: after Stop, after a crash, and by another run of the host."""

import time

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.launch.plans import DeviceNeed
from sndr_gui.models.window.palette import Entry
from sndr_gui.views.engine.page import EngineView
from sndr_gui.views.home.page import HomeView
from sndr_gui.views.leaving.tray import Tray
from sndr_gui.views.window.commands import commands
from tests.views.conftest import Stage
from tests.views.leaving.test_tray import labels
from tests.views.samples import host as samples


def ran(state: EngineState = EngineState.UNLOADED, **changes: object) -> Engine:
    needs = (DeviceNeed(device="GPU-1", bytes=5 * samples.GIB), DeviceNeed(device="memory", bytes=None))
    plan = samples.plan(name="qwen", model="qwen.gguf", needs=needs, command="sndr run qwen.gguf")
    now = time.time()
    known = {"name": "qwen", "plan": plan, "ready_at": now - 400, "ended_at": now - 300}
    return samples.engine(state, **(known | changes))


def home(stage: Stage) -> HomeView:
    stage.window.go("home")
    page = stage.window.page
    assert isinstance(page, HomeView)
    return page


def again(stage: Stage) -> list[Entry]:
    return [entry for entry in commands(stage.pages) if entry.title == "Start qwen again"]


async def test_after_stop_one_click_starts_the_same_again(stage: Stage) -> None:
    page = home(stage)
    await stage.until(page.hero.start.isVisible)
    assert not page.hero.again.isVisible(), "nothing ran yet"
    assert page.hero.start.property("primary") == "true"
    assert not again(stage)
    stage.host.set_engine(ran(EngineState.READY))
    await stage.until(page.stop.isVisible)
    assert not again(stage)
    stage.host.set_engine(ran())
    await stage.until(page.hero.again.isVisible)
    assert page.hero.again.text() == "Start qwen again"
    assert page.hero.again.accessibleName() == "Start qwen again"
    assert page.hero.start.property("primary") == "false", "one thing is the first to do"
    assert page.hero._state.sentence.text() == (
        "qwen ran last: llama.cpp prebuilt, 8,192 tokens of context, 5 GiB of GPU memory. Stopped 5 min ago."
    )
    assert page.hero.equivalent_command.label.text() == "sndr run qwen.gguf"
    QTest.mouseClick(page.hero.again, Qt.MouseButton.LeftButton)
    assert page.hero.again.text() == "Starting…"
    assert not page.hero.start.isEnabled()
    await stage.until(lambda: stage.host.sent("POST", "/v1/engines"))
    assert stage.host.sent("POST", "/v1/plans")[0]["overrides"]["streams"] == 4, "with its settings"


async def test_the_keys_the_palette_and_the_tray_do_the_same(stage: Stage) -> None:
    page = home(stage)
    stage.host.set_engine(ran())
    await stage.until(page.hero.again.isVisible)
    QTest.keyClick(page, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    await stage.until(lambda: len(stage.host.sent("POST", "/v1/engines")) == 1)
    await stage.until(lambda: not again(stage))
    stage.host.set_engine(ran())
    await stage.until(lambda: bool(again(stage)))
    again(stage)[0].run()
    await stage.until(lambda: len(stage.host.sent("POST", "/v1/engines")) == 2)
    stage.host.set_engine(ran())
    tray = Tray(stage.window, stage.pages.home, stage.window.show, lambda: False)
    await stage.until(lambda: "Start qwen again" in labels(tray))
    stage.window.go("engine")
    engine = stage.window.page
    assert isinstance(engine, EngineView)
    await stage.until(lambda: engine.again.isVisible() and engine.again.text() == "Start qwen again")
    assert (engine.again.property("primary"), engine.launch.property("primary")) == ("true", "false")


async def test_what_ran_last_is_not_offered_a_second_time_as_the_demo(stage: Stage) -> None:
    page = home(stage)
    await stage.until(page.hero.start.isVisible)
    stage.host.set_engine(ran(name="sndr-demo", plan=samples.plan()))
    await stage.until(page.hero.again.isVisible)
    assert page.hero.again.text() == "Start sndr-demo again"
    assert not page.hero.start.isVisible()
    tray = Tray(stage.window, stage.pages.home, stage.window.show, lambda: False)
    titles = {entry.title for entry in commands(stage.pages)}
    for offered in (labels(tray), titles):
        assert "Start sndr-demo again" in offered
        assert "Start the demo model" not in offered
    stage.host.set_engine(ran())
    await stage.until(page.hero.start.isVisible)
    assert "Start the demo model" in labels(tray), "another model ran since"


async def test_a_crash_before_the_host_was_started_anew_is_told_with_its_reason(stage: Stage) -> None:
    await stage.until(lambda: stage.pages.session.connection.connected)
    problem = samples.engine(EngineState.FAILED).problem
    stage.host.last = ran(EngineState.FAILED, problem=problem)
    await stage.host.stop()
    await stage.until(lambda: not stage.pages.session.connection.connected)
    await stage.host.start()
    page = home(stage)
    await stage.until(page.hero.again.isVisible)
    said = page.hero._state.sentence.text()
    assert "It failed 5 min ago. llama-server ended while it loaded the weights. It was killed for" in said
