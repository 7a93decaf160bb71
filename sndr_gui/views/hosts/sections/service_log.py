"""The dialog that follows the lines of a unit or a container of another machine."""

from __future__ import annotations

from PySide6.QtWidgets import QCheckBox, QPlainTextEdit, QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.language import tr
from sndr_gui.models.hosts.service_log import ServiceLogModel
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.problems import ProblemBox

_MOST_LINES = 20_000
_LONGEST = 4_000


class ServiceLogDialog(Dialog):
    """The newest lines of a service, and those that come while it is open."""

    def __init__(self, parent: QWidget, model: ServiceLogModel) -> None:
        name = model.service.name
        super().__init__(parent, tr("Log of {name} on {host}", name=name, host=model.host))
        self.resize(820, 560)
        self._model = model
        self.problem = ProblemBox()
        self.content = QPlainTextEdit()
        self.content.setObjectName("mono")
        self.content.setReadOnly(True)
        self.content.setTabChangesFocus(True)
        self.content.setAccessibleName(tr("Log of {name}", name=name))
        self.content.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.content.setMaximumBlockCount(_MOST_LINES)
        self.following = QCheckBox(tr("Follow new lines"))
        self.following.setAccessibleName(tr("Follow new lines"))
        self.following.setChecked(model.following)
        self.following.toggled.connect(model.follow)
        self.command = CopyField(model.command, tr("equivalent command"))
        close = button(tr("Close"), self.accept, kind="primary")
        close.setDefault(True)
        parts = QVBoxLayout(self)
        parts.setContentsMargins(20, 18, 20, 18)
        parts.setSpacing(12)
        parts.addWidget(self.problem)
        parts.addWidget(self.content, 1)
        parts.addWidget(self.command)
        parts.addLayout(row(self.following, None, close))
        model.lines.connect(self._on_lines)
        model.changed.connect(self.refresh)
        self.finished.connect(lambda _result: model.close())
        model.read()
        self.refresh()

    def refresh(self) -> None:
        """Show why there are no lines, where there are none."""
        model = self._model
        self.problem.setVisible(model.problem is not None)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        self.content.setPlaceholderText(readable(model.note) or tr("It has written nothing yet."))
        self.command.set_content(model.command)

    def _on_lines(self, lines: list[str], anew: bool) -> None:
        shown = "\n".join(readable(line[:_LONGEST]) for line in lines)
        bar = self.content.verticalScrollBar()
        at_end, before = bar.value() >= bar.maximum(), bar.value()
        if anew:
            if self.content.toPlainText() == shown:
                return
            self.content.setPlainText(shown)
            bar.setValue(bar.maximum())
            return
        self.content.appendPlainText(shown)
        # Whoever reads further up is left there.
        bar.setValue(bar.maximum() if at_end else before)
