"""The dialog that shows a host sheet."""

from __future__ import annotations

from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.remote.hosts import HostSheet
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyButton, CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.layout import row, scrolling
from sndr_gui.views.widgets.problems import Findings


class SheetDialog(Dialog):
    """Shows what is known of a machine and what looks wrong there; the page is to be copied."""

    def __init__(self, parent: QWidget, sheet: HostSheet) -> None:
        super().__init__(parent, f"Host sheet of {sheet.host}")
        self.resize(720, 620)
        self.findings = Findings(lambda _finding: None, lambda _fix: False)
        self.findings.show_findings(sheet.findings)
        found = scrolling(self.findings)
        found.setMaximumHeight(240)
        found.setVisible(bool(sheet.findings))
        self.content = QPlainTextEdit(readable(sheet.markdown))
        self.content.setObjectName("mono")
        self.content.setReadOnly(True)
        self.content.setTabChangesFocus(True)
        self.content.setAccessibleName(f"Host sheet of {sheet.host}")
        self.copy = CopyButton("the sheet", "Copy")
        self.copy.set_content(sheet.markdown)
        close = button("Close", self.accept, kind="primary")
        close.setDefault(True)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        lines.addWidget(found)
        lines.addWidget(self.content, 1)
        lines.addWidget(CopyField(f"sndr host sheet {sheet.host}", "equivalent command"))
        lines.addLayout(row(self.copy, None, close))
