"""The dialog that changes what is kept of a host, shown as a diff before."""

from __future__ import annotations

from PySide6.QtWidgets import QCheckBox, QFormLayout, QLineEdit, QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import RemoteHost, RemoteMode
from sndr_gui.models.hosts.change import FIELDS, ChangeForm
from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.diff_text import DiffView
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.problems import ProblemBox


class ChangeHostDialog(Dialog):
    """Asks for other facts about a host."""

    def __init__(self, parent: QWidget, model: HostDetailModel, remote: RemoteHost) -> None:
        super().__init__(parent, tr("Change {name}", name=remote.name))
        self.setMinimumWidth(560)
        self._model, self._old = model, remote
        fields = QFormLayout()
        fields.setSpacing(8)
        self.lines: dict[str, QLineEdit] = {}
        self._first: dict[str, str] = {}
        for name, (caption, hint) in FIELDS.items():
            line = QLineEdit(getattr(remote, name) or "")
            line.setAccessibleName(caption)
            line.setPlaceholderText(hint)
            line.textChanged.connect(self.refresh)
            fields.addRow(text(caption, "muted"), line)
            self.lines[name] = line
            self._first[name] = line.text()
        self.agentless = QCheckBox(tr("Install nothing there"))
        self.agentless.setAccessibleName(tr("Install nothing there"))
        self.agentless.setChecked(remote.mode is RemoteMode.AGENTLESS)
        self.agentless.toggled.connect(self.refresh)
        fields.addRow("", self.agentless)
        self.wrong = text("", "bad", wrap=True)
        self.problem = ProblemBox()
        self.diff = DiffView(tr("What would change"), tr("Nothing is changed yet."))
        self.diff.setFixedHeight(110)
        self.command = CopyField(what=tr("equivalent command"), wraps=True)
        self.save = button(tr("Keep"), self._on_save, kind="primary")
        self.save.setDefault(True)
        parts = QVBoxLayout(self)
        parts.setContentsMargins(20, 18, 20, 18)
        parts.setSpacing(12)
        parts.addLayout(fields)
        for part in (self.wrong, self.problem, self.diff, self.command):
            parts.addWidget(part)
        parts.addLayout(row(None, button(tr("Cancel"), self.reject), self.save))
        model.saved.connect(self.accept)
        model.changed.connect(self.refresh)
        self.lines["destination"].setFocus()
        self.refresh()

    @property
    def form(self) -> ChangeForm:
        """The fields as they are typed; what a line cannot hold of old notes stays until they are edited."""
        texts = {
            name: line.text() if line.text() != self._first[name] else getattr(self._old, name) or ""
            for name, line in self.lines.items()
        }
        return ChangeForm(self._old, texts, self.agentless.isChecked())

    def refresh(self) -> None:
        """Show what is wrong, what would change, and the command."""
        form = self.form
        asked, wrong = form.read()
        set_text(self.wrong, wrong)
        self.wrong.setVisible(bool(wrong))
        problem = self._model.problems.get("change")
        self.problem.setVisible(problem is not None)
        if problem is not None:
            self.problem.show_problem(problem)
        self.diff.show_diff(readable(form.diff))
        self.command.set_content(form.command)
        waits = self._model.pending("change") or not self._model.hosts.connected
        self.save.setEnabled(asked is not None and bool(form.diff) and not waits)

    def _on_save(self) -> None:
        asked, _wrong = self.form.read()
        if asked is not None:
            self._model.change(asked)
