"""The view-model of the bench lab: what is measured next, the runs that are kept, two of them compared."""

from __future__ import annotations

import asyncio
import shlex

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.client.bench_reports.markdown import comparison_markdown, run_markdown
from engine_host.client.bench_reports.reproducing import request_of, run_of_file, without_texts
from engine_host.protocol.bench.comparison import CompareFile, CompareRuns, LabComparison
from engine_host.protocol.bench.lab import PAIRED_ROUNDS, LabRun, RunBench, WorkloadName
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Problem
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.operations import bench as ops
from engine_host.protocol.operations import table
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.kit.rows import RowsModel
from sndr_gui.models.bench.words import WORKLOADS, columns

_OPENED = "\0"
"""The name of the run of a file, which no kept run has: it may be one of these, too."""
_READY = {EngineState.READY, EngineState.BUSY}


class BenchModel(QObject):
    """The model of the bench lab.

    Signals:
        changed: the choice, the job, the runs or the comparison are new
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.runs: RowsModel[LabRun] = RowsModel(columns(), lambda run: run.id, self)
        self.unreadable: tuple[str, ...] = ()
        self.listed = False
        self.problem: Problem | None = None
        self.workload = WorkloadName.QUICK
        self.comparison: LabComparison | None = None
        self.opened: LabRun | None = None
        self.opened_from = self.opening = ""
        self._engine = self._against = ""
        self._chosen = self._kept = ""
        self._pair: tuple[str, str] | None = None
        self._shown = self._sending = False
        self._cancelling = self._dismissed = ""
        session.state.engines_changed.connect(self.changed)
        session.state.jobs_changed.connect(self.changed)
        session.state.outdated.connect(self._on_outdated)
        session.connection.changed.connect(self._on_link)

    @property
    def connected(self) -> bool:
        """True while the host answers."""
        return self.session.connection.connected

    @property
    def subtitle(self) -> str:
        """The line below the title."""
        if not self.connected:
            return tr("no connection")
        if self.opening:
            return tr("Reading {file}…", file=formats.shortened(self.opening.rpartition("/")[2]))
        return formats.plural(self.runs.total, "run") if self.listed else ""

    # What is measured next.

    @property
    def ready(self) -> tuple[Engine, ...]:
        """The engines that can be measured now."""
        return tuple(one for one in self.session.state.live if one.state in _READY)

    @property
    def engine(self) -> Engine | None:
        """The engine that is measured: the one that was chosen here, else the window's."""
        ready = {one.id: one for one in self.ready}
        shown = self.session.state.engine
        return (
            ready.get(self._engine)
            or (ready.get(shown.id) if shown is not None else None)
            or next(iter(ready.values()), None)
        )

    @property
    def against(self) -> Engine | None:
        """The engine that it is measured in turns with, if any."""
        engine = self.engine
        found = next((one for one in self.ready if one.id == self._against), None)
        return found if engine is not None and found is not None and found.id != engine.id else None

    @property
    def engine_choices(self) -> tuple[tuple[str, str], ...]:
        """The engines to choose from, each with its id."""
        return tuple((formats.shortened(one.name), one.id) for one in self.ready)

    @property
    def against_choices(self) -> tuple[tuple[str, str], ...]:
        """The others, and none."""
        engine = self.engine
        others = [one for one in self.ready if engine is not None and one.id != engine.id]
        return (
            (tr("alone"), ""),
            *((tr("in turns with {name}", name=formats.shortened(one.name)), one.id) for one in others),
        )

    @property
    def request(self) -> RunBench:
        """The run that a click on Measure asks for."""
        engine, other = self.engine, self.against
        return RunBench(
            workload=self.workload,
            engine=None if engine is None else engine.name,
            against=None if other is None else other.name,
            rounds=None if other is None else PAIRED_ROUNDS,
        )

    def about(self) -> str:
        """Return what a start will do, and how long the last one of its kind took here."""
        engine, other = self.engine, self.against
        if engine is None:
            return tr("No engine is ready, so there is nothing to measure.")
        asked = WORKLOADS[self.workload]
        said = tr("Asks {name} for {what}, {rounds}.", name=engine.name, what=asked.what, rounds=asked.rounds)
        if other is not None:
            said = tr(
                "Asks {name} and {name_2} in turns, each {paired_rounds} times, for {what}.",
                name=engine.name,
                name_2=other.name,
                paired_rounds=PAIRED_ROUNDS,
                what=asked.what,
            )
        return tr(
            "{said} {how_long} Requests of others meanwhile make the figures worse.",
            said=said,
            how_long=self._how_long(engine, other),
        )

    def _how_long(self, engine: Engine, other: Engine | None) -> str:
        if other is None:
            for run in self._newest_first():
                same = run.engine.model == engine.name and run.workload is self.workload
                if same and run.complete and not run.turns_with:
                    return tr("The last one took {duration}.", duration=formats.duration(run.seconds))
        return tr("How long that takes was not measured here yet; it can be cancelled at any time.")

    def _newest_first(self) -> list[LabRun]:
        return sorted(self.runs.all, key=lambda run: -run.started_at)

    @property
    def can_start(self) -> bool:
        """True while a measurement can be started."""
        job = self.newest
        busy = job is not None and not job.ended
        return self.connected and self.engine is not None and not busy and not self._sending

    def choose_workload(self, name: WorkloadName) -> None:
        """Take another workload."""
        self.workload = name
        self.changed.emit()

    def choose_engine(self, engine_id: str) -> None:
        """Take another engine."""
        self._engine = engine_id
        self.changed.emit()

    def choose_against(self, engine_id: str) -> None:
        """Measure in turns with another engine, or with an empty id alone."""
        self._against = engine_id
        self.changed.emit()

    def start(self) -> None:
        """Start the measurement; the host carries it out, with or without a window."""
        if self.can_start:
            self._start(self.request)

    def _start(self, request: RunBench) -> None:
        self._sending = True
        self.problem = None
        self.changed.emit()

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.RUN_BENCH, request))

        def done() -> None:
            self._sending = False
            self.changed.emit()

        self.session.command("start the measurement", work, done=done, failed=self._on_failed)

    # The measurement that runs.

    @property
    def newest(self) -> Job | None:
        """The newest measurement of this host."""
        return self.session.state.newest_job(JobKind.BENCH_RUN)

    @property
    def job(self) -> Job | None:
        """The newest measurement, until its end is put away; one that is done shows in the table.

        One that ended before the engine was started is of another start, and is not shown.
        """
        job, engine = self.newest, self.engine
        if job is None or job.id == self._dismissed:
            return None
        return None if job.ended and engine is not None and job.created_at < engine.created_at else job

    @property
    def cancelling(self) -> bool:
        """True once the measurement was asked to end."""
        job = self.newest
        return job is not None and not job.ended and self._cancelling == job.id

    def cancel(self) -> None:
        """End the measurement, which keeps what it has; or put the end of one away."""
        job = self.newest
        if job is None or self.cancelling:
            return
        if job.ended:
            self._dismissed = job.id
            self.changed.emit()
            return
        name = self._cancelling = job.id
        self.changed.emit()

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(table.CANCEL_JOB, id=name))

        def failed(error: HostError) -> None:
            self._cancelling = ""
            self._on_failed(error)

        self.session.command("cancel the measurement", work, failed=failed)

    # The runs that are kept.

    @property
    def chosen(self) -> LabRun | None:
        """The run whose figures are shown."""
        return self._named(self._chosen)

    @property
    def kept(self) -> LabRun | None:
        """Run A of a comparison: the one that others are compared with."""
        return self._named(self._kept)

    @property
    def shows_opened(self) -> bool:
        """True while the run of a file is the one that is shown."""
        return self.opened is not None and self._chosen == _OPENED

    def _named(self, name: str) -> LabRun | None:
        if name == _OPENED:
            return self.opened
        return next((run for run in self.runs.all if run.id == name), None)

    def open(self, path: str) -> None:
        """Show the run of somebody else, out of a file of this machine."""
        self.problem, self.opening = None, path
        self.changed.emit()

        async def work(_client: AsyncControlClient) -> None:
            # A file may be large: the window goes on meanwhile, and it may be given up.
            found = await asyncio.to_thread(run_of_file, path)
            if self.opening != path:
                return
            self.opened, self.opened_from = found, path
            self._chosen, self._pair = _OPENED, None
            if self._kept == _OPENED:
                self._kept = ""
            self._compare()

        def failed(error: HostError) -> None:
            if self.opening == path:
                self._on_failed(error)

        def done() -> None:
            if self.opening == path:
                self.give_up()

        self.session.command("open the report", work, done=done, failed=failed)

    def give_up(self) -> None:
        """Show nothing of the file that is being read."""
        self.opening = ""
        self.changed.emit()

    def close(self) -> None:
        """Put the run of the file away."""
        self.opened, self.opened_from = None, ""
        if self._kept == _OPENED:
            self._kept = ""
        if self._chosen == _OPENED:
            first = self._newest_first()[:1]
            self._chosen = first[0].id if first else ""
        self._compare()
        self.changed.emit()

    @property
    def reproduction(self) -> RunBench | None:
        """The run that asks the chosen engine what the run of the file asked."""
        if self.opened is None or not self.opened.parts or self.engine is None:
            return None
        return request_of(self.opened, self.engine.name)

    def reproduce(self) -> None:
        """Ask an engine here what the run of the file asked; the two are compared once it has ended."""
        request = self.reproduction
        if request is not None and self.can_start:
            self._kept = _OPENED
            self._compare()
            self._start(request)

    def choose(self, run: LabRun | None) -> None:
        """Show the figures of a run, beside those of run A where one is kept."""
        if run is not None and run.id == self._chosen:
            return
        if run is None and self.shows_opened:
            return
        self._chosen = run.id if run is not None else ""
        self._compare()
        self.changed.emit()

    def keep(self) -> None:
        """Compare the runs that are chosen from now on with this one; a second time no more."""
        self._kept = "" if self._kept else self._chosen
        self._compare()
        self.changed.emit()

    def report(self) -> str:
        """Return what is shown as Markdown; empty where nothing is."""
        if self.comparison is not None:
            return "\n".join(comparison_markdown(self.comparison)) + "\n"
        return "" if self.chosen is None else "\n".join(run_markdown(self.chosen)) + "\n"

    @property
    def report_command(self) -> str:
        """The command that says what is shown."""
        if self._pair is not None:
            return shlex.join(["sndr", "bench", "compare", *map(self._typed, self._pair), "--md"])
        if not self._chosen:
            return "sndr bench list"
        return shlex.join(["sndr", "bench", "report", self._typed(self._chosen), "--md"])

    def _typed(self, name: str) -> str:
        return self.opened_from if name == _OPENED else name

    def remove(self) -> None:
        """Remove the chosen run."""
        name = self._chosen
        if not name:
            return

        async def work(client: AsyncControlClient) -> None:
            await client.call(ops.REMOVE_BENCH_RUN, id=name)

        # The list is read again when the host says that it changed.
        self.session.command("remove the run", work, failed=self._on_failed)

    def set_shown(self, shown: bool) -> None:
        """Read the runs while somebody looks."""
        self._shown = shown
        if shown:
            self.read()

    def read(self) -> None:
        """Read the runs again, while the page is shown; what was asked meanwhile is asked after it."""
        if not self._shown or not self.connected:
            return

        async def work(client: AsyncControlClient) -> None:
            page = await client.call(ops.BENCH_RUNS)
            before = {run.id for run in self.runs.all}
            newest = page.runs[0].id if page.runs else ""
            if newest not in before:
                # What was measured last is what somebody wants to see.
                self._chosen = newest
            self.runs.set_rows(page.runs)
            self.unreadable = page.unreadable
            self.listed = True
            names = {run.id for run in page.runs} | ({_OPENED} if self.opened is not None else set())
            if self._chosen not in names:
                self._chosen = newest
            if self._kept not in names:
                self._kept = ""
            self._compare()

        self.session.read("read the runs", work, done=self.changed.emit, failed=self._on_failed)

    def _compare(self) -> None:
        pair = (self._kept, self._chosen)
        if not all(pair) or pair[0] == pair[1]:
            self._pair, self.comparison = None, None
            return
        if pair == self._pair:
            return
        self._pair, self.comparison, self.problem = pair, None, None

        async def work(client: AsyncControlClient) -> None:
            found = await self._compared(client, *pair)
            # Another pair may have been chosen meanwhile.
            if self._pair == pair:
                self.comparison = found

        def failed(error: HostError) -> None:
            if self._pair == pair:
                self._on_failed(error)

        self.session.command("compare the runs", work, done=self.changed.emit, failed=failed)

    async def _compared(self, client: AsyncControlClient, one: str, other: str) -> LabComparison:
        if self.opened is None or _OPENED not in (one, other):
            return await client.call(ops.COMPARE_RUNS, CompareRuns(a=one, b=other))
        first = one == _OPENED
        asked = CompareFile(run=without_texts(self.opened), other=other if first else one, first=first)
        return await client.call(ops.COMPARE_FILE, asked)

    def _on_failed(self, error: HostError) -> None:
        self.problem = None if error.lost else error.problem
        self.changed.emit()

    def _on_outdated(self, what: str) -> None:
        if what == "bench":
            self.read()

    def _on_link(self) -> None:
        self.read()
        self.changed.emit()
