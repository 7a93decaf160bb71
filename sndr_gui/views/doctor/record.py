"""The dialog of a record: what an engine that died held, and what would have saved it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.models.doctor.record import RecordModel
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyButton, CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.problems import ProblemBox

_ABOUT = tr(
    "What was measured before the end, who held memory, and what would have saved it. Texts of requests and "
    "answers are not in it."
)


class RecordDialog(Dialog):
    """Shows one record; `open_log` leads to the log of its engine at its end."""

    def __init__(self, parent: QWidget, model: RecordModel, open_log: Callable[[str], object]) -> None:
        super().__init__(parent, tr("How it ended"))
        self.resize(860, 600)
        self.model, self._open_log = model, open_log
        self.problem = ProblemBox()
        self.shown = QPlainTextEdit(tr("Reading…"))
        self.shown.setReadOnly(True)
        self.shown.setAccessibleName(tr("What the record says"))
        self.shown.setFont(theme.mono_font(11))
        self.shown.setTabChangesFocus(True)
        self.log = button(
            tr("Open log"), self._on_log, icon="terminal", hint=tr("Open the log at the failure")
        )
        self.copied = CopyButton(tr("the text that is shown"), tr("Copy"))
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        lines.addWidget(text(tr("How it ended"), name="h2"))
        lines.addWidget(text(_ABOUT, "muted", wrap=True))
        lines.addWidget(self.problem)
        lines.addWidget(self.shown, 1)
        lines.addWidget(CopyField(model.command, tr("equivalent command")))
        lines.addLayout(row(self.copied, self.log, None, button(tr("Close"), self.reject)))
        model.changed.connect(self.refresh)
        self.refresh()
        model.load()

    def refresh(self) -> None:
        """Show what was read."""
        model = self.model
        self.problem.setVisible(model.problem is not None)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        self.shown.setVisible(model.problem is None)
        self.log.setEnabled(model.opened is not None)
        self.copied.set_content(model.text)
        if model.opened is not None:
            self.shown.setPlainText(model.text)

    def _on_log(self) -> None:
        if self.model.opened is not None:
            engine = self.model.opened.record.engine.id
            self.accept()
            self._open_log(engine)
