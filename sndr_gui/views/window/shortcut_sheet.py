"""The sheet of shortcuts: of the page in front, of everywhere, then by the groups of the sidebar."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from engine_host.client.language import tr
from sndr_gui.kit.rows import Column, RowsModel
from sndr_gui.kit.shortcuts import SHORTCUTS, Shortcut
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.tables import Table
from sndr_gui.views.window.pages import GROUPS, page_entry

EVERYWHERE = tr("Everywhere")


@dataclass(frozen=True)
class SheetRow:
    """One line of the sheet: keys in the words of this machine's keyboard, what they do, and where.

    The line above a group has its title in place of keys, and nothing else.
    """

    keys: str
    does: str = ""
    where: str = ""

    @property
    def is_title(self) -> bool:
        """True for the line above a group."""
        return not self.does

    def holds(self, words: Sequence[str]) -> bool:
        """Return True when each of these words stands somewhere in it."""
        all_of_it = f"{self.keys} {self.does} {self.where}".casefold()
        return all(word in all_of_it for word in words)


def sheet_rows(page: str, typed: str = "") -> list[SheetRow]:
    """Return the shortcuts that hold what was typed, each once, below the titles of their groups."""
    here = [one for one in SHORTCUTS.values() if page in one.pages]
    everywhere = [one for one in SHORTCUTS.values() if not one.pages]
    groups = [
        (tr("On this page: {title}", title=page_entry(page).title), _lines(here)),
        (EVERYWHERE, _lines(everywhere)),
    ]
    for group in GROUPS:
        ways = [
            SheetRow(_native(entry.shortcut), tr("Go to {title}", title=entry.title), EVERYWHERE)
            for entry in group.pages
        ]
        names = {entry.name for entry in group.pages}
        # Of a shortcut of several pages the first one's group has it.
        mine = [one for one in SHORTCUTS.values() if one.pages and one.pages[0] in names and one not in here]
        groups.append((group.title, [*ways, *_lines(mine)]))
    words = typed.casefold().split()
    found: list[SheetRow] = []
    for title, lines in groups:
        if shown := [line for line in lines if line.holds(words)]:
            found += [SheetRow(title), *shown]
    return found


def _lines(shortcuts: Iterable[Shortcut]) -> list[SheetRow]:
    return [
        SheetRow(
            " or ".join(map(_native, one.each)),
            one.does,
            ", ".join(page_entry(name).title for name in one.pages) or EVERYWHERE,
        )
        for one in shortcuts
    ]


def _native(pressed: str) -> str:
    return QKeySequence(pressed).toString(QKeySequence.SequenceFormat.NativeText)


class ShortcutSheet(Dialog):
    """Shows the table, filtered by what is typed; Esc closes it."""

    def __init__(self, parent: QWidget, page: str) -> None:
        super().__init__(parent, tr("Keyboard shortcuts"))
        self.resize(660, 620)
        self._page = page
        self.filter = QLineEdit()
        self.filter.setPlaceholderText(tr("Filter by key, action or page…"))
        self.filter.setAccessibleName(tr("Filter shortcuts"))
        columns: Sequence[Column[SheetRow]] = (
            Column(tr("Keys"), lambda one: one.keys, tone=lambda one: "accent" if one.is_title else ""),
            Column(tr("What they do"), lambda one: one.does),
            Column(tr("Where"), lambda one: one.where, tone=lambda _one: "muted"),
        )
        self.rows: RowsModel[SheetRow] = RowsModel(columns, repr, self)
        self.table = Table(self.rows, tr("Shortcuts"), 1, {0: 130, 2: 120})  # type: ignore[arg-type]
        self.none = text(tr("No shortcut matches: the palette finds every command by its name."), "muted")
        self.filter.textChanged.connect(self._on_filter)
        self.close_button = button(tr("Close"), self.accept)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        lines.addWidget(text(tr("Keyboard shortcuts"), name="big"))
        lines.addWidget(self.filter)
        lines.addWidget(self.none)
        lines.addWidget(self.table, 1)
        lines.addLayout(row(None, self.close_button))
        self._on_filter("")
        self.filter.setFocus()

    def _on_filter(self, typed: str) -> None:
        shown = sheet_rows(self._page, typed)
        self.table.clearSpans()
        self.rows.set_rows(shown)
        for place, line in enumerate(shown):
            if line.is_title:
                self.table.setSpan(place, 0, 1, 3)
        self.none.setVisible(not shown)
