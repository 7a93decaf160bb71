"""The host sheet: one page of Markdown about a machine, to be copied."""

from __future__ import annotations

from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.language import tr
from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyButton, CopyField

_HEIGHT = 420


class SheetSection(QWidget):
    """Decided, measured, what runs, what is left to do."""

    def __init__(self, model: HostDetailModel) -> None:
        super().__init__()
        self._model = model
        self.copy = CopyButton(tr("the sheet"), tr("Copy"))
        card = Card(tr("Sheet"), self.copy)
        self.content = QPlainTextEdit()
        self.content.setObjectName("mono")
        self.content.setReadOnly(True)
        self.content.setTabChangesFocus(True)
        self.content.setMinimumHeight(_HEIGHT)
        self.content.setPlaceholderText(tr("Reading the sheet…"))
        self.content.setAccessibleName(tr("Host sheet of {name}", name=model.name))
        card.body.addWidget(self.content)
        card.body.addWidget(
            CopyField(f"sndr host sheet {model.name} --output {model.name}.md", tr("equivalent command"))
        )
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.addWidget(card)

    def refresh(self) -> None:
        """Show the sheet as it was last read; the place in it stays where it is the same."""
        sheet = self._model.sheet
        if sheet is None:
            return
        shown = readable(sheet.markdown)
        if shown != self.content.toPlainText():
            self.content.setPlainText(shown)
        self.copy.set_content(sheet.markdown)
