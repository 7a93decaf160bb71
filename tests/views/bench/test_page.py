"""The bench lab in the window: empty, measuring, its runs, two compared, and what it asks the host for."""

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton

from engine_host.protocol.bench.lab import LabEngine, LabRun, WorkloadName
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import BenchChangedEvent, JobDoneEvent, JobStepEvent
from engine_host.protocol.jobs import JobKind, JobState
from sndr_gui.models.bench.words import WORKLOADS, columns
from sndr_gui.views.bench.page import BenchView
from tests.unit.bench.lab.test_comparing import FAST, SLOW, made
from tests.views.conftest import Stage
from tests.views.samples import host as samples

OLD = "20260101-000000-quick-aaaa"
NEW = "20260102-000000-quick-bbbb"


def bench(stage: Stage) -> BenchView:
    stage.window.go("bench")
    page = stage.window.page
    assert isinstance(page, BenchView)
    return page


def click(made: QPushButton) -> None:
    QTest.mouseClick(made, Qt.MouseButton.LeftButton)


def words(page: BenchView) -> str:
    """Return all texts that are shown."""
    return "\n".join(one.text() for one in page.findChildren(QLabel) if one.isVisible())


def two() -> list[LabRun]:
    return [made(NEW, FAST, started_at=2.0), made(OLD, SLOW)]


def test_every_workload_has_its_words() -> None:
    assert set(WORKLOADS) == set(WorkloadName)


async def test_an_empty_page_teaches(stage: Stage) -> None:
    page = bench(stage)
    await stage.until(lambda: page.model.listed)
    assert page.empty.isVisible()
    assert "crossed out" in page.empty.sentence.text()
    assert not page.kept.isVisible()
    assert not page.start.isEnabled()
    assert "No engine is ready" in page.about.text()
    click(page.launch)
    assert stage.window.current == "launch"


async def test_a_measurement_is_started_followed_and_cancelled(stage: Stage) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    page = bench(stage)
    await stage.until(page.start.isEnabled)
    page.workload.setCurrentIndex(1)
    page.workload.activated.emit(1)
    assert page.command.label.text() == "sndr bench run canonical --engine sndr-demo"
    assert "5 times each after 3 warm-ups" in page.about.text()
    assert "not measured here yet" in page.about.text()
    click(page.start)
    await stage.until(lambda: page.job.isVisible())
    (asked,) = stage.host.benched
    assert (asked.workload, asked.engine, asked.against) == (WorkloadName.CANONICAL, "sndr-demo", None)
    assert not page.start.isEnabled()
    assert page.job.cancel.accessibleName() == "Cancel the measurement"
    click(page.job.cancel)
    await stage.until(lambda: any(path == "/v1/jobs/job-1" for _, path, _ in stage.host.received))
    ended = samples.job(
        JobKind.BENCH_RUN, JobState.CANCELLED, touches="bench", left="It is kept, as partial."
    )
    stage.host.publish(JobDoneEvent(job=ended))
    await stage.until(lambda: "It is kept, as partial." in words(page))
    assert page.start.isEnabled()
    click(page.job.cancel)
    assert not page.job.isVisible()


async def test_two_engines_are_measured_in_turns(stage: Stage) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    stage.host.set_engine(samples.engine(EngineState.READY, id="engine-2", name="other"))
    page = bench(stage)
    await stage.until(lambda: page.against.count() == 2)
    page.against.setCurrentIndex(1)
    page.against.activated.emit(1)
    assert "in turns, each 24 times" in page.about.text()
    assert page.command.label.text().endswith("--repeat 24 --workload quick")
    click(page.start)
    await stage.until(lambda: stage.host.benched)
    assert stage.host.benched[0].against is not None
    assert stage.host.benched[0].rounds == 24


async def test_runs_are_shown_found_compared_and_copied(stage: Stage) -> None:
    stage.host.runs = two()
    page = bench(stage)
    await stage.until(lambda: page.shown.isVisible())
    assert page.table.model().rowCount() == 2
    assert page.report.label.text() == f"sndr bench report {NEW} --md"
    assert "interval (95 % or as said)" in words(page)
    assert "n/a" in words(page)
    click(page.copied)
    assert QGuiApplication.clipboard().text().startswith("## quick: m")
    click(page.keep)
    assert "Choose B in the table" in page.pair.text()
    page.table.selectRow(1)
    await stage.until(lambda: page.model.comparison is not None)
    from sndr_gui.views.graphs.plots import Measured

    await stage.until(lambda: any("B against A" in one.plot.title for one in page.findChildren(Measured)))
    said = words(page)
    assert "measured one after the other" in said
    assert "slower by" in said
    assert page.report.label.text() == f"sndr bench compare {NEW} {OLD} --md"
    click(page.copied)
    assert "| B is |" in QGuiApplication.clipboard().text()
    click(page.keep)
    assert page.model.comparison is None
    page.focus_filter()
    QTest.keyClicks(page.filter, "prefill")
    assert page.table.model().rowCount() == 0


async def test_runs_that_do_not_compare_say_why(stage: Stage) -> None:
    stage.host.runs = [made(NEW, FAST, workload_hash="another"), made(OLD, SLOW)]
    page = bench(stage)
    await stage.until(lambda: page.shown.isVisible())
    click(page.keep)
    page.table.selectRow(1)
    await stage.until(lambda: page.problem.isVisible())
    assert "asked different things" in words(page)
    assert page.model.comparison is None


async def test_a_new_run_is_shown_when_it_is_kept(stage: Stage) -> None:
    page = bench(stage)
    await stage.until(lambda: page.empty.isVisible())
    stage.host.runs = two()
    stage.host.unreadable = ("x.json",)
    stage.host.publish(JobStepEvent(job=samples.job(JobKind.BENCH_RUN, JobState.RUNNING, touches="bench")))
    stage.host.publish(BenchChangedEvent())
    await stage.until(lambda: page.shown.isVisible())
    assert page.model.chosen is not None
    assert page.model.chosen.id == NEW
    assert "x.json" in page.unreadable.text()


async def test_a_run_is_removed_by_a_second_click(stage: Stage) -> None:
    stage.host.runs = two()
    page = bench(stage)
    await stage.until(lambda: page.shown.isVisible())
    click(page.remove)
    assert page.remove.text() == "Remove for good"
    page.table.selectRow(1)
    assert page.remove.text() == "Remove", "another run is asked about anew"
    click(page.remove)
    click(page.remove)
    await stage.until(lambda: len(stage.host.runs) == 1)
    assert stage.host.runs[0].id == NEW
    stage.host.publish(BenchChangedEvent())
    await stage.until(lambda: page.table.model().rowCount() == 1)


@pytest.mark.parametrize("fault", ["", "1 of 5 answers is empty"])
async def test_a_struck_figure_is_crossed_out(stage: Stage, fault: str) -> None:
    hostile: dict[str, Any] = {"engine": LabEngine(address="s", id="e", model="<b>m</b>")}
    stage.host.runs = [made(NEW, FAST, fault=fault, **hostile)]
    page = bench(stage)
    await stage.until(lambda: page.shown.isVisible())
    crossed = [one for one in page.result.findChildren(QLabel) if one.font().strikeOut()]
    assert bool(crossed) is bool(fault)
    assert all(one.accessibleName().startswith("struck: ") for one in crossed)
    assert all(
        one.textFormat() is Qt.TextFormat.PlainText for one in page.shown.findChildren(QLabel) if one.text()
    )


async def test_a_refusal_of_the_host_is_shown(stage: Stage) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    stage.host.refuse["/v1/bench/runs"] = Problem(reason=Reason.INTERNAL, message="Not now.")
    page = bench(stage)
    await stage.until(lambda: page.problem.isVisible())
    assert "Not now." in words(page)


async def test_the_report_of_somebody_else_is_opened_compared_asked_again_and_closed(
    stage: Stage, tmp_path: Path
) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    stage.host.runs = two()
    page = bench(stage)
    await stage.until(lambda: page.shown.isVisible())
    # It may be a copy of one that is kept here.
    theirs = made(NEW, SLOW, engine=LabEngine(address="x", model="other <b>"))
    file = tmp_path / "their run.json"
    file.write_text(theirs.model_dump_json())
    page.model.open(str(file))
    await stage.until(lambda: page.model.shows_opened)
    assert f"From {file}; it is shown and not kept." in words(page)
    await stage.until(lambda: not page.keep.visibleRegion().isEmpty())
    assert page.table.chosen == -1
    assert not page.baseline.isVisible()
    assert page.report.label.text() == f"sndr bench report '{file}' --md"
    click(page.reproduce)
    await stage.until(lambda: stage.host.benched)
    (asked,) = stage.host.benched
    assert (asked.workload, asked.engine, asked.seed) == (theirs.workload, "sndr-demo", theirs.seed)
    # Its run comes, is chosen as the newest, and stands beside the one of the file.
    stage.host.runs.insert(0, made("20260103-000000-quick-cccc", FAST, started_at=3.0))
    stage.host.publish(BenchChangedEvent())
    await stage.until(lambda: page.model.comparison is not None)
    found = page.model.comparison
    assert found is not None
    assert (found.a.engine.model, found.b.id) == ("other <b>", "20260103-000000-quick-cccc")
    assert page.report.label.text() == f"sndr bench compare '{file}' 20260103-000000-quick-cccc --md"
    click(page.keep)
    page.model.open(str(file))
    await stage.until(lambda: page.model.shows_opened)
    click(page.remove)
    assert page.model.opened is None
    assert page.model.chosen is not None
    assert page.baseline.isVisible()
    assert len(stage.host.runs) == 3


async def test_a_report_is_said_to_be_read_at_once_and_can_be_given_up(stage: Stage, tmp_path: Path) -> None:
    page = bench(stage)
    await stage.until(lambda: page.model.listed)
    file = tmp_path / "run.json"
    file.write_text(made(NEW, FAST).model_dump_json())
    page.model.open(str(file))
    assert (page.subtitle.text(), page.open_file.text()) == ("Reading run.json…", "Cancel")
    click(page.open_file)
    await stage.until(lambda: "open the report" not in stage.tasks.names)
    assert page.model.opened is None
    assert page.open_file.text() == "Open report…"
    page.model.open(str(file))
    await stage.until(lambda: page.model.shows_opened)
    await stage.until(lambda: page.open_file.text() == "Open report…")


async def test_a_file_that_is_no_report_is_refused_with_the_reason(stage: Stage, tmp_path: Path) -> None:
    page = bench(stage)
    await stage.until(lambda: page.model.listed)
    file = tmp_path / "run.json"
    file.write_text("[]")
    page.model.open(str(file))
    await stage.until(page.problem.isVisible)
    assert "cannot be read as a run" in words(page)
    assert page.model.opened is None
    click(page.open_file)
    (dialog,) = page.findChildren(QFileDialog)
    file.write_text(made(NEW, FAST).model_dump_json())
    dialog.fileSelected.emit(str(file))
    dialog.close()
    await stage.until(lambda: page.model.shows_opened)
    assert not page.problem.isVisible()
    # What a server said has no place to break at.
    file.write_text(made(NEW, FAST, ended_by="x" * 3000, complete=False).model_dump_json())
    page.model.open(str(file))
    await stage.until(lambda: "PARTIAL" in words(page))
    assert page.shown.width() <= page.width()
    assert page.body.minimumSize().width() < 1000


def test_the_column_of_the_engine_names_its_build_and_the_tooltip_the_package() -> None:
    engine = next(column for column in columns() if column.title == "Engine")
    run = made(NEW, FAST)
    told = {"engine": "llama.cpp", "version": "xllamacpp-2026.10.11549, build 11549"}
    run = run.model_copy(update={"engine": run.engine.model_copy(update=told)})
    assert engine.text(run) == "llama.cpp build 11549"
    assert engine.tip is not None
    assert engine.tip(run) == "llama.cpp xllamacpp-2026.10.11549, build 11549"
    told = {"engine": "vllm", "version": "vLLM 0.32.0 (CPU)"}
    run = run.model_copy(update={"engine": run.engine.model_copy(update=told)})
    assert engine.text(run) == "vLLM 0.32.0 (CPU)"
