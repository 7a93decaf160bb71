"""The question before an engine that serves is started again without a patch."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.models.patches.page import PatchesModel
from sndr_gui.models.patches.restart import Restart
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row


class RestartDialog(Dialog):
    """Says what the restart ends, and does it when the person agrees; Return and Escape leave it running."""

    def __init__(self, parent: QWidget, model: PatchesModel, asked: Restart) -> None:
        super().__init__(parent, asked.title)
        self._model, self._engine = model, asked.engine
        self.setMinimumWidth(460)
        self.does = text("", "muted", wrap=True)
        self.cuts = text("", "warn", wrap=True)
        self.also = text("", "muted", wrap=True)
        self.restart = button(tr("Start without it"), self._on_restart, kind="danger")
        self.restart.setAccessibleName(asked.title.rstrip("?"))
        self.stay = button(tr("Leave it running"), self.reject)
        self.stay.setDefault(True)
        outer = QVBoxLayout(self)
        outer.setSpacing(12)
        outer.addWidget(text(asked.title, name="big", wrap=True))
        for part in (self.does, self.cuts, self.also):
            outer.addWidget(part)
        outer.addWidget(CopyField(asked.command, tr("equivalent command")))
        outer.addLayout(row(None, self.stay, self.restart))
        state = model.session.state
        state.request_changed.connect(self._on_changed)
        state.engines_changed.connect(self._on_changed)
        self._show(asked)
        self.stay.setFocus()

    def _on_changed(self, *_changed: object) -> None:
        # Answers end and begin while the question stands, and so may the engine that it is about.
        now = self._model.restart()
        if now is not None and now.engine == self._engine:
            self._show(now)
        else:
            self.reject()

    def _show(self, asked: Restart) -> None:
        for part, content in ((self.does, asked.does), (self.cuts, asked.cuts), (self.also, asked.also)):
            set_text(part, content)
            part.setVisible(bool(content))
        self.setAccessibleDescription(f"{asked.does} {asked.cuts} {asked.also}".strip())

    def _on_restart(self) -> None:
        self.accept()
        self._model.start_without()

    def _on_finished(self, result: int) -> None:
        state = self._model.session.state
        state.request_changed.disconnect(self._on_changed)
        state.engines_changed.disconnect(self._on_changed)
        super()._on_finished(result)
