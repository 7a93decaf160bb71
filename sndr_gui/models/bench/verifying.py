"""The view-model of verifications: what is checked next, and what came of the last one."""

from __future__ import annotations

import time

from pydantic import ValidationError
from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.bench.checks import VerifyEngine, VerifyLevel, VerifyReport
from engine_host.protocol.errors import Problem
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.operations import bench as ops
from engine_host.protocol.operations import table
from sndr_gui.kit.setting_words import word_of
from sndr_gui.models.bench.page import BenchModel

LEVELS = {
    VerifyLevel.SMOKE: (
        tr("Smoke: 4 checks"),
        tr("It answers, it knows a fact, it calls tools, and with vLLM its patches are live."),
    ),
    VerifyLevel.FULL: (
        tr("Full: 9 checks"),
        tr("Smoke, and streams, tool calls in streams, thoughts, a long answer, what speculation gains."),
    ),
    VerifyLevel.STRESS: (
        tr("Stress: 8 checks"),
        tr("Facts in long texts, many tools and turns, long code and thoughts, 0.92 of the context."),
    ),
}


class VerifyModel(QObject):
    """The model of the row that verifies the engine which the page has chosen.

    Signals:
        changed: the level, the job or its report are new
    """

    changed = Signal()

    def __init__(self, bench: BenchModel) -> None:
        super().__init__()
        self._bench = bench
        self._session = bench.session
        self.level = VerifyLevel.SMOKE
        self.problem: Problem | None = None
        self._sending = False
        self._cancelling = ""
        bench.changed.connect(self.changed)

    @property
    def request(self) -> VerifyEngine:
        """The verification that a click asks for."""
        engine = self._bench.engine
        return VerifyEngine(engine=None if engine is None else engine.name, level=self.level)

    @property
    def job(self) -> Job | None:
        """The newest verification that the engine may be about: one that ended before its start is not.

        Where no engine runs, the newest of all.
        """
        job, engine = self._newest, self._bench.engine
        if job is None or engine is None or not job.ended:
            return job
        report = _report_of(job)
        others = job.created_at < engine.created_at if report is None else report.engine != engine.id
        return None if others else job

    @property
    def _newest(self) -> Job | None:
        return self._session.state.newest_job(JobKind.BENCH_VERIFY)

    @property
    def can_start(self) -> bool:
        """True while one can be started."""
        job = self._newest
        busy = job is not None and not job.ended
        return self._bench.connected and self._bench.engine is not None and not busy and not self._sending

    @property
    def cancelling(self) -> bool:
        """True once the verification was asked to end."""
        job = self.job
        return job is not None and not job.ended and self._cancelling == job.id

    @property
    def report(self) -> VerifyReport | None:
        """The newest report of the engine that the page has chosen, also one that was cut short.

        An engine is one start: what another one answered says nothing of it. Where none runs, the newest.
        """
        engine, job = self._bench.engine, self._newest
        if job is not None and not job.ended:
            return None
        jobs = [one for one in self._session.state.jobs.values() if one.kind is JobKind.BENCH_VERIFY]
        for one in sorted(jobs, key=lambda one: -one.created_at):
            report = _report_of(one)
            if engine is None or (report is not None and report.engine == engine.id):
                return report
        return None

    def outcome(self) -> str:
        """Return what came of the verification that is shown, and of whom and when it is."""
        report = self.report
        if report is None:
            return ""
        name, at = report.name, time.strftime("%Y-%m-%d %H:%M", time.localtime(report.started_at))
        if self._bench.engine is None:
            name = tr("{name}, which runs no more", name=name)
        return f"{name}, {word_of(report.level.value)}, {at}: {report.summary}."

    def choose(self, level: VerifyLevel) -> None:
        """Take another level."""
        self.level = level
        self.changed.emit()

    def start(self) -> None:
        """Start the verification, which the host carries out."""
        if not self.can_start:
            return
        request = self.request
        self._sending, self.problem = True, None
        self.changed.emit()

        async def work(client: AsyncControlClient) -> None:
            await self._session.state.take(client.call(ops.VERIFY_ENGINE, request))

        def done() -> None:
            self._sending = False
            self.changed.emit()

        self._session.command("start the verification", work, done=done, failed=self._on_failed)

    def cancel(self) -> None:
        """End the verification; what it judged is kept."""
        job = self.job
        if job is None or job.ended or self.cancelling:
            return
        name = self._cancelling = job.id
        self.changed.emit()

        async def work(client: AsyncControlClient) -> None:
            await self._session.state.take(client.call(table.CANCEL_JOB, id=name))

        def failed(error: HostError) -> None:
            self._cancelling = ""
            self._on_failed(error)

        self._session.command("cancel the verification", work, failed=failed)

    def _on_failed(self, error: HostError) -> None:
        self.problem = None if error.lost else error.problem
        self.changed.emit()


def _report_of(job: Job) -> VerifyReport | None:
    """Return the report of a verification that ended; None of another version of this program."""
    found = job.result or (job.error.evidence.get("report") if job.error is not None else None)
    try:
        return VerifyReport.model_validate(found) if found else None
    except ValidationError:
        return None
