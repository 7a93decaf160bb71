"""The patch folders that cannot be used, each with its problem."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from engine_host.protocol.patches import PatchFault
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import column, row, scrolling
from sndr_gui.views.widgets.problems import ProblemBox


class FaultsDialog(Dialog):
    """Lists the faults; never blocks the window."""

    def __init__(self, parent: QWidget, faults: tuple[PatchFault, ...]) -> None:
        super().__init__(parent, tr("Patch folders that cannot be used"))
        self.resize(560, min(520, 170 + 150 * len(faults)))
        canvas = QWidget()
        canvas.setObjectName("canvas")
        lines = QVBoxLayout(canvas)
        lines.setContentsMargins(0, 0, 8, 0)
        lines.setSpacing(12)
        self.boxes: list[ProblemBox] = []
        for fault in faults:
            box = ProblemBox("warning")
            box.show_problem(fault.problem)
            self.boxes.append(box)
            lines.addLayout(column(box, CopyField(fault.folder, tr("the folder")), spacing=4))
        lines.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setSpacing(12)
        hint = tr("Starts leave these out. Other patches are not affected.")
        outer.addWidget(text(hint, "muted", wrap=True))
        outer.addWidget(scrolling(canvas), 1)
        self.close_button = button(tr("Close"), self.accept)
        outer.addLayout(row(None, self.close_button))
