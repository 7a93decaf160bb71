"""The view-model of baselines: which run later ones are held to, and whether the chosen one is slower."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.client.bench_reports.regression import Regression, baseline_of, judged
from engine_host.protocol.bench.comparison import CompareRuns
from engine_host.protocol.bench.lab import LabPage, LabRun, MarkBaseline
from engine_host.protocol.errors import Problem
from engine_host.protocol.language import tr
from engine_host.protocol.operations import bench as ops
from sndr_gui.models.bench.page import BenchModel
from sndr_gui.models.bench.words import at_text


class BaselineModel(QObject):
    """The model of the row that sets a baseline, and holds the chosen run to it.

    Signals:
        changed: the chosen run, the baseline or the judgement are new
    """

    changed = Signal()

    def __init__(self, bench: BenchModel) -> None:
        super().__init__()
        self._bench = bench
        self._session = bench.session
        self._pair: tuple[str, str] | None = None
        self._judgement: Regression | None = None
        self._problem: tuple[str, Problem] | None = None
        bench.changed.connect(self._on_bench)

    @property
    def run(self) -> LabRun | None:
        """The run that is chosen on the page."""
        return self._bench.chosen

    @property
    def baseline(self) -> LabRun | None:
        """The baseline of the chosen run; of a baseline, and where none is, nothing."""
        run = self.run
        if run is None or run.baseline:
            return None
        return baseline_of(LabPage(runs=tuple(self._bench.runs.all)), run)

    @property
    def judgement(self) -> Regression | None:
        """The chosen run beside its baseline, once it was checked."""
        return self._judgement if self._pair is not None and self._pair == self._now else None

    @property
    def problem(self) -> Problem | None:
        """The refusal of what was asked last of the chosen run."""
        run = self.run
        return self._problem[1] if self._problem and run is not None and run.id == self._problem[0] else None

    @property
    def about(self) -> str:
        """The words on the baseline of the chosen run."""
        run, baseline = self.run, self.baseline
        if run is None:
            return ""
        if run.baseline:
            return tr("Later runs of its workload, model and kind of engine are compared with this one.")
        if baseline is None:
            return tr("There is no baseline of its workload, model and kind of engine.")
        return tr("It is compared with the baseline of {at_text}.", at_text=at_text(baseline))

    @property
    def mark_command(self) -> str:
        """The command that does what the first button does."""
        run = self.run
        if run is None:
            return ""
        return f"sndr bench baseline {run.id}{' --off' if run.baseline else ''}"

    @property
    def check_command(self) -> str:
        """The command that says the same, with an exit code."""
        return "" if self.run is None else f"sndr bench check {self.run.id}"

    def mark(self) -> None:
        """Make the chosen run the baseline; where it is one, a baseline no more."""
        run = self.run
        if run is None:
            return
        self._problem = None

        async def work(client: AsyncControlClient) -> None:
            await client.call(ops.MARK_BASELINE, MarkBaseline(on=not run.baseline), id=run.id)

        # The list is read again when the host says that it changed.
        self._session.command("set the baseline", work, failed=lambda error: self._on_failed(run.id, error))

    def check(self) -> None:
        """Compare the chosen run with its baseline."""
        pair = self._now
        if pair is None:
            return
        self._pair, self._judgement, self._problem = pair, None, None

        async def work(client: AsyncControlClient) -> None:
            found = judged(await client.call(ops.COMPARE_RUNS, CompareRuns(a=pair[0], b=pair[1])))
            # Another run may have been chosen meanwhile.
            if self._pair == pair:
                self._judgement = found

        self._session.command(
            "check the run",
            work,
            done=self.changed.emit,
            failed=lambda error: self._on_failed(pair[1], error),
        )

    @property
    def _now(self) -> tuple[str, str] | None:
        run, baseline = self.run, self.baseline
        return None if run is None or baseline is None else (baseline.id, run.id)

    def _on_bench(self) -> None:
        self.changed.emit()

    def _on_failed(self, run: str, error: HostError) -> None:
        self._problem = None if error.lost else (run, error.problem)
        self.changed.emit()
