"""A small table of texts that is as high as its rows: what another machine said, shown literally."""

from __future__ import annotations

from PySide6.QtWidgets import QGridLayout, QSizePolicy, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.language import tr
from sndr_gui.models.hosts.facts import FactPart
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.labels import ElidedLabel, set_text, text
from sndr_gui.views.widgets.layout import clear, show_part

_LONGEST = 400
_WIDEST = 40
_MOST = 60


class PlainTable(QWidget):
    """Rows of texts under their headings; the last column takes the room that is left, and is cut there."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(18)
        self._grid.setVerticalSpacing(6)
        self._shown: object = None

    def show_rows(self, headings: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> None:
        """Show these rows, sixty at most; the tooltip of a text that is cut has all of it."""
        if (headings, rows) == self._shown:
            return
        self._shown = (headings, rows)
        clear(self._grid)
        for column, heading in enumerate(headings):
            self._grid.addWidget(text(heading, "muted"), 0, column)
        for place, cells in enumerate(rows[:_MOST], start=1):
            for column, cell in enumerate(cells):
                self._grid.addWidget(_cell(cell, column == len(cells) - 1), place, column)
        if len(rows) > _MOST:
            more = text(tr("and {rows} more", rows=len(rows) - _MOST), "muted")
            self._grid.addWidget(more, _MOST + 1, 0, 1, -1)
        columns = max((len(cells) for cells in rows), default=len(headings))
        for column in range(columns):
            self._grid.setColumnStretch(column, 1 if column == columns - 1 else 0)
        show_part(self, bool(rows))


def _cell(content: str, is_last: bool) -> QWidget:
    shown = readable(content[:_LONGEST])
    if is_last:
        return ElidedLabel(shown)
    label = ElidedLabel(shown if len(shown) <= _WIDEST else f"{shown[: _WIDEST - 1]}…")
    # As wide as it is where there is room; it gives way before it widens the window.
    label.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
    return label


class FactCard(Card):
    """One part of a host's facts with its age."""

    def __init__(self, title: str) -> None:
        self.age = text("", "muted")
        super().__init__(title, self.age)
        self.problem = ElidedLabel("", "warn")
        self.table = PlainTable(title)
        self.nothing = text("", "muted", wrap=True)
        for part in (self.problem, self.table, self.nothing):
            self.body.addWidget(part)

    def show_part(self, part: FactPart) -> None:
        """Show what was last read, and why nothing newer could be."""
        set_text(self.age, part.age)
        set_text(self.problem, readable(part.problem[:_LONGEST]))
        self.problem.setVisible(bool(part.problem))
        self.table.show_rows(part.headings, part.rows)
        set_text(self.nothing, part.nothing)
        self.nothing.setVisible(not part.rows and bool(part.nothing))
        self.setAccessibleName(f"{part.title}: {part.age}")
