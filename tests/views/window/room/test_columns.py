"""Columns keep room for their headings and short values, beside a pane and in the smallest window."""

import asyncio

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from engine_host.protocol.engines import EngineState, RequestState
from engine_host.protocol.events import EngineRequestEvent
from sndr_gui.kit.rows import RowsModel
from sndr_gui.views.launch.page import LaunchView
from sndr_gui.views.monitor.page import MonitorView
from sndr_gui.views.patches.page import PatchesView
from sndr_gui.views.presets.page import PresetsView
from sndr_gui.views.widgets.tables import Table
from tests.views.conftest import Stage
from tests.views.fakes.real_catalog import RealCatalog
from tests.views.launch import opened as launch
from tests.views.samples import host as samples

SIZES = ((900, 600), (1280, 820))


async def resized(stage: Stage, size: tuple[int, int]) -> None:
    stage.window.resize(*size)
    stage.window.grab()
    await asyncio.sleep(0.1)
    stage.window.grab()


def squeezed(table: Table) -> list[str]:
    """The visible columns that are too narrow for their heading."""
    header, model = table.horizontalHeader(), table.model()
    return [
        str(model.headerData(place, Qt.Orientation.Horizontal))
        for place in range(model.columnCount())
        if not table.isColumnHidden(place) and table.columnWidth(place) < header.sectionSizeHint(place)
    ]


def cut(table: Table, column: int) -> list[str]:
    """The values of a column that do not fit it."""
    model, metrics = table.model(), table.fontMetrics()
    values = [str(model.index(row, column).data()) for row in range(model.rowCount())]
    return [value for value in values if metrics.horizontalAdvance(value) > table.columnWidth(column) - 16]


def scrolls(table: Table) -> bool:
    return table.horizontalScrollBar().maximum() > 0


@pytest.mark.parametrize("size", [*SIZES, (1400, 900)])
async def test_patches_beside_the_pane(stage: Stage, size: tuple[int, int]) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY, engine="vllm", plan=samples.vllm_plan()))
    stage.window.go("patches")
    view = stage.window.page
    assert isinstance(view, PatchesView)
    await stage.until(lambda: view.model.page is not None)
    view.table.selectRow(0)
    await stage.until(lambda: view.model.patch is not None)
    await resized(stage, size)
    assert squeezed(view.table) == []
    assert not scrolls(view.table)
    # What tells patches apart is whole, in words or as the id.
    assert cut(view.table, 0) == [] or not view.table.isColumnHidden(1)


async def test_every_column_of_requests_is_in_sight_with_two_engines(stage: Stage) -> None:
    stage.window.go("monitor")
    view = stage.window.page
    assert isinstance(view, MonitorView)
    for number, engine in ((1, "engine-1"), (2, "engine-2")):
        request = samples.request(RequestState.DECODE, number).model_copy(update={"engine": engine})
        stage.host.publish(EngineRequestEvent(request=request))
    await stage.until(lambda: view.model.requests.total == 2)
    view.table.setColumnHidden(2, False)
    await resized(stage, (1280, 820))
    header = view.table.horizontalHeader()
    assert squeezed(view.table) == []
    assert not scrolls(view.table)
    assert header.length() <= view.table.viewport().width()
    await resized(stage, (900, 600))
    assert squeezed(view.table) == []
    assert scrolls(view.table) or header.length() <= view.table.viewport().width()
    await resized(stage, (1800, 900))
    assert view.table.columnWidth(2) > 130, "with room they share it"


@pytest.mark.parametrize("size", SIZES)
async def test_layers_of_a_preset_are_whole_and_have_a_tooltip(stage: Stage, size: tuple[int, int]) -> None:
    catalogue = RealCatalog(stage, stage.file.folder)
    stage.window.go("presets")
    view = stage.window.page
    assert isinstance(view, PresetsView)
    await stage.until(lambda: view.model.items)
    view.model.edit("demo-llamacpp", {})
    table = view.pane.settings
    rows: RowsModel[object] = table.model()  # type: ignore[assignment]
    await stage.until(lambda: rows.rowCount())
    view.pane.views.buttons[1].click()
    await resized(stage, size)
    assert squeezed(table) == []
    assert cut(table, 2) == []
    assert not scrolls(table)
    layers = {rows.index(row, 2).data() for row in range(rows.rowCount())}
    assert "engine default" in layers
    assert rows.index(0, 2).data(Qt.ItemDataRole.ToolTipRole) == rows.index(0, 2).data()
    catalogue.store.close()


@pytest.mark.parametrize("size", SIZES)
async def test_values_of_the_plan_are_not_squeezed_by_their_layers(
    stage: Stage, size: tuple[int, int]
) -> None:
    view: LaunchView = await launch.page(stage, "demo-llamacpp")
    await stage.until(lambda: view.model.plan is not None)
    await resized(stage, size)
    grid = view.plan.settings
    rows = view.model.setting_rows()
    assert any(row.layer == "engine default" for row in rows)
    labels = grid.findChildren(QLabel, options=Qt.FindChildOption.FindDirectChildrenOnly)
    for place, row in enumerate(rows):
        _name, value, layer, why = labels[4 * place : 4 * place + 4]
        short = len(row.value) <= 8
        assert not short or value.fontMetrics().horizontalAdvance(row.value) <= value.width(), row
        assert row.layer in layer.toolTip()
        assert row.why in layer.toolTip()
        assert why.isVisibleTo(grid) is (size[0] > 1000)
