"""The row of the bench lab that verifies: started, cancelled, and the outcome of each check."""

import time

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from engine_host.protocol.bench.checks import Check, CheckName, Outcome, VerifyLevel, VerifyReport
from engine_host.protocol.engines import EngineState
from engine_host.protocol.events import JobDoneEvent
from engine_host.protocol.jobs import JobKind, JobState
from sndr_gui.views.bench.page import BenchView
from tests.views.conftest import Stage
from tests.views.samples import host as samples

REPORT = VerifyReport(
    engine="engine-1",
    name="sndr-demo",
    level=VerifyLevel.FULL,
    seed=7,
    started_at=1.0,
    complete=True,
    of=9,
    checks=(
        Check(name=CheckName.ANSWERS, title="lists its model and answers", outcome=Outcome.PASSED),
        Check(name=CheckName.TOOL_CALL, title="calls tools", outcome=Outcome.FAILED, why="no <b>tool"),
    ),
)


async def test_an_engine_is_verified_and_its_checks_are_shown(stage: Stage) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    stage.window.go("bench")
    page = stage.window.page
    assert isinstance(page, BenchView)
    row = page.verify
    await stage.until(row.start.isEnabled)
    row.level.setCurrentIndex(1)
    row.level.activated.emit(1)
    assert row.command.label.text() == "sndr bench verify sndr-demo --level full"
    QTest.mouseClick(row.start, Qt.MouseButton.LeftButton)
    await stage.until(row.job.isVisible)
    assert [asked.level for asked in stage.host.verified] == [VerifyLevel.FULL]
    assert not row.start.isEnabled()
    QTest.mouseClick(row.job.cancel, Qt.MouseButton.LeftButton)
    await stage.until(lambda: any(path == "/v1/jobs/job-1" for _, path, _ in stage.host.received))
    ended = samples.job(JobKind.BENCH_VERIFY, JobState.DONE, touches="bench")
    ended = ended.model_copy(update={"result": REPORT.model_dump(mode="json")})
    stage.host.publish(JobDoneEvent(job=ended))
    await stage.until(row.outcome.isVisible)

    def said(sentence: str) -> bool:
        return any(one.isVisible() and one.text() == sentence for one in row.findChildren(QLabel))

    at = time.strftime("%Y-%m-%d %H:%M", time.localtime(REPORT.started_at))
    assert said(f"sndr-demo, full, {at}: 1 of 9 passed, 1 failed.")
    # Its table is laid out in the next turn of the loop.
    await stage.until(lambda: said("no <b>tool"))
    broken = ended.model_copy(update={"result": {"engine": 5}})
    stage.host.publish(JobDoneEvent(job=broken))
    await stage.until(lambda: row.model.report is None)


async def test_a_report_is_shown_for_the_engine_that_it_is_about_and_for_no_other(stage: Stage) -> None:
    """A start with other settings has the same name; what the one before answered says nothing of it."""
    first = samples.engine(EngineState.READY)
    stage.host.set_engine(first)
    stage.window.go("bench")
    page = stage.window.page
    assert isinstance(page, BenchView)
    row = page.verify
    ended = samples.job(JobKind.BENCH_VERIFY, JobState.DONE, touches="bench")
    stage.host.publish(JobDoneEvent(job=ended.model_copy(update={"result": REPORT.model_dump(mode="json")})))
    await stage.until(row.outcome.isVisible)
    # Where nothing runs any more, it says whose it was.
    stage.host.set_engine(first.model_copy(update={"state": EngineState.UNLOADED}))
    await stage.until(lambda: "sndr-demo, which runs no more, full" in row.outcome.text())
    second = first.model_copy(update={"id": "engine-2", "created_at": time.time() + 60})
    stage.host.set_engine(second)
    await stage.until(lambda: page.model.engine is not None and page.model.engine.id == "engine-2")
    await stage.until(lambda: not row.outcome.isVisible())
    failed = samples.job(JobKind.BENCH_VERIFY, JobState.FAILED, id="job-2", touches="bench")
    stage.host.publish(JobDoneEvent(job=failed))
    await stage.until(lambda: "job-2" in stage.session.state.jobs)
    assert not row.job.isVisible(), "it ended before this engine was started"
    assert row.start.isEnabled()
