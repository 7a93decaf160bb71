"""The part of the FAKE host of view tests that measures engines: its runs are plain attributes."""

from engine_host.bench.lab.comparing import compared
from engine_host.core.errors import HostError
from engine_host.operations.performs import performs
from engine_host.protocol.bench.alerts import Alert, AlertPage, AlertQuery, SeeAlerts
from engine_host.protocol.bench.checks import VerifyEngine
from engine_host.protocol.bench.comparison import CompareFile, CompareRuns, LabComparison
from engine_host.protocol.bench.lab import LabPage, LabRun, MarkBaseline, RunBench
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.operations import bench
from engine_host.protocol.operations import table as ops
from tests.views.samples import host as samples


class FakeBench:
    """Runs of a FAKE host; nothing is measured."""

    def __init__(self) -> None:
        self.runs: list[LabRun] = []
        self.unreadable: tuple[str, ...] = ()
        self.benched: list[RunBench] = []
        self.verified: list[VerifyEngine] = []
        self.alerts: tuple[Alert, ...] = ()

    @performs(ops.ALERTS)
    def _alerts(self, asked: AlertQuery) -> AlertPage:
        found = [one for one in self.alerts if asked.everything or one.needs_attention]
        return AlertPage(seq=0, alerts=tuple(found))

    @performs(ops.SEE_ALERTS)
    def _see_alerts(self, asked: SeeAlerts) -> AlertPage:
        self.alerts = tuple(one.model_copy(update={"seen": True}) for one in self.alerts)
        return self._alerts(AlertQuery())

    @performs(bench.BENCH_RUNS)
    def _runs(self) -> LabPage:
        bare = [run.model_copy(update={"samples": ()}) for run in self.runs]
        return LabPage(runs=tuple(bare), unreadable=self.unreadable)

    @performs(bench.COMPARE_RUNS)
    def _compare_runs(self, asked: CompareRuns) -> LabComparison:
        return compared(self._found(asked.a), self._found(asked.b))

    @performs(bench.COMPARE_FILE)
    def _compare_file(self, asked: CompareFile) -> LabComparison:
        own = self._found(asked.other)
        return compared(asked.run, own) if asked.first else compared(own, asked.run)

    @performs(bench.RUN_BENCH)
    def _bench(self, asked: RunBench) -> Job:
        self.benched.append(asked)
        return samples.job(JobKind.BENCH_RUN, JobState.RUNNING, title="Bench", touches="bench")

    @performs(bench.VERIFY_ENGINE)
    def _verify(self, asked: VerifyEngine) -> Job:
        self.verified.append(asked)
        return samples.job(JobKind.BENCH_VERIFY, JobState.RUNNING, title="Verify", touches="bench")

    @performs(bench.REMOVE_BENCH_RUN)
    def _remove_run(self, run_id: str) -> LabPage:
        self.runs = [run for run in self.runs if run.id != run_id]
        return self._runs()

    @performs(bench.MARK_BASELINE)
    def _mark(self, run_id: str, asked: MarkBaseline) -> LabPage:
        subject = self._found(run_id).subject
        self.runs = [
            run.model_copy(update={"baseline": asked.on if run.id == run_id else False})
            if run.subject == subject
            else run
            for run in self.runs
        ]
        return self._runs()

    def _found(self, run_id: str) -> LabRun:
        for run in self.runs:
            if run.id == run_id:
                return run
        raise HostError(Reason.NOT_FOUND, f"There is no run {run_id}.")
