"""The sheet of shortcuts: all that keys do, those of the page in front first."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from sndr_gui.kit.rows import Column, RowsModel
from sndr_gui.kit.shortcuts import SHORTCUTS
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.tables import Table
from sndr_gui.views.window.pages import PAGES, page_entry

EVERYWHERE = "Everywhere"


@dataclass(frozen=True)
class SheetRow:
    """One line of the sheet: keys in the words of this machine's keyboard, what they do, and where."""

    keys: str
    does: str
    where: str


def sheet_rows(page: str) -> list[SheetRow]:
    """Return every shortcut: those of this page, those of every page, ways to pages, those of other pages."""

    def line(keys: str, does: str, where: str) -> SheetRow:
        native = QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText)
        return SheetRow(native, does, where)

    here: list[SheetRow] = []
    always: list[SheetRow] = []
    elsewhere: list[SheetRow] = []
    for one in SHORTCUTS.values():
        where = ", ".join(page_entry(name).title for name in one.pages) or EVERYWHERE
        place = always if not one.pages else here if page in one.pages else elsewhere
        place.append(line(one.keys, one.does, where))
    ways = [line(entry.shortcut, f"Go to {entry.title}", EVERYWHERE) for entry in PAGES]
    return [*here, *always, *ways, *elsewhere]


class ShortcutSheet(Dialog):
    """Shows the table, filtered by what is typed; Esc closes it."""

    def __init__(self, parent: QWidget, page: str) -> None:
        super().__init__(parent, "Keyboard shortcuts")
        self.resize(640, 560)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Filter by key, action or page…")
        self.filter.setAccessibleName("Filter shortcuts")
        columns: Sequence[Column[SheetRow]] = (
            Column("Keys", lambda one: one.keys),
            Column("What they do", lambda one: one.does),
            Column("Where", lambda one: one.where, tone=lambda _one: "muted"),
        )
        self.rows: RowsModel[SheetRow] = RowsModel(columns, repr, self)
        self.rows.set_rows(sheet_rows(page))
        self.table = Table(self.rows, "Shortcuts", 1, {0: 130, 2: 120})  # type: ignore[arg-type]
        self.none = text("No shortcut matches: the palette finds every command by its name.", "muted")
        self.filter.textChanged.connect(self._on_filter)
        self.close_button = button("Close", self.accept)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        lines.addWidget(self.filter)
        lines.addWidget(self.none)
        lines.addWidget(self.table, 1)
        lines.addLayout(row(None, self.close_button))
        self._on_filter("")
        self.filter.setFocus()

    def _on_filter(self, typed: str) -> None:
        self.rows.set_filter(typed)
        self.none.setVisible(not self.rows.shown)
