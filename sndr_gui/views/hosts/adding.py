"""The dialog that keeps another machine by a name."""

from __future__ import annotations

from PySide6.QtWidgets import QCheckBox, QFormLayout, QLineEdit, QVBoxLayout, QWidget

from engine_host.protocol.errors import Problem
from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.models.hosts.form import HostForm, suggested_name
from sndr_gui.models.hosts.page import HostsModel
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.fields import Completer
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.problems import ProblemBox


class AddHostDialog(Dialog):
    """Asks for a machine: what ssh takes, and how it is called here; both are checked while typed."""

    def __init__(self, parent: QWidget, model: HostsModel) -> None:
        super().__init__(parent, tr("Add a host"))
        self.setMinimumWidth(540)
        self._model = model
        self._named = False
        known = [one.destination for one in model.candidates]
        fields = QFormLayout()
        fields.setSpacing(8)
        self._fields = fields
        self.destination = self._line(
            tr("Address"), f"{known[0]}" if known else tr("user@machine, as for ssh")
        )
        self.name = self._line(tr("Name"), tr("how it is called here: small letters, digits, hyphens"))
        self.model_root = self._line(tr("Models in"), tr("the folder of its models, where you know it"))
        self.notes = self._line(tr("Notes"), tr("what is to be remembered about it"))
        self.agentless = QCheckBox(tr("Install nothing there"))
        self.agentless.setAccessibleName(tr("Install nothing there"))
        self.agentless.setToolTip(tr("Facts, and engines that run already; no page is about it"))
        self.agentless.toggled.connect(self.refresh)
        fields.addRow("", self.agentless)
        Completer(known, self.destination)
        found = formats.listed(known) if known else ""
        self.offered = text(
            tr("Your ssh configuration knows {found}.", found=found) if found else "", "muted", wrap=True
        )
        self.offered.setVisible(bool(found))
        self.wrong = text("", "bad", wrap=True)
        self.problem = ProblemBox()
        self.problem.hide()
        self.command = CopyField(what=tr("equivalent command"), wraps=True)
        self.save = button(tr("Add"), self._on_save, kind="primary")
        self.save.setDefault(True)
        self.name.textEdited.connect(self._on_named)
        self.destination.textChanged.connect(self._on_destination)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        lines.addLayout(fields)
        for part in (self.offered, self.wrong, self.problem, self.command):
            lines.addWidget(part)
        lines.addLayout(row(None, button(tr("Cancel"), self.reject), self.save))
        model.saved.connect(self.accept)
        model.refused.connect(self._on_refused)
        model.changed.connect(self.refresh)
        self.destination.setFocus()
        self.refresh()

    @property
    def form(self) -> HostForm:
        """The fields as they are typed."""
        return HostForm(
            self.name.text(),
            self.destination.text(),
            self.agentless.isChecked(),
            self.model_root.text(),
            self.notes.text(),
        )

    def _line(self, name: str, hint: str) -> QLineEdit:
        made = QLineEdit()
        made.setAccessibleName(name)
        made.setPlaceholderText(hint)
        made.textChanged.connect(self._on_edited)
        self._fields.addRow(text(name, "muted"), made)
        return made

    def _on_edited(self) -> None:
        if hasattr(self, "save"):
            self.problem.hide()
            self.refresh()

    def _on_named(self) -> None:
        self._named = True

    def _on_destination(self, destination: str) -> None:
        if not self._named:
            self.name.setText(suggested_name(destination.strip(), self._model.candidates))

    def refresh(self) -> None:
        """Show what is wrong, and the command."""
        asked, wrong = self.form.read()
        typed = bool(self.destination.text() and self.name.text())
        set_text(self.wrong, wrong if typed else "")
        self.wrong.setVisible(bool(wrong) and typed)
        self.command.set_content(self.form.command)
        self.save.setEnabled(asked is not None and self._model.connected and not self._model.pending("add"))

    def _on_save(self) -> None:
        asked, _wrong = self.form.read()
        if asked is not None:
            self._model.add(asked)

    def _on_refused(self, problem: Problem) -> None:
        self.problem.show_problem(problem)
        self.problem.show()
