"""Bench has room for itself in a small window, with runs in it and names as long as real ones."""

import asyncio

from PySide6.QtWidgets import QScrollArea

from engine_host.protocol.bench.lab import LabEngine
from engine_host.protocol.engines import EngineState
from sndr_gui.views.bench.page import BenchView
from tests.unit.bench.lab.test_comparing import FAST, SLOW, made
from tests.views.conftest import Stage
from tests.views.samples import host as samples

NEW, OLD = "20260102-000000-quick-bbbb", "20260101-000000-quick-aaaa"
NAME = "a-model-with-a-name-as-long-as-those-of-real-ones-quantised-to-four-bits-instruct"


async def too_wide(stage: Stage) -> list[int]:
    """Return by how many pixels contents are wider than their view, at the smallest width of the window."""
    stage.window.resize(900, 640)
    stage.window.grab()
    await asyncio.sleep(0.15)
    stage.window.grab()
    over = []
    for area in stage.window.page.findChildren(QScrollArea):
        canvas = area.widget()
        if canvas is not None and area.isVisible() and canvas.width() > area.viewport().width():
            over.append(canvas.width() - area.viewport().width())
    return over


async def test_runs_and_long_names_give_way_to_a_small_window(stage: Stage) -> None:
    for name in ("engine-1", "engine-2"):
        engine = samples.engine(EngineState.READY)
        stage.host.set_engine(engine.model_copy(update={"id": name, "name": f"{NAME}-{name}"}))
    await stage.until(lambda: len(stage.state.engines) == 2)
    measured = LabEngine(address="s", id=NAME, model=NAME)
    stage.host.runs = [made(NEW, FAST, started_at=2.0, engine=measured), made(OLD, SLOW)]
    stage.window.go("bench")
    view = stage.window.page
    assert isinstance(view, BenchView)
    await stage.until(lambda: view.shown.isVisible())
    assert await too_wide(stage) == [], "a run"
    view.keep.click()
    view.table.selectRow(1)
    await stage.until(lambda: view.model.comparison is not None)
    assert await too_wide(stage) == [], "two runs"
