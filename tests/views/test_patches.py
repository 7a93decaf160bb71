"""The Patches page: rows, facets, live outcomes, the pane, and what its buttons send."""

import time

from PySide6.QtWidgets import QApplication

from engine_host.protocol import (
    BisectCheck,
    EngineState,
    PatchOutcome,
    PatchResult,
    ProcessRole,
)
from engine_host.protocol.events import PatchResultEvent
from sndr_gui.views.bisect import BisectDialog
from sndr_gui.views.patches import PatchesView
from tests.views import samples
from tests.views.conftest import Stage


async def page(stage: Stage, engine: str = "vllm") -> PatchesView:
    if engine:
        stage.host.set_engine(samples.engine(EngineState.READY, engine=engine, server_version="0.32.0"))
        await stage.until(lambda: stage.state.running is not None)
    stage.window.go("patches")
    view = stage.window.page
    assert isinstance(view, PatchesView)
    await stage.until(lambda: view.model.page is not None)
    return view


def states(view: PatchesView) -> list[str]:
    return [row.state for row in view.model.rows.shown]


async def test_each_row_shows_the_worst_outcome_of_its_processes(stage: Stage) -> None:
    view = await page(stage)
    await stage.until(lambda: "failed" in states(view))
    assert states(view)[:7] == ["applied"] * 5 + ["failed", "skipped"]
    assert [card.text() for card in view.cards] == [
        "API server\n2 applied",
        "EngineCore\n5 applied, 1 skipped, 1 failed",
    ]


async def test_a_click_on_a_process_narrows_the_table_and_a_second_one_widens_it(stage: Stage) -> None:
    view = await page(stage)
    await stage.until(lambda: len(view.cards) == 2)
    view.cards[0].click()
    assert len(view.model.rows.shown) == 2
    view.cards[0].click()
    assert len(view.model.rows.shown) == 12


async def test_results_arrive_while_the_engine_starts(stage: Stage) -> None:
    view = await page(stage)
    await stage.until(lambda: len(view.cards) == 2)
    result = PatchResult(patch="P0007", outcome=PatchOutcome.APPLIED, ms=2.0)
    stage.host.publish(
        PatchResultEvent(engine="engine-1", pid=13, role=ProcessRole.WORKER, rank=0, result=result)
    )
    await stage.until(lambda: len(view.cards) == 3)
    assert view.cards[2].text() == "Worker 0\n1 applied"
    assert states(view)[7] == "applied"


async def test_an_engine_without_an_overlay_says_so(stage: Stage) -> None:
    view = await page(stage, engine="llama.cpp")
    assert view.model.lesson[0] == "llama.cpp has no overlay"
    assert set(states(view)) == {"on"}


async def test_no_engine_shows_the_way_to_launch(stage: Stage) -> None:
    view = await page(stage, engine="")
    assert view.launch.isVisible()


async def test_the_pane_shows_the_change_and_sends_its_commands(stage: Stage) -> None:
    view = await page(stage)
    await stage.until(lambda: "failed" in states(view))
    view.table.selectRow(1)
    await stage.until(lambda: view.model.detail is not None)
    assert view.pane.isVisible()
    view.pane.switch.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/patches/switch"))
    assert stage.host.sent("POST", "/v1/patches/switch") == [{"names": ["P0001"], "to": "off"}]
    view.pane.probe.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/engines/engine-1/patches/probe"))
    view.pane.without.click()
    path = "/v1/engines/engine-1/patches/P0001/start-without"
    await stage.until(lambda: stage.host.sent("POST", path))


async def test_the_filter_and_the_facets_work_together(stage: Stage) -> None:
    view = await page(stage)
    view.filter.setText("loader")
    assert {row.patch.family for row in view.model.rows.shown} == {"loader"}
    box = view.choices["range"]
    box.setCurrentText("==0.32.0")
    box.activated.emit(box.currentIndex())
    assert not view.model.rows.shown


async def test_a_bisection_with_an_own_command_needs_a_readable_one(stage: Stage) -> None:
    view = await page(stage)
    begun: list[BisectCheck] = []
    dialog = BisectDialog(view, begun.append)
    dialog.check.setCurrentIndex(3)
    assert not dialog.start.isEnabled()
    dialog.command.setText("./check.sh 'open")
    assert not dialog.start.isEnabled()
    dialog.command.setText("./check.sh one")
    dialog.start.click()
    assert begun == [BisectCheck(command=("./check.sh", "one"))]
    dialog.deleteLater()


async def test_four_hundred_rows_are_filtered_within_a_click(stage: Stage) -> None:
    stage.host.patches = samples.patches(400)
    view = await page(stage)
    began = time.perf_counter()
    view.filter.setText("P02")
    QApplication.processEvents()
    assert time.perf_counter() - began < 0.5
    assert len(view.model.rows.shown) == 100
