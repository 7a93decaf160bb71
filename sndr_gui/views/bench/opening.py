"""The dialog that opens the report of somebody else."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from engine_host.protocol.language import tr


def ask_for_report(parent: QWidget, chosen: Callable[[str], object]) -> None:
    """Ask for a file that `sndr bench report RUN --json` wrote."""
    dialog = QFileDialog(parent, tr("Open a report"), "", tr("Reports of the bench lab (*.json)"))
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(chosen)
    dialog.open()
