"""At the smallest size of the window no page is cut off at the right."""

import asyncio
import time

import pytest
from PySide6.QtWidgets import QScrollArea

from engine_host.protocol.engines import EngineState, SpeedComparison, SpeedRow
from engine_host.protocol.launch.plans import ServerChoice
from sndr_gui.kit import theme
from sndr_gui.kit.look.choices import Density, Look, ThemeChoice
from tests.views.conftest import Stage
from tests.views.samples import host as samples
from tests.views.window.test_main import NAMES

# The window's least size, and what a small laptop leaves of its screen.
SIZES = ((900, 600), (1024, 640))


def measured() -> SpeedComparison:
    """Both servers measured, with rates that take room."""
    rows = tuple(
        SpeedRow(
            server=server,
            server_version="b9001",
            streams=1,
            decode_rate=1234.5,
            low=1200.0,
            high=1260.0,
            ttft=0.01,
        )
        for server in (ServerChoice.PREBUILT, ServerChoice.BUILT)
    )
    return SpeedComparison(at=time.time(), model="sndr-demo", repeats=3, rows=rows)


@pytest.mark.parametrize("state", [None, EngineState.STARTING, EngineState.READY, EngineState.FAILED])
async def test_no_page_is_wider_than_its_room(stage: Stage, state: EngineState | None) -> None:
    if state is not None:
        stage.host.set_engine(samples.engine(state))
        await stage.until(lambda: stage.state.engines)
    await stage.until(lambda: stage.state.servers)
    assert stage.state.servers is not None
    stage.state.servers = stage.state.servers.model_copy(update={"comparison": measured()})
    for name in NAMES:
        stage.window.go(name)
        for size in SIZES:
            stage.window.resize(*size)
            stage.window.grab()
            # Cards beside each other go below each other only once they know their width.
            await asyncio.sleep(0.15)
            stage.window.grab()
            assert (stage.window.width(), stage.window.height()) == size
            for area in stage.window.page.findChildren(QScrollArea):
                canvas = area.widget()
                if canvas is not None and area.isVisible() and canvas.layout() is not None:
                    assert canvas.width() <= area.viewport().width(), (name, size, area.accessibleName())


def over_empty_space(stage: Stage) -> list[str]:
    """The areas of the page that scroll further than their contents are high."""
    found = []
    for area in stage.window.page.findChildren(QScrollArea):
        canvas = area.widget()
        lines = canvas.layout() if canvas is not None else None
        if canvas is None or lines is None or not area.isVisible() or not lines.hasHeightForWidth():
            continue
        if area.verticalScrollBar().maximum() and canvas.height() > lines.heightForWidth(canvas.width()):
            found.append(area.accessibleName() or area.objectName())
    return found


@pytest.mark.parametrize("density", list(Density))
async def test_no_page_scrolls_over_empty_space(stage: Stage, density: Density) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.engines)
    theme.wear(Look(ThemeChoice.LIGHT))
    for name in NAMES:
        stage.window.go(name)
    # Denser than what the pages were laid out for.
    theme.wear(Look(ThemeChoice.LIGHT, density=density))
    for name in NAMES:
        stage.window.go(name)
        stage.window.resize(1280, 820)
        for _ in range(100):
            stage.window.grab()
            await asyncio.sleep(0.1)
            stage.window.grab()
            if not (found := over_empty_space(stage)):
                break
        # Its parts get their heights one after the other.
        assert not found, name
