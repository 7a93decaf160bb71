"""The dialog that shows what something would change on another machine before it is begun."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QCompleter, QFormLayout, QLineEdit, QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from sndr_gui.models.hosts.planned import AskedField, PlannedJob
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.diff_text import DiffView
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.problems import Findings, ProblemBox


class PlannedDialog(Dialog):
    """Asks what has to be said, shows the plan as a diff, and begins the job."""

    def __init__(self, parent: QWidget, model: PlannedJob) -> None:
        action = model.action
        super().__init__(parent, action.title)
        self.resize(720, 540)
        self._model = model
        self.lines: dict[str, QLineEdit] = {}
        self.checks: dict[str, QCheckBox] = {}
        fields = QFormLayout()
        fields.setSpacing(8)
        for field in action.fields:
            if field.check:
                fields.addRow("", self._check(field))
            else:
                fields.addRow(text(field.caption, "muted"), self._line(field))
        self.wrong = text("", "bad", wrap=True)
        self.problem = ProblemBox()
        self.findings = Findings(lambda _finding: None, lambda _fix: False)
        self.diff = DiffView("What would change there", "")
        self.command = CopyField(what="equivalent command", wraps=True)
        self.start = button(action.verb, model.start, kind="danger" if action.danger else "primary")
        cancel = button("Cancel", self.reject)
        parts = QVBoxLayout(self)
        parts.setContentsMargins(20, 18, 20, 18)
        parts.setSpacing(12)
        parts.addWidget(text(action.about, "muted", wrap=True))
        parts.addLayout(fields)
        for part in (self.wrong, self.problem, self.findings):
            parts.addWidget(part)
        parts.addWidget(self.diff, 1)
        parts.addWidget(self.command)
        parts.addLayout(row(None, cancel, self.start))
        model.changed.connect(self.refresh)
        model.started.connect(self.accept)
        (next(iter(self.lines.values()), None) or cancel).setFocus()
        model.read()
        self.refresh()

    def refresh(self) -> None:
        """Show the plan of now."""
        model = self._model
        set_text(self.wrong, readable(model.wrong))
        self.wrong.setVisible(bool(model.wrong))
        self.problem.setVisible(model.problem is not None)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        self.findings.show_findings(model.plan.findings if model.plan is not None else ())
        said = "Nothing changes."
        if not model.complete:
            said = "Its plan is shown here once everything is said."
        elif model.plan is None and model.problem is None and not model.wrong:
            said = "Looking at the machine…"
        self.diff.setPlaceholderText(said)
        self.diff.show_diff(readable(model.plan.diff) if model.plan is not None else "")
        self.command.set_content(model.command)
        self.start.setToolTip(tip(self.windowTitle(), command=model.command))
        self.start.setEnabled(model.possible)

    def _line(self, field: AskedField) -> QLineEdit:
        made = QLineEdit(field.value)
        made.setAccessibleName(field.caption)
        made.setPlaceholderText(field.hint)
        if field.choices:
            completer = QCompleter(list(field.choices), self)
            completer.setFilterMode(Qt.MatchFlag.MatchContains)
            completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
            made.setCompleter(completer)
        made.textChanged.connect(partial(self._model.set_value, field.id))
        self.lines[field.id] = made
        return made

    def _check(self, field: AskedField) -> QCheckBox:
        made = QCheckBox(field.caption)
        made.setAccessibleName(field.caption)
        made.toggled.connect(lambda on: self._model.set_value(field.id, "yes" if on else ""))
        self.checks[field.id] = made
        return made
