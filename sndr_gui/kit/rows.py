"""A table model over a Python list, filtered and sorted in Python: a proxy model is ten times slower."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from sndr_gui.kit.tooltip import plain_tooltip

Row = TypeVar("Row")
Index = QModelIndex | QPersistentModelIndex
TONE_ROLE = Qt.ItemDataRole.UserRole + 1


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column: its title, its text, what it sorts by, the tone of its text and its side."""

    title: str
    text: Callable[[Row], str]
    sort: Callable[[Row], Any] | None = None
    tone: Callable[[Row], str] | None = None
    right: bool = False
    tip: Callable[[Row], str] | None = None
    about: str = ""
    """What the column holds, as its heading tells with the pointer on it and to screen readers."""


class RowsModel(QAbstractTableModel, Generic[Row]):
    """Rows of one type in columns; `set_rows` keeps the order of the chosen sort."""

    def __init__(
        self, columns: Sequence[Column[Row]], key: Callable[[Row], str], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._columns = list(columns)
        self._key = key
        self._all: list[Row] = []
        self._shown: list[Row] = []
        self._filter = ""
        self._sort: tuple[int, bool] | None = None

    @property
    def shown(self) -> Sequence[Row]:
        """The rows that pass the filter, in order."""
        return self._shown

    @property
    def all(self) -> Sequence[Row]:
        """Every row, in the order in which they were given."""
        return self._all

    @property
    def total(self) -> int:
        """The number of rows before filtering."""
        return len(self._all)

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Show these rows; when only cells changed, the selection stays."""
        self._all = list(rows)
        self._refresh()

    def set_filter(self, text: str) -> None:
        """Show only rows whose text holds every word."""
        self._filter = text.casefold()
        self._refresh()

    def row_at(self, number: int) -> Row | None:
        """Return the row shown at this place, if there is one."""
        return self._shown[number] if 0 <= number < len(self._shown) else None

    def place_of(self, key: str) -> int | None:
        """Return the place of the row with this key; None when it is not shown."""
        return next((place for place, row in enumerate(self._shown) if self._key(row) == key), None)

    def _refresh(self) -> None:
        words = self._filter.split()
        rows = [row for row in self._all if self._matches(row, words)] if words else list(self._all)
        if self._sort is not None:
            column, descending = self._sort
            chosen = self._columns[column]
            rows.sort(key=chosen.sort or chosen.text, reverse=descending)
        if [self._key(row) for row in rows] == [self._key(row) for row in self._shown]:
            self._shown = rows
            if rows:
                self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, len(self._columns) - 1))
            return
        self.beginResetModel()
        self._shown = rows
        self.endResetModel()

    def _matches(self, row: Row, words: list[str]) -> bool:
        text = " ".join(column.text(row) for column in self._columns).casefold()
        return all(word in text for word in words)

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._shown)

    def columnCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or not 0 <= index.row() < len(self._shown):
            return None
        row, column = self._shown[index.row()], self._columns[index.column()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return column.text(row)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(column.tip(row)) if column.tip else None
        if role == TONE_ROLE:
            return column.tone(row) if column.tone else None
        if role == Qt.ItemDataRole.TextAlignmentRole and column.right:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is not Qt.Orientation.Horizontal or not 0 <= section < len(self._columns):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._columns[section].title
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if self._columns[section].right else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(self._columns[section].about)
        if role == Qt.ItemDataRole.AccessibleDescriptionRole:
            return self._columns[section].about
        return None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; -1 brings back the given order."""
        self.layoutAboutToBeChanged.emit()
        self._sort = None if column < 0 else (column, order == Qt.SortOrder.DescendingOrder)
        rows = [row for row in self._all if self._matches(row, self._filter.split())]
        if self._sort is not None:
            chosen = self._columns[column]
            rows.sort(key=chosen.sort or chosen.text, reverse=self._sort[1])
        keys = {self._key(row): place for place, row in enumerate(rows)}
        before = self.persistentIndexList()
        after = [
            self.index(keys[self._key(self._shown[i.row()])], i.column()) if i.row() < len(self._shown) else i
            for i in before
        ]
        self._shown = rows
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()
