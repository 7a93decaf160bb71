"""The sheet of shortcuts: of the page in front, of everywhere, then by the groups of the sidebar."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.host.notices import Notices
from sndr_gui.kit import formats
from sndr_gui.kit.rows import Column, RowsModel
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.kit.shortcuts import PAGE, SHORTCUTS, each
from sndr_gui.views.shortcuts.editor import KeysEditor
from sndr_gui.views.shortcuts.rebinding import native
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.tables import Table
from sndr_gui.views.window.pages import GROUPS, page_entry

EVERYWHERE = tr("Everywhere")


def go_to(title: str) -> str:
    """Return the words of the action that opens a page."""
    return tr("Go to {title}", title=title)


@dataclass(frozen=True)
class SheetRow:
    """One line of the sheet: keys in the words of this machine's keyboard, what they do, and where.

    The line above a group has its title in place of keys, and nothing else. `name` is that of the action.
    """

    keys: str
    does: str = ""
    where: str = ""
    name: str = field(default="", compare=False)

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
    here = [name for name, one in SHORTCUTS.items() if page in one.pages]
    everywhere = [name for name, one in SHORTCUTS.items() if not one.pages]
    groups = [
        (tr("On this page: {title}", title=page_entry(page).title), _lines(here)),
        (EVERYWHERE, _lines(everywhere)),
    ]
    for group in GROUPS:
        ways = [
            SheetRow(native(entry.shortcut), go_to(entry.title), EVERYWHERE, PAGE + entry.name)
            for entry in group.pages
        ]
        names = {entry.name for entry in group.pages}
        # Of a shortcut of several pages the first one's group has it.
        mine = [
            name
            for name, one in SHORTCUTS.items()
            if one.pages and one.pages[0] in names and name not in here
        ]
        groups.append((group.title, [*ways, *_lines(mine)]))
    words = typed.casefold().split()
    found: list[SheetRow] = []
    for title, lines in groups:
        if shown := [line for line in lines if line.holds(words)]:
            found += [SheetRow(title), *shown]
    return found


def _lines(names: Iterable[str]) -> list[SheetRow]:
    return [
        SheetRow(
            formats.either([native(pressed) for pressed in each(name)]),
            SHORTCUTS[name].does,
            ", ".join(page_entry(page).title for page in SHORTCUTS[name].pages) or EVERYWHERE,
            name,
        )
        for name in names
    ]


class ShortcutSheet(Dialog):
    """Shows the table, filtered by what is typed, and changes the keys of its rows; Esc closes it."""

    def __init__(self, parent: QWidget, page: str, file: SettingsFile, notices: Notices) -> None:
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
        usual = {
            PAGE + one.name: (go_to(one.title), one.usual_keys) for group in GROUPS for one in group.pages
        }
        self.editor = KeysEditor(parent, file, notices, usual)
        self.editor.changed.connect(self._on_changed)
        self.table.row_chosen.connect(self._on_chosen)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        lines.addWidget(text(tr("Keyboard shortcuts"), name="big"))
        lines.addWidget(self.filter)
        lines.addWidget(self.none)
        lines.addWidget(self.table, 1)
        lines.addWidget(self.editor)
        lines.addLayout(row(None, self.close_button))
        self._on_filter("")
        self.filter.setFocus()

    def _on_chosen(self, place: int) -> None:
        line = self.rows.row_at(place)
        self.editor.show_action(line.name if line is not None else "", line.does if line is not None else "")

    def _on_changed(self) -> None:
        place = self.table.currentIndex()
        self._on_filter(self.filter.text())
        self.table.setCurrentIndex(self.rows.index(place.row(), 0))

    def _on_filter(self, typed: str) -> None:
        shown = sheet_rows(self._page, typed)
        self.table.clearSpans()
        self.rows.set_rows(shown)
        for place, line in enumerate(shown):
            if line.is_title:
                self.table.setSpan(place, 0, 1, 3)
        self.none.setVisible(not shown)
