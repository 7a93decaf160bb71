"""The dialog that shows what an install, an update or a removal would change on another machine."""

from __future__ import annotations

from PySide6.QtWidgets import QCheckBox, QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.language import tr
from sndr_gui.models.hosts.installing import InstallModel, Verb
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.diff_text import DiffView
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.problems import Findings, ProblemBox

_TITLES = {
    Verb.INSTALL: (tr("Install the engine host on {host}"), tr("Install")),
    Verb.START: (tr("Start the engine host on {host}"), tr("Start it")),
    Verb.UPDATE: (tr("Update the engine host on {host}"), tr("Update")),
    Verb.BACK: (tr("Roll {host} back to the previous version"), tr("Go back")),
    Verb.UNINSTALL: (tr("Remove the engine host from {host}"), tr("Remove")),
}
_ABOUT = {
    Verb.INSTALL: tr("For your user there alone; nothing of it needs root. This is all that would change:"),
    Verb.START: tr("Settings, data and models there stay as they are. This is all that would change:"),
    Verb.UPDATE: tr("What runs there stays until the new version answers. This is all that would change:"),
    Verb.BACK: tr("What runs there now stays, one step away. This is all that would change:"),
    Verb.UNINSTALL: tr(
        "Its settings and data go with it. What was there before stays. This would be removed:"
    ),
}


class InstallDialog(Dialog):
    """Shows the plan as a diff of that machine, and starts it."""

    def __init__(self, parent: QWidget, model: InstallModel) -> None:
        title, verb = _TITLES[model.verb]
        super().__init__(parent, title.format(host=model.name))
        self.resize(760, 560)
        self._model = model
        self._about = text(_ABOUT[model.verb], "muted", wrap=True)
        self.offline = QCheckBox(tr("Send the packages from here: the machine has no internet"))
        self.offline.setAccessibleName(tr("Send the packages from here"))
        self.offline.setVisible(model.verb in {Verb.INSTALL, Verb.START, Verb.UPDATE})
        self.offline.toggled.connect(model.set_offline)
        self.problem = ProblemBox()
        self.findings = Findings(lambda _finding: None, lambda _fix: False)
        self.diff = DiffView(tr("What would change there"), tr("Looking at the machine…"))
        self.command = CopyField(what=tr("equivalent command"), wraps=True)
        self.start = button(verb, model.start, kind="danger" if model.verb is Verb.UNINSTALL else "primary")
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        for part in (self._about, self.offline, self.problem, self.findings):
            lines.addWidget(part)
        lines.addWidget(self.diff, 1)
        lines.addWidget(self.command)
        cancel = button(tr("Cancel"), self.reject)
        lines.addLayout(row(None, cancel, self.start))
        model.changed.connect(self.refresh)
        model.started.connect(self.accept)
        cancel.setFocus()
        model.read()

    def refresh(self) -> None:
        """Show the plan of now."""
        model = self._model
        self.problem.setVisible(model.problem is not None)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        self.findings.show_findings(model.plan.findings if model.plan is not None else ())
        looking = model.plan is None and model.problem is None
        self.diff.setPlaceholderText(tr("Looking at the machine…") if looking else tr("Nothing changes."))
        self.diff.show_diff(readable(model.diff))
        self.command.set_content(model.command)
        self.start.setToolTip(tip(self.windowTitle(), command=model.command))
        self.start.setEnabled(model.possible)
