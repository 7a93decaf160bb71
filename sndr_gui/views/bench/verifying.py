"""The row of the bench lab that checks what an engine answers, and the outcome of each check."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout

from engine_host.client.bench_reports.checks import check_rows, headings
from engine_host.protocol.bench.checks import VerifyLevel
from engine_host.protocol.language import tr
from sndr_gui.models.bench.verifying import LEVELS, VerifyModel
from sndr_gui.views.bench.result import cells
from sndr_gui.views.engine.stages import JobView
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import clear
from sndr_gui.views.widgets.problems import ProblemBox


class VerifyCard(Card):
    """Level, button, the job while it goes on, and what came of it."""

    def __init__(self, model: VerifyModel) -> None:
        super().__init__(tr("Verify"))
        self.model = model
        self._shown: object = None
        self.level = ChoiceBox(tr("Level of the verification"))
        self.level.fill([(title, level) for level, (title, _) in LEVELS.items()], model.level)
        self.level.setSizeAdjustPolicy(ChoiceBox.SizeAdjustPolicy.AdjustToContents)
        self.level.activated.connect(lambda _place: model.choose(VerifyLevel(self.level.currentData())))
        self.start = button(tr("Verify"), model.start, icon="circle-check")
        self.about = text("", "muted", wrap=True)
        self.command = CopyField(what=tr("the command that verifies the same"), wraps=True)
        self.job = JobView(tr("verification"))
        self.job.cancel.clicked.connect(model.cancel)
        self.problem = ProblemBox()
        self.outcome = text("", wrap=True)
        for part in (
            Flow(self.level, self.start),
            self.about,
            self.command,
            self.problem,
            self.job,
            self.outcome,
        ):
            self.body.addWidget(part)
        self._table = QVBoxLayout()
        self.body.addLayout(self._table)
        model.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show what is known now."""
        model = self.model
        command = model.request.command
        self.start.setEnabled(model.can_start)
        self.start.setToolTip(
            tip(tr("Check the answers of the engine that is chosen above"), command=command)
        )
        set_text(self.about, LEVELS[model.level][1])
        self.command.set_content(command)
        self.problem.setVisible(model.problem is not None)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        job, report = model.job, model.report
        self.job.setVisible(job is not None and report is None)
        if job is not None:
            self.job.show_job(job, model.cancelling)
        self.outcome.setVisible(report is not None)
        if report is not None:
            set_text(self.outcome, model.outcome())
        if report != self._shown:
            self._shown = report
            clear(self._table)
            if report is not None and report.checks:
                self._table.addWidget(cells(headings(), check_rows(report.checks)))
