"""One scrubber moves graphs, requests and logs; the panes below say who holds what."""

import time

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from engine_host.protocol.base import Severity
from engine_host.protocol.engines import EngineState
from engine_host.protocol.events import LogLineEvent
from engine_host.protocol.logs import LogLine
from engine_host.protocol.telemetry import EnergySource, GpuEnergy, MemoryDevice, MemoryPart, MemoryUser
from sndr_gui.kit import theme
from sndr_gui.kit.look.choices import Density, Look
from sndr_gui.models.monitor.graphs import GPUS, SETS
from sndr_gui.models.monitor.lines import Line
from sndr_gui.models.window.time_travel import STEPS
from sndr_gui.views.logs.page import LogsView
from sndr_gui.views.monitor.page import MEMORY, PANES, POOL
from tests.views.conftest import Stage
from tests.views.monitor.test_page import come, opened
from tests.views.samples import host as samples


async def test_one_scrubber_moves_graphs_requests_and_logs(stage: Stage) -> None:
    page = opened(stage)
    await come(stage, page, 10)
    await stage.until(lambda: page.graphs.rates.graph is not None and page.model.loaded)
    assert not page.time.back.isEnabled()
    page.time.slider.setFocus()
    QTest.keyClick(page.time.slider, Qt.Key.Key_Left)
    past = page.model.past
    assert past.at is not None
    assert page.time.said.text().startswith("You look at ")
    await stage.until(lambda: page.graphs.rates.graph._looked.isVisible())  # type: ignore[union-attr]
    # Before it came, the request is not in the list.
    request = stage.state.requests["req-10"]
    past.look_at(request.created_at - 1)
    await stage.until(lambda: page.model.requests.total == 0)
    assert "newest 200" in page._empty.text()
    now = time.time()
    lines = (
        LogLine(number=1, at=past.at - 1, source="host", severity=Severity.INFO, text="before it"),
        LogLine(number=2, at=now, source="host", severity=Severity.INFO, text="after it"),
    )
    stage.window.go("logs")
    logs = stage.window.page
    assert isinstance(logs, LogsView)
    await stage.until(lambda: logs.model.loaded)
    stage.host.publish(LogLineEvent(lines=lines))
    await stage.until(lambda: "before it" in logs.lines.toPlainText())
    assert "after it" not in logs.lines.toPlainText()
    assert logs.time.slider.value() < STEPS
    logs.time.slider.setFocus()
    QTest.keyClick(logs.time.slider, Qt.Key.Key_Escape)
    assert not past.said
    await stage.until(lambda: "after it" in logs.lines.toPlainText())
    stage.window.go("monitor")
    await stage.until(lambda: page.model.requests.total == 1)


@pytest.mark.parametrize("density", Density)
async def test_scrubber_stands_over_the_time_axis_of_the_graph(stage: Stage, density: Density) -> None:
    page = opened(stage)
    theme.wear(Look(density=density))
    await come(stage, page, 10)
    await stage.until(lambda: page.graphs.rates.graph is not None and page.model.loaded)
    graph, slider = page.graphs.rates.graph, page.time.slider
    assert graph is not None

    def ends() -> list[tuple[float, float]]:
        start, wide = slider._span()
        area, corner = graph._area(), graph.mapTo(page, QPoint()).x()
        groove = slider.mapTo(page, QPoint()).x() + start
        return [(groove, corner + area.left()), (groove + wide, corner + area.right())]

    try:
        await stage.until(lambda: all(abs(groove - axis) <= 2 for groove, axis in ends()))
    finally:
        theme.wear(Look())


async def test_memory_and_pool_are_read_while_they_are_looked_at(stage: Stage) -> None:
    page = opened(stage)
    weights = MemoryPart(name="weights", memory=4 << 30)
    ours = MemoryUser(
        pid=1,
        name="m",
        memory=6 << 30,
        engine="e",
        parts=(weights, MemoryPart(name="KV cache", memory=None)),
    )
    other = MemoryUser(pid=2, name="<img src=x>", memory=1 << 30)
    stage.host.memory = (
        MemoryDevice(name="GPU 0: card", total=24 << 30, used=8 << 30, users=(ours, other), rest=1 << 30),
    )
    assert page.model.holders.page is None
    page.panes.buttons[PANES.index(MEMORY)].click()
    await stage.until(lambda: len(page.holders.bars) == 1)
    assert not page.table.isVisible()
    described = page.holders.bars[0].accessibleDescription()
    assert "m: weights: 4 GiB" in described
    assert "<img src=x> (2)" in described
    assert "Not measured: m: KV cache." in described
    assert "the driver's list" in page.holders._said.text()
    # Without a GPU no driver was asked.
    stage.host.memory = (MemoryDevice(name="RAM", total=8 << 30, used=1 << 30, users=(), rest=1 << 30),)
    page.model.holders.load()
    await stage.until(lambda: "the system's list" in page.holders._said.text())
    assert page.model.energy.said == ""
    gpu = GpuEnergy(name="GPU 0", joules=3600.0, source=EnergySource.COUNTER, seconds=9.0)
    stage.host.energy = stage.host.energy.model_copy(update={"gpus": (gpu,)})
    page.graphs.sets.buttons[SETS.index(GPUS)].click()
    await stage.until(lambda: page.energy.text() == "3.6 kJ (1.00 Wh)  ·  the last 5 min")
    page.graphs.sets.buttons[0].click()
    assert page.energy.text() == ""
    page.panes.buttons[PANES.index(POOL)].click()
    assert "No engine tells" in page.pool.said.text()
    engine = samples.engine(EngineState.READY)
    stage.state.set_engine(engine)
    page._draw()
    name = f"engine.{engine.id}.kv.share"
    page.model._series[name] = Line(name, "share", "KV", "", at=[50.0], values=[0.25])
    page.model.past._edge, page.model.past.at = 60.0, 50.0
    pool = page.model.pool()
    assert (pool.filled if pool is not None else None) == 0.25
    page.model.past.back()
    assert (page.pool.map.isVisible(), "A map by share" in page.pool.said.text()) == (True, True)
