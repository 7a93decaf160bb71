"""The memory of a start on Launch is computed again when what it was computed with has changed."""

import asyncio
import time

import pytest

from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import PresetsChangedEvent, TelemetryEvent
from engine_host.protocol.presets import PresetPage
from engine_host.protocol.telemetry import Sample
from sndr_gui.models.fit import memory_watch
from sndr_gui.views.launch.page import LaunchView
from tests.views.conftest import Stage
from tests.views.launch.opened import FIT, GIB, VERDICTS, page
from tests.views.samples import host as samples
from tests.views.widgets.visible_text import visible_text


async def test_memory_is_computed_again_when_what_others_hold_has_moved(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = await page(stage, "big-24")
    await stage.until(lambda: view.model.fit.report is not None and not view.model.fit.waiting)
    monkeypatch.setattr(memory_watch, "_APART", 0.0)

    async def measure(used: float) -> int:
        before = len(stage.host.sent("POST", FIT))
        stage.host.publish(TelemetryEvent(sample=Sample(at=time.time(), values={"ram.used": used * GIB})))
        await stage.until(lambda: stage.state.measured("ram.used") == used * GIB)
        await asyncio.sleep(0.15)
        return len(stage.host.sent("POST", FIT)) - before

    assert await measure(4.0) == 0, "nothing to compare it with"
    assert await measure(4.2) == 0, "too little to matter"
    assert await measure(2.0) == 1
    assert await measure(2.1) == 0, "compared with what the newest answer was made beside"
    stage.host.set_engine(samples.engine(EngineState.STARTING))
    await stage.until(lambda: view.model.watch.starting)
    assert await measure(8.0) == 0, "what is being loaded is on the move"


async def test_memory_is_computed_again_when_an_engine_came_or_went(stage: Stage) -> None:
    view = await page(stage)
    before = len(stage.host.sent("POST", FIT))
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: len(stage.host.sent("POST", FIT)) > before)
    await stage.until(lambda: not view.model.fit.waiting)


async def test_a_preset_that_was_written_anew_is_computed_anew(stage: Stage) -> None:
    view = await page(stage, "big-24")
    before = len(stage.host.sent("POST", FIT))
    changed = tuple(
        item.model_copy(update={"digest": "d2"}) if item.preset.id == "big-24" else item
        for item in stage.host.presets.presets
    )
    stage.host.presets = PresetPage(seq=0, presets=changed)
    stage.host.publish(PresetsChangedEvent())
    await stage.until(lambda: len(stage.host.sent("POST", FIT)) > before)
    assert view.model.presets.chosen == "big-24"


async def test_a_refused_question_keeps_its_sentence_and_is_tried_again(stage: Stage) -> None:
    stage.host.refuse[FIT] = Problem(reason=Reason.UNSUPPORTED, message="The shape of Big is not known.")
    stage.window.go("launch")
    view = stage.window.page
    assert isinstance(view, LaunchView)
    await stage.until(lambda: view.sizes.problem.isVisible())
    assert "The shape of Big is not known." in visible_text(view.sizes)
    assert not view.sizes.memory.isVisible()
    stage.host.refuse.clear()
    view.sizes.again.click()
    await stage.until(lambda: view.sizes.memory.isVisible() and view.model.fit.report is not None)


async def test_a_start_that_runs_makes_room_again_when_it_ends(stage: Stage) -> None:
    view = await page(stage)
    before = len(stage.host.sent("POST", VERDICTS))
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: len(stage.host.sent("POST", VERDICTS)) > before)
    assert view.model.presets.verdicts is not None


async def test_the_card_is_as_high_as_its_parts_while_the_first_answer_is_waited_for(stage: Stage) -> None:
    stage.host.fit_seconds = 0.4
    stage.window.go("launch")
    view = stage.window.page
    assert isinstance(view, LaunchView)
    card = view.sizes
    while view.model.fit.waiting or view.model.fit.report is None:
        # What is waited for has no height yet that could be kept.
        assert card.minimumHeight() == 0
        await asyncio.sleep(0.02)
    await stage.until(lambda: card.minimumHeight() == 0 and card.isVisible())
    height = card.height()
    view.model.fit.refresh()
    await stage.until(lambda: view.model.fit.waiting)
    assert card.minimumHeight() >= height
    await stage.until(lambda: not view.model.fit.waiting)
