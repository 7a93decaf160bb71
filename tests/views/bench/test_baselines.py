"""The row of the bench lab for baselines: set, taken back, and a run held to one."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from engine_host.protocol.bench.lab import LabRun
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import BenchChangedEvent
from sndr_gui.views.bench.page import BenchView
from tests.unit.bench.lab.test_comparing import FAST, SLOW, made
from tests.views.conftest import Stage

OLD = "20260101-000000-quick-aaaa"
NEW = "20260102-000000-quick-bbbb"


def click(button: QPushButton) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


async def shown(stage: Stage, *runs: LabRun) -> BenchView:
    stage.host.runs = list(runs)
    stage.window.go("bench")
    page = stage.window.page
    assert isinstance(page, BenchView)
    await stage.until(lambda: page.shown.isVisible())
    return page


async def test_a_run_is_made_the_baseline_and_a_slower_one_is_told(stage: Stage) -> None:
    page = await shown(stage, made(NEW, SLOW, started_at=2.0), made(OLD, FAST))
    row = page.baseline
    assert "no baseline" in row.about.text()
    assert not row.check.isVisible()
    page.table.selectRow(1)
    assert f"sndr bench baseline {OLD}" in row.mark.toolTip()
    click(row.mark)
    await stage.until(lambda: stage.host.runs[1].baseline)
    stage.host.publish(BenchChangedEvent())
    await stage.until(lambda: row.mark.text() == "Unset as baseline")
    assert "--off" in row.mark.toolTip()
    page.table.selectRow(0)
    assert row.check.isVisible()
    assert "1970-01-01" in row.about.text()
    click(row.check)
    await stage.until(lambda: row.bad.isVisible())
    assert "SLOWER: story" in row.bad.text()
    assert not row.good.isVisible()
    page.table.selectRow(1)
    assert not row.bad.isVisible(), "it was said of another run"
    click(row.mark)
    await stage.until(lambda: not stage.host.runs[1].baseline)


async def test_a_run_that_is_as_fast_passes(stage: Stage) -> None:
    steady = [0.1, 0.1001, 0.1002, 0.1, 0.1001, 0.1002, 0.1]
    page = await shown(stage, made(NEW, steady, started_at=2.0), made(OLD, steady, baseline=True))
    click(page.baseline.check)
    await stage.until(lambda: page.baseline.good.isVisible())
    assert "0 of" in page.baseline.good.text()


async def test_nothing_is_held_to_a_partial_run_and_refusals_are_shown(stage: Stage) -> None:
    page = await shown(
        stage, made(NEW, FAST, started_at=2.0, complete=False, ended_by="cancelled"), made(OLD, SLOW)
    )
    row = page.baseline
    assert not row.mark.isEnabled()
    assert "partial or struck" in row.mark.toolTip()
    page.table.selectRow(1)
    stage.host.refuse[f"/v1/bench/runs/{OLD}/baseline"] = Problem(reason=Reason.INTERNAL, message="Not now.")
    click(row.mark)
    await stage.until(lambda: row.problem.isVisible())
    page.table.selectRow(0)
    assert not row.problem.isVisible()
