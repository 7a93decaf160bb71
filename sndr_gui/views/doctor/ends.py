"""Earlier ends of engines, also of hosts that ran before: each with its age, its reason and its record."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from engine_host.client.ends import End
from engine_host.protocol.language import tr
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import show_part


class EarlierEnds(QWidget):
    """The ends as lines, the newest first; hidden where there are none."""

    def __init__(self, most: int, open_record: Callable[[str], object]) -> None:
        """`open_record` shows a record, by its id."""
        super().__init__()
        self.rows = [_Row(number, open_record) for number in range(1, most + 1)]
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(8)
        lines.addWidget(text(tr("Earlier ends, the newest first"), name="h2"))
        for row in self.rows:
            lines.addWidget(row)

    def show_ends(self, ends: Sequence[End], record_of: Callable[[str], str]) -> None:
        """Show as many as there are lines for; `record_of` is the record of an engine, empty for none."""
        show_part(self, bool(ends))
        now = time.time()
        for place, row in enumerate(self.rows):
            row.setVisible(place < len(ends))
            if place < len(ends):
                end = ends[place]
                row.show_end(end, end.record or record_of(end.engine), now)


class _Row(QWidget):
    """One end, with a button that shows its record, and the command that does."""

    def __init__(self, number: int, open_record: Callable[[str], object]) -> None:
        super().__init__()
        self._open_record, self._record = open_record, ""
        self.sentence = text("", wrap=True)
        self.command = CopyField("", tr("the command that shows the record of end {number}", number=number))
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(4)
        lines.addWidget(self.sentence)
        self.open = button(
            tr("Open record"),
            self._on_open,
            icon="first-aid",
            hint=tr("Show how end {number} came", number=number),
        )
        line = QHBoxLayout()
        line.addWidget(self.command, 1)
        line.addWidget(self.open)
        lines.addLayout(line)

    def show_end(self, end: End, record: str, now: float) -> None:
        again = (" " + tr("It was started again, and runs.")) if end.lives_again else ""
        set_text(self.sentence, f"{end.age(now)}: {end.name} ({end.engine}): {end.sentence}{again}")
        self.command.set_content(f"sndr autopsy {record or end.engine}")
        self._record = record
        self.open.setEnabled(bool(record))

    def _on_open(self) -> None:
        self._open_record(self._record)
