"""The dialog that shows a host sheet."""

from __future__ import annotations

from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyButton
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.layout import row


class SheetDialog(Dialog):
    """Shows what is known of a machine, to be copied."""

    def __init__(self, parent: QWidget, name: str, sheet: str) -> None:
        super().__init__(parent, f"Host sheet of {name}")
        self.resize(680, 560)
        self.content = QPlainTextEdit(sheet)
        self.content.setObjectName("mono")
        self.content.setReadOnly(True)
        self.content.setTabChangesFocus(True)
        self.content.setAccessibleName(f"Host sheet of {name}")
        self.copy = CopyButton("the sheet", "Copy")
        self.copy.set_content(sheet)
        close = button("Close", self.accept, kind="primary")
        close.setDefault(True)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        lines.addWidget(self.content)
        lines.addLayout(row(self.copy, None, close))
