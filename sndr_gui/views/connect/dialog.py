"""The question before a client's files are written: what changes, and where the old ones stay."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.protocol.endpoint.connect import ClientChange
from engine_host.protocol.language import tr
from sndr_gui.models.connect.page import ConnectModel
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.diff_text import DiffView
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import row


class WriteDialog(Dialog):
    """Shows what writing changes, as a diff, and writes."""

    def __init__(self, parent: QWidget, model: ConnectModel, change: ClientChange) -> None:
        super().__init__(parent, tr("Set up {title}", title=change.title))
        self.resize(680, 480)
        self._model = model
        self.diff = DiffView(tr("Changes to write"), tr("No changes."))
        self.diff.show_diff("\n".join(file.difference for file in change.files))
        old = [file.path for file in change.files if not file.is_new]
        kept = (
            tr("What is there now is kept beside it, as a copy that ends in .sndr-backup. Undo puts it back.")
            if old
            else tr("There is no such file yet. Undo takes it away again.")
        )
        self.write = button(tr("Write"), self._on_write, kind="primary")
        self.write.setDefault(True)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        lines.addWidget(text(tr("Settings for {title}", title=change.title), name="h2"))
        lines.addWidget(self.diff, 1)
        lines.addWidget(text(kept, "muted", wrap=True))
        lines.addWidget(CopyField(model.command("--write"), tr("equivalent command"), wraps=True))
        lines.addLayout(row(None, button(tr("Cancel"), self.reject), self.write))
        self.write.setFocus()

    def _on_write(self) -> None:
        self._model.write()
        self.accept()
