"""A table view over a RowsModel, with tones and without grid lines."""

import math

from PySide6.QtCore import QEvent, QItemSelection, QModelIndex, QPersistentModelIndex, Qt, QTimer, Signal
from PySide6.QtGui import QBrush, QHelpEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QToolTip,
)

from sndr_gui.kit import theme
from sndr_gui.kit.rows import TONE_ROLE, RowsModel
from sndr_gui.kit.tooltip import plain_tooltip

# The height of a row: comfortable, compact.
_ROW = (36, 26)
# What the stretched column keeps where there is little room, in pixels.
_LEAST = 100
# A table as wide as this shares out what its stretched column does not need: the eye finds the row's end.
_WIDE = 1200
_STEP = 8
# Below the last row: its line would cross the round corners.
_BELOW = 8


class _Delegate(QStyledItemDelegate):
    """Colours a cell's text by its tone, and shows it whole in a tooltip where it is cut."""

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        tone = index.data(TONE_ROLE)
        if tone:
            brush = QBrush(theme.color(tone))
            palette = option.palette
            palette.setBrush(QPalette.ColorRole.Text, brush)
            palette.setBrush(QPalette.ColorRole.HighlightedText, brush)

    def helpEvent(
        self,
        event: QHelpEvent,
        view: QAbstractItemView,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> bool:
        words = str(index.data() or "")
        if event.type() is QEvent.Type.ToolTip and words and not index.data(Qt.ItemDataRole.ToolTipRole):
            cut = self.sizeHint(option, index).width() > option.rect.width()
            QToolTip.showText(event.globalPos(), plain_tooltip(words) if cut else "", view)
            return True
        return super().helpEvent(event, view, option, index)


class Table(QTableView):
    """Shows rows; one row is chosen at a time.

    Signals:
        row_chosen: the place of the chosen row
    """

    row_chosen = Signal(int)

    def __init__(self, model: RowsModel[object], name: str, stretch: int, widths: dict[int, int]) -> None:
        super().__init__()
        self.setModel(model)
        self.setAccessibleName(name)
        self.setItemDelegate(_Delegate(self))
        self.setShowGrid(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.setWordWrap(False)
        self.setSortingEnabled(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(_ROW[theme.compact()])
        theme.notifier.density_changed.connect(self._on_density)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionsClickable(True)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setMinimumSectionSize(40)
        self._stretched = -1
        self._most: dict[int, int] = {}
        self._tallest: int | None = None
        self._given = widths
        self._optional: tuple[int, ...] = ()
        self._left_out: set[int] = set()
        self._wants: dict[int, int] = {}
        self._hints: dict[int, int] = {}
        # The widths that nobody dragged.
        self._last: dict[int, int] = {}
        # Rows come many at a time.
        self._fitting = QTimer(self)
        self._fitting.setSingleShot(True)
        self._fitting.timeout.connect(self._fit)
        for signal in (model.modelReset, model.layoutChanged, model.rowsInserted, model.rowsRemoved):
            signal.connect(self._fitting.start)
        self.stretch(stretch)
        header.sectionClicked.connect(self._on_header)
        for number, width in widths.items():
            self.setColumnWidth(number, width)
        self.selectionModel().selectionChanged.connect(self._on_selection)
        theme.notifier.changed.connect(self.viewport().update)

    def _on_density(self) -> None:
        rows = self.verticalHeader()
        # Rows of two lines keep their height.
        if rows.defaultSectionSize() == _ROW[not theme.compact()]:
            rows.setDefaultSectionSize(_ROW[theme.compact()])
        self._fitting.start()

    def as_tall_as_rows(self, most: int) -> None:
        """Be as tall as the rows there are, up to so many pixels: below a few rows is no empty field."""
        self._tallest = most
        self._grow()
        self._fitting.start()

    def _grow(self) -> None:
        if self._tallest is None:
            return
        rows = max(1, self.model().rowCount()) * self.verticalHeader().defaultSectionSize()
        bar = self.horizontalScrollBar()
        below = bar.sizeHint().height() if bar.maximum() > 0 else 0
        tall = self.horizontalHeader().sizeHint().height() + rows + below + _BELOW
        self.setFixedHeight(min(self._tallest, tall))

    def stretch(self, column: int) -> None:
        """Let another column have the room that the others leave."""
        if column == self._stretched:
            return
        header = self.horizontalHeader()
        if self._stretched >= 0:
            header.setSectionResizeMode(self._stretched, QHeaderView.ResizeMode.Interactive)
        header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        self._stretched = column

    def fit(self, most: dict[int, int]) -> None:
        """Keep columns as wide as what they hold, up to so many pixels, or more where there is room."""
        self._most = most
        self.model().dataChanged.connect(self._fitting.start)
        self._fitting.start()

    def leave_out(self, *columns: int) -> None:
        """Leave columns out while they hold nothing and words of others would be cut for them."""
        self._optional = columns
        self.model().dataChanged.connect(self._fitting.start)
        self._fitting.start()

    def _choose_columns(self) -> None:
        if not self._optional and not self._left_out:
            return
        shown = [place for place in range(self.model().columnCount()) if not self.isColumnHidden(place)]
        wanted = sum(self._wanted(place) for place in {*shown, *self._left_out})
        tight = wanted > self.viewport().width()
        for place in {*self._optional, *self._left_out}:
            if place in self._left_out and not (tight and self._holds_nothing(place)):
                self._left_out.discard(place)
                super().setColumnHidden(place, False)
            elif place in shown and tight and self._holds_nothing(place):
                self._left_out.add(place)
                super().setColumnHidden(place, True)

    def _holds_nothing(self, column: int) -> bool:
        model = self.model()
        return all(model.index(row, column).data() in {"", "—"} for row in range(model.rowCount()))

    def _squeeze(self) -> None:
        """Take from columns what there is no room for, down to their headings."""
        header = self.horizontalHeader()
        for column, width in self._given.items():
            now = header.sectionSize(column)
            # What somebody dragged stays; some languages have headings that are longer than the given width.
            if not self.isColumnHidden(column) and now == self._last.get(column, width):
                self._resize(column, max(width, header.sectionSizeHint(column)))
        others = [place for place in self._given if not self.isColumnHidden(place)]
        least = max(header.sectionSizeHint(self._stretched), _LEAST)
        lacks = least + sum(header.sectionSize(place) for place in others) - self.viewport().width()
        # First what no word needs, then the ends of the longest ones.
        for kept in (self._wanted, header.sectionSizeHint):
            lacks -= self._narrow({place: header.sectionSize(place) - kept(place) for place in others}, lacks)
        # What a row is about is not cut for room that no word needs.
        unused = {
            place: header.sectionSize(place) - self._wanted(place)
            for place in others
            if header.sectionSize(place) == self._last.get(place)
        }
        self._narrow(unused, lacks + self._wanted(self._stretched) - least)
        # A section that stretches has no least width of its own: below its heading the table scrolls instead.
        heading = header.sectionSizeHint(self._stretched)
        scrolls = lacks - least + heading > 0
        mode = QHeaderView.ResizeMode.Interactive if scrolls else QHeaderView.ResizeMode.Stretch
        if header.sectionResizeMode(self._stretched) is not mode:
            header.setSectionResizeMode(self._stretched, mode)
        if scrolls:
            self.setColumnWidth(self._stretched, heading)

    def _narrow(self, spare: dict[int, int], lacks: int) -> int:
        """Take so many pixels from columns, from each by what it can spare; return what was taken."""
        spare = {place: width for place, width in spare.items() if width > 0}
        if lacks <= 0 or not spare:
            return 0
        taken = 0
        share = min(1.0, lacks / sum(spare.values()))
        for place, width in spare.items():
            less = math.ceil(width * share)
            self._resize(place, self.horizontalHeader().sectionSize(place) - less)
            taken += less
        return taken

    def _resize(self, column: int, width: int) -> None:
        self.setColumnWidth(column, width)
        self._last[column] = self.horizontalHeader().sectionSize(column)

    def _wanted(self, column: int) -> int:
        # Every cell is asked for it: once for each time that columns are fitted.
        if column not in self._wants:
            # Qt gives a hidden column's heading no width, and this one may be about to be shown.
            hint = self.horizontalHeader().sectionSizeHint(column) or self._hints.get(column, 0)
            self._hints[column] = hint
            self._wants[column] = max(self.sizeHintForColumn(column), hint)
        return self._wants[column]

    def setColumnHidden(self, column: int, hide: bool) -> None:
        """Hide a column, or show it; the others make room."""
        self._left_out.discard(column)
        if hide != self.isColumnHidden(column):
            super().setColumnHidden(column, hide)
            self._fitting.start()

    def _fit(self) -> None:
        self._wants.clear()
        self._choose_columns()
        if self._most:
            self._fit_most()
        else:
            self._squeeze()
        self._share()
        self._grow()

    def _share(self) -> None:
        """Give columns what they hold; in a wide table all have as much of the rest, not one alone."""
        header = self.horizontalHeader()
        others = [
            place
            for place in range(header.count())
            if place != self._stretched and not self.isColumnHidden(place)
        ]
        spare = header.sectionSize(self._stretched) - max(_LEAST, self._wanted(self._stretched))
        for place in others:
            more = min(spare, self._wanted(place) - header.sectionSize(place))
            if more > 0:
                self._resize(place, header.sectionSize(place) + more)
                spare -= more
        share = spare // (len(others) + 1) // _STEP * _STEP
        if share > 0 and self.viewport().width() >= _WIDE:
            for place in others:
                self._resize(place, header.sectionSize(place) + share)

    def _fit_most(self) -> None:
        header = self.horizontalHeader()
        for column, most in self._most.items():
            if not self.isColumnHidden(column):
                self.setColumnWidth(column, min(most, self._wanted(column)))
        # The stretched column says what a row is about: the widest of the others give way to it first.
        others = [place for place in self._most if not self.isColumnHidden(place)]
        enough = min(self.viewport().width() // 3, self._wanted(self._stretched))
        lacks = enough - header.sectionSize(self._stretched)
        while lacks > 0 and others:
            widest = max(others, key=header.sectionSize)
            spare = header.sectionSize(widest) - header.sectionSizeHint(widest)
            others.remove(widest)
            if spare > 0:
                self.setColumnWidth(widest, header.sectionSize(widest) - min(lacks, spare))
                lacks -= min(lacks, spare)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fitting.start()

    def _on_header(self, section: int) -> None:
        header = self.horizontalHeader()
        again = header.isSortIndicatorShown() and header.sortIndicatorSection() == section
        descending = again and header.sortIndicatorOrder() == Qt.SortOrder.AscendingOrder
        order = Qt.SortOrder.DescendingOrder if descending else Qt.SortOrder.AscendingOrder
        header.setSortIndicatorShown(True)
        header.setSortIndicator(section, order)
        self.model().sort(section, order)

    def _on_selection(self, selected: QItemSelection, _deselected: QItemSelection) -> None:
        if selected.indexes():
            self.row_chosen.emit(selected.indexes()[0].row())

    @property
    def chosen(self) -> int:
        """The place of the chosen row, or -1."""
        rows = self.selectionModel().selectedRows()
        return rows[0].row() if rows else -1
