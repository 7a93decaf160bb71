"""The bench lab: measure an engine, look at what was measured, compare two runs."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QLineEdit

from engine_host.protocol.bench.lab import LabRun, WorkloadName
from engine_host.protocol.language import tr
from sndr_gui.kit.shortcuts import keys
from sndr_gui.models.bench.baselines import BaselineModel
from sndr_gui.models.bench.page import BenchModel
from sndr_gui.models.bench.verifying import VerifyModel
from sndr_gui.models.bench.words import WORKLOADS, one_line
from sndr_gui.views.bench.baselines import BaselineRow
from sndr_gui.views.bench.opening import ask_for_report
from sndr_gui.views.bench.result import Result
from sndr_gui.views.bench.verifying import VerifyCard
from sndr_gui.views.engine.stages import JobView
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card, EmptyState
from sndr_gui.views.widgets.copying import CopyButton, CopyField
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.widgets.problems import ProblemBox
from sndr_gui.views.widgets.tables import Table

_ABOUT = tr(
    "A measurement asks an engine that runs and keeps what came: speed of one "
    "answer and of all together, time to the first token, the gaps between tokens, "
    "each with its spread. Figures of answers that make no sense are crossed out, "
    "and what cannot be told is n/a with its reason. Two runs are then compared: "
    "faster, slower, or not to be told yet."
)
_HEIGHT = 220


class BenchView(Page):
    """The page of the bench lab; `go` opens another page."""

    def __init__(self, model: BenchModel, go: Callable[[str], object]) -> None:
        super().__init__(tr("Bench"), scrolls=True)
        self.model = model
        self._asks_to_remove = ""
        self._seen: tuple[LabRun | None, bool] = (None, False)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText(tr("Search runs  ({keys})", keys=keys("filter")))
        self.filter.setAccessibleName(tr("Search runs"))
        self.filter.setClearButtonEnabled(True)
        self.filter.setFixedWidth(200)
        self.filter.textChanged.connect(model.runs.set_filter)
        self.tools.addWidget(self.filter)
        self.open_file = button(
            tr("Open report…"),
            lambda: model.give_up() if model.opening else ask_for_report(self, model.open),
            hint=tr("Show what somebody else measured, compare with it, and ask the same here"),
            command="sndr bench report run.json",
        )
        self.tools.addWidget(self.open_file)
        self.problem = ProblemBox()
        self._make_start(go)
        self._make_runs()
        self.empty = EmptyState("timer", tr("Nothing was measured here yet"), _ABOUT)
        self.verify = VerifyCard(VerifyModel(model))
        for part in (self.problem, self.measure, self.verify, self.kept, self.shown):
            self.body.addWidget(part)
        self.body.addWidget(self.empty)
        self.body.addStretch(1)
        model.changed.connect(self.refresh)
        self.refresh()

    def _make_start(self, go: Callable[[str], object]) -> None:
        model = self.model
        self.workload = ChoiceBox(tr("Workload"))
        self.workload.fill([(words.title, name) for name, words in WORKLOADS.items()], model.workload)
        self.workload.activated.connect(
            lambda _place: model.choose_workload(WorkloadName(self.workload.currentData()))
        )
        self.engine = ChoiceBox(tr("Engine to measure"))
        self.engine.activated.connect(lambda _place: model.choose_engine(str(self.engine.currentData())))
        self.against = ChoiceBox(tr("Alone or in turns with another engine"))
        self.against.activated.connect(lambda _place: model.choose_against(str(self.against.currentData())))
        for box in (self.workload, self.engine, self.against):
            box.setSizeAdjustPolicy(ChoiceBox.SizeAdjustPolicy.AdjustToContents)
        self.start = button(tr("Measure"), model.start, kind="primary", icon="timer")
        self.launch = button(
            tr("Open Launch"), lambda: go("launch"), icon="rocket", command="sndr run --demo --detach"
        )
        self.about = text("", "muted", wrap=True)
        self.command = CopyField(what=tr("the command that measures the same"), wraps=True)
        self.job = JobView(tr("measurement"), dismiss=True)
        self.job.cancel.clicked.connect(model.cancel)
        self.measure = Card(tr("Measure"))
        for part in (
            Flow(self.workload, self.engine, self.against, self.start, self.launch),
            self.about,
            self.command,
            self.job,
        ):
            self.measure.body.addWidget(part)

    def _make_runs(self) -> None:
        model = self.model
        widths = {0: 130, 1: 100, 2: 150, 3: 150, 5: 130}
        self.table = Table(model.runs, tr("Runs that were measured"), 4, widths)  # type: ignore[arg-type]
        self.table.fit({0: 150, 1: 110, 2: 170, 3: 170, 5: 150})
        self.table.as_tall_as_rows(_HEIGHT)
        self.table.row_chosen.connect(lambda place: model.choose(model.runs.row_at(place)))
        self.unreadable = text("", "warn", wrap=True)
        self.keep = button(
            tr("Compare with…"),
            model.keep,
            hint=tr("Choose the other run in the table after it"),
            command="sndr bench compare A B",
        )
        self.reproduce = button(tr("Ask the same here"), model.reproduce, icon="timer")
        self.remove = button(tr("Remove"), self._on_remove, icon="trash-2")
        self.copied = CopyButton(tr("the report as Markdown"), tr("Copy report"))
        self.kept = Card(tr("Runs"))
        for part in (self.table, self.unreadable):
            self.kept.body.addWidget(part)
        self.shown = Card(" ")
        self.pair = text("", "accent", wrap=True)
        self.result = Result()
        self.report = CopyField(what=tr("the command that says the same"), wraps=True)
        self.baseline = BaselineRow(BaselineModel(model))
        self.source = text("", "muted", wrap=True)
        buttons = Flow(self.keep, self.reproduce, self.copied, self.remove)
        for card_part in (self.source, buttons, self.pair, self.baseline, self.result, self.report):
            self.shown.body.addWidget(card_part)

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)

    def focus_filter(self) -> None:
        """Put the cursor into the search."""
        self.filter.setFocus()

    def refresh(self) -> None:
        """Show what is known now."""
        model = self.model
        set_text(self.subtitle, model.subtitle)
        self.open_file.setText(tr("Cancel") if model.opening else tr("Open report…"))
        self.open_file.setAccessibleName(self.open_file.text())
        self.problem.setVisible(model.problem is not None)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        self._refresh_start()
        some = bool(model.runs.total or model.unreadable)
        self.empty.setVisible(model.listed and not some)
        self.kept.setVisible(some)
        self.filter.setVisible(some)
        self.unreadable.setVisible(bool(model.unreadable))
        set_text(self.unreadable, tr("Cannot be read: {unreadable}.", unreadable=", ".join(model.unreadable)))
        self._refresh_shown()

    def _refresh_start(self) -> None:
        model = self.model
        engine, other = model.engine, model.against
        self.workload.fill([(words.title, name) for name, words in WORKLOADS.items()], model.workload)
        for box in (self.engine, self.against):
            box.setVisible(engine is not None)
        self.engine.fill(model.engine_choices, engine.id if engine is not None else "")
        self.against.fill(model.against_choices, other.id if other is not None else "")
        self.against.setEnabled(len(model.against_choices) > 1)
        command = model.request.command
        self.start.setEnabled(model.can_start)
        self.start.setToolTip(
            tip(tr("Benchmark in the background, also while the window is closed"), command=command)
        )
        self.launch.setVisible(model.connected and engine is None)
        set_text(self.about, model.about())
        self.command.set_content(command)
        job = model.job
        self.job.setVisible(job is not None)
        if job is not None:
            self.job.show_job(job, model.cancelling)

    def _refresh_shown(self) -> None:
        model = self.model
        run, kept = model.chosen, model.kept
        self.shown.setVisible(run is not None)
        if run is None:
            return
        place = None if model.shows_opened else model.runs.place_of(run.id)
        if model.shows_opened:
            self.table.clearSelection()
        elif place is not None and place != self.table.chosen:
            self.table.selectRow(place)
        if self._asks_to_remove != run.id:
            self._asks_to_remove = ""
        set_text(self.shown.title, one_line(run))
        self.keep.setText(tr("Compare with…") if kept is None else tr("End the comparison"))
        self.keep.setAccessibleName(
            f"{(tr('Compare') if kept is None else tr('Do not compare'))} {one_line(kept or run)}"
        )
        self.pair.setVisible(kept is not None)
        if kept is not None:
            waits = kept.id == run.id
            set_text(
                self.pair,
                tr("A is {one_line}. Choose B in the table.", one_line=one_line(kept))
                if waits
                else tr("A is {one_line}, B is this.", one_line=one_line(kept)),
            )
        self._refresh_opened(run)
        if model.comparison is not None:
            self.result.show_comparison(model.comparison)
        else:
            self.result.show_run(run)
        self.copied.set_content(model.report())
        self.report.set_content(model.report_command)

    def _refresh_opened(self, run: LabRun) -> None:
        """Show what is said of a run, and done with it, by whose it is."""
        model = self.model
        opened, request = model.shows_opened, model.reproduction
        seen = (model.opened, opened)
        if opened and seen != self._seen:
            # It is asked for at the top of the page, and shown below its table.
            QTimer.singleShot(0, self, lambda: self.bring_into_sight(self.shown, self.keep))
        self._seen = seen
        self.source.setVisible(opened)
        set_text(self.source, tr("From {file}; it is shown and not kept.", file=model.opened_from))
        self.baseline.setVisible(not opened)
        self.reproduce.setVisible(opened)
        self.reproduce.setEnabled(request is not None and model.can_start)
        self.reproduce.setToolTip(
            tip(
                tr("Measure {engine} with its prompts, and compare both", engine=request.engine or "")
                if request is not None
                else tr("No engine is ready, so there is nothing to measure."),
                command=shlex.join(["sndr", "bench", "reproduce", model.opened_from]),
            )
        )
        said = tr("Remove for good") if self._asks_to_remove else tr("Remove")
        said = tr("Close") if opened else said
        self.remove.setText(said)
        self.remove.setAccessibleName(f"{said}: {one_line(run)}")
        self.remove.setToolTip(
            tip(tr("Put it away; the file stays"))
            if opened
            else tip(tr("Delete the run; a second click does it"), command=f"sndr bench remove {run.id}")
        )

    def _on_remove(self) -> None:
        run = self.model.chosen
        if run is None:
            return
        if self.model.shows_opened:
            self.model.close()
            return
        if self._asks_to_remove == run.id:
            self._asks_to_remove = ""
            self.model.remove()
        else:
            self._asks_to_remove = run.id
        self.refresh()
