"""The row of the bench lab that makes a run the baseline, and holds the chosen run to it."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.client.bench_reports.regression import regression_lines
from engine_host.protocol.language import tr
from sndr_gui.models.bench.baselines import BaselineModel
from sndr_gui.models.bench.words import one_line
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.problems import ProblemBox


class BaselineRow(QWidget):
    """Two buttons, what the run is held to, and the judgement once it was asked for."""

    def __init__(self, model: BaselineModel) -> None:
        super().__init__()
        self.model = model
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        self.mark = button(tr("Make it the baseline"), model.mark, icon="bookmark")
        self.check = button(tr("Check against its baseline"), model.check, icon="circle-check")
        self.about = text("", "muted", wrap=True)
        self.problem = ProblemBox()
        self.good = text("", "good", wrap=True)
        self.bad = text("", "bad", wrap=True)
        for part in (Flow(self.mark, self.check), self.about, self.problem, self.good, self.bad):
            lines.addWidget(part)
        model.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show what is known now."""
        model = self.model
        run, found = model.run, model.judgement
        if run is None:
            return
        said = tr("Unset as baseline") if run.baseline else tr("Make it the baseline")
        self.mark.setText(said)
        self.mark.setAccessibleName(f"{said}: {one_line(run)}")
        self.mark.setEnabled(run.baseline or (run.complete and not run.struck))
        self.mark.setToolTip(
            tip(
                tr("Compare later runs of its workload, model and kind of engine with it")
                if run.complete and not run.struck
                else tr("A run that is partial or struck cannot be a baseline"),
                command=model.mark_command,
            )
        )
        self.check.setVisible(model.baseline is not None)
        self.check.setAccessibleName(f"{tr('Check against its baseline')}: {one_line(run)}")
        self.check.setToolTip(
            tip(tr("Is any figure significantly slower, by more than 3 %?"), command=model.check_command)
        )
        set_text(self.about, model.about)
        self.problem.setVisible(model.problem is not None)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        for label, shown in ((self.good, True), (self.bad, False)):
            label.setVisible(found is not None and found.passed is shown)
            if found is not None:
                set_text(label, "\n".join(regression_lines(found)))
