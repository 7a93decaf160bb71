"""The first run in the window: it tells, starts one thing, measures it, and never stands in the way."""

from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton

from engine_host.protocol.engines import EngineState
from engine_host.protocol.events import BenchChangedEvent, JobDoneEvent
from engine_host.protocol.jobs import JobKind, JobState
from engine_host.protocol.models import ModelOrigin
from sndr_gui.views.first_run.dialog import FirstRunDialog
from sndr_gui.views.first_run.opener import FirstRunOpener
from sndr_gui.views.settings.page import SettingsView
from tests.unit.bench.lab.test_comparing import FAST, made
from tests.views.conftest import Stage
from tests.views.conftest import opened as stage_opened
from tests.views.samples import host as samples

HOSTILE = "<b>Bold</b>\u202e<img src=x>"


def click(made: QPushButton) -> None:
    QTest.mouseClick(made, Qt.MouseButton.LeftButton)


def opened(stage: Stage) -> FirstRunDialog:
    opener = FirstRunOpener(stage.window, stage.pages.first_run, stage.pages.go)
    opener.open()
    assert opener.dialog is not None
    return opener.dialog


def words(dialog: FirstRunDialog) -> str:
    return "\n".join(one.text() for one in dialog.findChildren(QLabel) if one.isVisible())


async def test_it_tells_of_the_machine_and_its_models(stage: Stage) -> None:
    page = samples.models()
    other: dict[str, Any] = {"origin": ModelOrigin.OTHER_PROGRAM, "found_in": HOSTILE}
    dialog = opened(stage)
    mixed = (*page.models, samples.model("m", id="m", path="/m/m.gguf", **other))
    stage.state.set_models(page.model_copy(update={"models": mixed}))
    assert not dialog.isModal(), "the window works beside it"
    await stage.until(lambda: " presets fit" in words(dialog))
    await stage.until(lambda: HOSTILE in words(dialog))
    said = words(dialog)
    assert "RAM" in said
    assert "used where they are" in said
    for label in dialog.findChildren(QLabel):
        assert label.textFormat() == Qt.TextFormat.PlainText, label.text()
    for pressed in dialog.findChildren(QPushButton):
        assert pressed.accessibleName()
    assert not dialog.go_measure.isEnabled()
    cut = f"{dialog.measure.visibleRegion().boundingRect()} of {dialog.measure.rect()}"
    assert dialog.measure.visibleRegion().boundingRect() == dialog.measure.rect(), (
        f"the last card is cut: {cut}"
    )
    click(dialog.skip)
    assert not dialog.isVisible()


async def test_nothing_moves_below_the_machine_when_engines_are_told(stage: Stage) -> None:
    model = stage.pages.first_run
    servers, installations = stage.state.servers, stage.pages.installations.page
    names = [name for name, _ in model.machine()]
    assert names[-2:] == ["llama.cpp", "vLLM"]
    stage.state.servers = stage.pages.installations.page = None
    assert model.machine()[-2:] == (("llama.cpp", "not read yet"), ("vLLM", "not read yet"))
    stage.state.servers, stage.pages.installations.page = servers, installations
    assert [name for name, _ in model.machine()] == names


async def test_start_can_be_clicked_where_it_stays(stage: Stage) -> None:
    state = stage.state
    host, models = state.host, state.models
    state.host = state.models = None
    dialog = opened(stage)
    assert not dialog.start.isEnabled()
    where: list[int] = []

    class Enabled(QObject):
        """Notes where the button is when it can be clicked."""

        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() is QEvent.Type.EnabledChange and dialog.start.isEnabled():
                where.append(dialog.start.mapTo(dialog, QPoint()).y())
            return False

    noting = Enabled()
    dialog.start.installEventFilter(noting)
    before = dialog.start.mapTo(dialog, QPoint()).y()
    state.host, state.models = host, models
    state.host_changed.emit()
    state.models_changed.emit()
    await stage.until(dialog.start.isEnabled)
    await stage.until(lambda: " presets fit" in words(dialog))
    assert where == [dialog.start.mapTo(dialog, QPoint()).y()]
    assert where[0] > before, "what came made it move"
    dialog.start.removeEventFilter(noting)


async def test_that_somebody_closed_it_is_told_once(stage: Stage) -> None:
    opener = FirstRunOpener(stage.window, stage.pages.first_run, stage.pages.go)
    told: list[None] = []
    opener.closed.connect(lambda: told.append(None))
    opener.open()
    assert not told
    assert opener.dialog is not None
    click(opener.dialog.skip)
    assert told == [None]


async def test_it_starts_what_it_recommends_and_measures_it(stage: Stage) -> None:
    dialog = opened(stage)
    await stage.until(dialog.start.isEnabled)
    click(dialog.start)
    assert dialog.start.text() == "Starting…"
    await stage.until(lambda: any(path == "/v1/engines" and body for _, path, body in stage.host.received))
    stage.host.set_engine(samples.engine(EngineState.STARTING))
    await stage.until(dialog.cancel.isVisible)
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(dialog.go_measure.isEnabled)
    assert dialog.skip.text() == "Close"
    click(dialog.go_measure)
    await stage.until(dialog.job.isVisible)
    assert [(one.workload.value, one.engine, one.rounds) for one in stage.host.benched] == [
        ("quick", "sndr-demo", 3)
    ]
    earlier = made("20260101-000000-quick-aaaa", FAST)
    run = earlier.model_copy(
        update={
            "id": "20260102-000000-quick-bbbb",
            "engine": earlier.engine.model_copy(update={"id": samples.engine(EngineState.READY).id}),
        }
    )
    stage.host.runs = [earlier, run]
    stage.host.publish(BenchChangedEvent())
    before = samples.job(JobKind.BENCH_RUN, JobState.DONE, touches="bench", result={"runs": [earlier.id]})
    stage.host.publish(JobDoneEvent(job=before))
    bench = dialog.model.bench
    await stage.until(lambda: bench.runs.total == 2 and bench.newest is not None and bench.newest.ended)
    assert "decode, one stream" not in words(dialog), "it is of an earlier start"
    assert dialog.go_measure.text() == "Measure"
    done = samples.job(JobKind.BENCH_RUN, JobState.DONE, touches="bench", result={"runs": [run.id]})
    stage.host.publish(BenchChangedEvent())
    stage.host.publish(JobDoneEvent(job=done))
    await stage.until(lambda: "decode, one stream" in words(dialog))
    assert not dialog.job.isVisible(), "its figures stand there"
    click(dialog.chat)
    assert stage.window.current == "chat"
    assert not dialog.isVisible()


async def test_settings_and_the_palette_lead_back_to_it(stage: Stage) -> None:
    opener = FirstRunOpener(stage.window, stage.pages.first_run, stage.pages.go)
    stage.window.go("settings")
    page = stage.window.page
    assert isinstance(page, SettingsView)
    click(page.window_card.welcome)
    assert opener.dialog is not None
    first = opener.dialog
    click(page.window_card.welcome)
    assert opener.dialog is first, "it is brought to the front"
    first.reject()
    entry = next(one for one in stage.window._entries() if one.title == "Welcome")
    entry.run()
    again = opener.dialog
    assert again is not first, "a closed one is made anew"
    assert again.isVisible()
    again.reject()


async def test_before_the_host_is_there_nothing_is_said_to_be_missing(loop: object, tmp_path: Path) -> None:
    async with stage_opened(tmp_path, connect=False) as stage:
        dialog = opened(stage)
        assert "as soon as the engine host is there" in words(dialog)
        assert "is not there" not in words(dialog)
        assert not dialog.start.isEnabled()
        dialog.skip.click()
