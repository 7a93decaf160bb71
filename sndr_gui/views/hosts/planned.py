"""The dialog that shows what something would change on another machine before it is begun."""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QCheckBox, QFormLayout, QLineEdit, QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.language import tr
from engine_host.protocol.launch.consents import ConsentNeeded
from sndr_gui.models.hosts.planned import AskedField, PlannedJob
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.demands import DemandList
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.diff_text import DiffView
from sndr_gui.views.widgets.fields import ChoiceBox, Completer
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import clear, row
from sndr_gui.views.widgets.problems import Findings, ProblemBox

_FEW_FIELDS, _FIELD_HEIGHT = 3, 34


class PlannedDialog(Dialog):
    """Asks what has to be said, shows the plan as a diff, and begins the job."""

    def __init__(self, parent: QWidget, model: PlannedJob) -> None:
        action = model.action
        super().__init__(parent, action.title)
        self._model = model
        self.lines: dict[str, QLineEdit] = {}
        self.choices: dict[str, ChoiceBox] = {}
        self.checks: dict[str, QCheckBox] = {}
        self._fields = QFormLayout()
        self._fields.setSpacing(8)
        self._more: list[QWidget] = []
        for field in (one for one in action.fields if not one.check):
            made = self._choice(field) if field.closed else self._line(field)
            self._fields.addRow(text(field.caption, "muted"), made)
            self._more += [made] if field.more else []
        checks = [self._check(field) for field in action.fields if field.check]
        self.more = QCheckBox(tr("Show more settings"))
        self.more.setAccessibleName(tr("Show more settings"))
        self.more.toggled.connect(self._show_more)
        self.more.setVisible(bool(self._more))
        self._show_more(False)
        usual = len(action.fields) - len(checks) - len(self._more)
        self.resize(720, 540 + _FIELD_HEIGHT * max(0, usual - _FEW_FIELDS))
        self.wrong = text("", "bad", wrap=True)
        self.problem = ProblemBox()
        self.findings = Findings(lambda _finding: None, lambda _fix: False)
        self.demands: DemandList | None = None
        self._asked: ConsentNeeded | None = None
        self.consent = button(tr("Go on with all of this"), self._on_consent, kind="danger")
        self.diff = DiffView(tr("What would change there"), "")
        self.command = CopyField(what=tr("equivalent command"), wraps=True)
        self.start = button(action.verb, model.start, kind="danger" if action.danger else "primary")
        cancel = button(tr("Cancel"), self.reject)
        parts = QVBoxLayout(self)
        parts.setContentsMargins(20, 18, 20, 18)
        parts.setSpacing(12)
        parts.addWidget(text(action.about, "muted", wrap=True))
        parts.addLayout(self._fields)
        parts.addWidget(Flow(*checks, self.more))
        for part in (self.wrong, self.problem, self.findings):
            parts.addWidget(part)
        self._demanded = QVBoxLayout()
        parts.addLayout(self._demanded)
        parts.addWidget(self.consent)
        parts.addWidget(self.diff, 1)
        parts.addWidget(self.command)
        parts.addLayout(row(None, cancel, self.start))
        model.changed.connect(self.refresh)
        model.started.connect(self.accept)
        (next(iter((*self.lines.values(), *self.choices.values())), None) or cancel).setFocus()
        model.read()
        self.refresh()

    def refresh(self) -> None:
        """Show the plan of now."""
        model = self._model
        set_text(self.wrong, readable(model.wrong))
        self.wrong.setVisible(bool(model.wrong))
        needed = model.needed
        self._show_demands(needed)
        self.problem.setVisible(model.problem is not None and needed is None)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        self.diff.setVisible(needed is None)
        self.findings.show_findings(model.plan.findings if model.plan is not None else ())
        said = tr("Nothing changes.")
        if not model.complete:
            said = tr("Its plan is shown here once everything is said.")
        elif model.plan is None and model.problem is None and not model.wrong:
            said = tr("Looking at the machine…")
        self.diff.setPlaceholderText(said)
        self.diff.show_diff(readable(model.plan.diff) if model.plan is not None else "")
        self.command.set_content(model.command)
        self.start.setToolTip(tip(self.windowTitle(), command=model.command))
        self.start.setEnabled(model.possible)

    def _show_demands(self, needed: ConsentNeeded | None) -> None:
        self.consent.setVisible(needed is not None)
        if needed == self._asked:
            return
        self._asked = needed
        clear(self._demanded)
        self.demands = None
        if needed is not None:
            self.demands = DemandList(needed)
            self._demanded.addWidget(self.demands)
            self.consent.setEnabled(self.demands.complete)

    def _on_consent(self) -> None:
        if self._asked is not None:
            self._model.consent(self._asked.digest)

    def _show_more(self, on: bool) -> None:
        for made in self._more:
            self._fields.setRowVisible(made, on)

    def _choice(self, field: AskedField) -> ChoiceBox:
        made = ChoiceBox(field.caption)
        made.fill([(one, one) for one in field.choices], field.value)
        made.currentTextChanged.connect(partial(self._model.set_value, field.id))
        self.choices[field.id] = made
        return made

    def _line(self, field: AskedField) -> QLineEdit:
        made = QLineEdit(field.value)
        made.setAccessibleName(field.caption)
        made.setPlaceholderText(field.hint)
        if field.choices:
            Completer(field.choices, made)
        made.textChanged.connect(partial(self._model.set_value, field.id))
        self.lines[field.id] = made
        return made

    def _check(self, field: AskedField) -> QCheckBox:
        made = QCheckBox(field.caption)
        made.setAccessibleName(field.caption)
        made.setChecked(field.value == "yes")
        made.toggled.connect(lambda on: self._model.set_value(field.id, "yes" if on else ""))
        self.checks[field.id] = made
        return made
