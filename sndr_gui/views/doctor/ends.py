"""Earlier ends of engines, also of hosts that ran before: each with its age, its reason and its record."""

from __future__ import annotations

import time
from collections.abc import Sequence

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.client.ends import End
from engine_host.protocol.language import tr
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import show_part


class EarlierEnds(QWidget):
    """The ends as lines, the newest first; hidden where there are none."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.rows = [_Row(number) for number in range(1, most + 1)]
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(8)
        lines.addWidget(text(tr("Earlier ends, the newest first"), name="h2"))
        for row in self.rows:
            lines.addWidget(row)

    def show_ends(self, ends: Sequence[End]) -> None:
        """Show as many as there are lines for."""
        show_part(self, bool(ends))
        now = time.time()
        for place, row in enumerate(self.rows):
            row.setVisible(place < len(ends))
            if place < len(ends):
                row.show_end(ends[place], now)


class _Row(QWidget):
    """One end, with the command that shows its record."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.sentence = text("", wrap=True)
        self.command = CopyField("", tr("the command that shows the record of end {number}", number=number))
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(4)
        lines.addWidget(self.sentence)
        lines.addWidget(self.command)

    def show_end(self, end: End, now: float) -> None:
        again = (" " + tr("It was started again, and runs.")) if end.lives_again else ""
        set_text(self.sentence, f"{end.age(now)}: {end.name} ({end.engine}): {end.sentence}{again}")
        self.command.set_content(f"sndr autopsy {end.record or end.engine}")
