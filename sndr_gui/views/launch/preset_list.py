"""The list of presets on Launch, with what narrows it; each row says in two lines what it is."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QCheckBox,
    QGridLayout,
    QStackedWidget,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.kit.rows import TONE_ROLE
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.launch.presets import LaunchPresets
from sndr_gui.models.presets.rows import FACETS
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import EmptyState
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.tables import Table

_FILTERS = {
    "status": tr("Filter by status"),
    "workload": tr("Filter by workload"),
    "engine": tr("Filter by engine"),
}

_ROW = 52
_LINE = 18
# A narrower list has the verdict below the name, which would be cut beside it; presets differ at their end.
_BESIDE = 620


class _TwoLines(QStyledItemDelegate):
    """Draws a name, and below it in muted words what it is; where there is little room the verdict first."""

    def __init__(self, table: Table, model: LaunchPresets) -> None:
        super().__init__(table)
        self._model = model
        self.with_verdict = False

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        drawn = QStyleOptionViewItem(option)
        self.initStyleOption(drawn, index)
        # Not of the option: Qt puts another kind of line break there.
        name, _, about = str(index.data()).partition("\n")
        drawn.text = ""
        style = drawn.widget.style() if drawn.widget is not None else QApplication.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, drawn, painter, drawn.widget)
        area = QRect(option.rect).adjusted(12, 0, -6, 0)
        top = area.top() + (area.height() - 2 * _LINE) // 2
        below = QRect(area.left(), top + _LINE, area.width(), _LINE)
        self._draw(painter, drawn, QRect(below.translated(0, -_LINE)), name, index.data(TONE_ROLE) or "text")
        row = self._model.rows.row_at(index.row())
        if self.with_verdict and row is not None:
            words, tone = row.here
            self._draw(painter, drawn, below, words, tone)
            below.setLeft(below.left() + drawn.fontMetrics.horizontalAdvance(words))
            about = f"  ·  {about}"
        self._draw(painter, drawn, below, about, "muted")

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        name, _, about = str(index.data()).partition("\n")
        row = self._model.rows.row_at(index.row())
        if self.with_verdict and row is not None:
            about = f"{row.here[0]}  ·  {about}"
        words = option.fontMetrics
        return QSize(18 + max(words.horizontalAdvance(name), words.horizontalAdvance(about)), _ROW)

    @staticmethod
    def _draw(painter: QPainter, drawn: QStyleOptionViewItem, line: QRect, words: str, tone: str) -> None:
        painter.setPen(theme.color(tone))
        shown = drawn.fontMetrics.elidedText(words, Qt.TextElideMode.ElideRight, line.width())
        painter.drawText(line, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), shown)


class PresetList(QWidget):
    """The presets, what will work best first.

    Signals:
        chosen: the id of the preset that was chosen
    """

    chosen = Signal(str)

    def __init__(self, model: LaunchPresets) -> None:
        super().__init__()
        self._model = model
        self.boxes: dict[str, ChoiceBox] = {}
        for facet in FACETS:
            box = ChoiceBox(_FILTERS[facet])
            box.setToolTip(plain_tooltip(_FILTERS[facet]))
            box.setMinimumContentsLength(6)
            box.activated.connect(partial(self._on_facet, facet))
            self.boxes[facet] = box
        self.here = QCheckBox(tr("Fits here"))
        self.here.setToolTip(tr("Only presets that fit on this machine, or nearly"))
        self.here.toggled.connect(self._on_here)
        self.table = Table(model.rows, tr("List of presets"), 0, {1: 136, 2: 74})  # type: ignore[arg-type]
        self._lines = _TwoLines(self.table, model)
        self.table.setItemDelegateForColumn(0, self._lines)
        self.table.verticalHeader().setDefaultSectionSize(_ROW)
        self.table.setColumnHidden(3, True)
        self.table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.table.fit({1: 136, 2: 74})
        self.table.leave_out(2)
        self.table.row_chosen.connect(self._on_row)
        self.clear_filters = button(
            tr("Show all presets"), model.clear_filters, hint=tr("Clear the search and the filters")
        )
        self.again = button(tr("Try again"), model.load, icon="rotate-cw", hint=tr("Read the presets again"))
        self.empty = EmptyState("rocket", "", "", self.clear_filters, self.again)
        self.empty.sentence.set_width(240)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.table)
        self.stack.addWidget(self.empty)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(8)
        self.narrow = False
        self.filters = button(tr("Filter"), self._on_filters, kind="flat", icon="sliders-horizontal")
        self.filters.setCheckable(True)
        self.filters.setToolTip(tr("Filter by status, workload or engine"))
        self._boxes = QWidget()
        self._grid = QGridLayout(self._boxes)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(8)
        self._arrange(4)
        lines.addWidget(self._boxes)
        lines.addWidget(self.stack, 1)
        model.rows_changed.connect(self.refresh)
        model.detail_changed.connect(self._show_chosen)
        self.refresh()

    def _on_facet(self, facet: str, _place: int) -> None:
        self._model.set_facet(facet, str(self.boxes[facet].currentData() or ""))

    def _on_here(self, wanted: bool) -> None:
        self._model.set_facets(replace(self._model.facets, here=wanted))

    def _on_filters(self) -> None:
        self._boxes.setVisible(not self.narrow or self.filters.isChecked())

    def _on_row(self, place: int) -> None:
        found = self._model.rows.row_at(place)
        if found is not None:
            self.chosen.emit(found.item.preset.id)

    def set_narrow(self, narrow: bool) -> None:
        """Have one column where there is little room."""
        self.narrow = narrow
        self.table.leave_out(*(() if narrow else (2,)))
        self.table.setColumnHidden(2, narrow)
        self._place_verdict()
        self._arrange(2 if narrow else 4)
        self._on_filters()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_verdict()

    def _place_verdict(self) -> None:
        below = self.narrow or self.width() < _BESIDE
        if below is not self._lines.with_verdict:
            self._lines.with_verdict = below
            self.table.setColumnHidden(1, below)
            self.table.viewport().update()

    def _arrange(self, columns: int) -> None:
        for number, widget in enumerate((*self.boxes.values(), self.here)):
            self._grid.addWidget(widget, number // columns, number % columns)
        for place in range(4):
            self._grid.setColumnStretch(place, 1 if place < min(columns, 3) else 0)

    def refresh(self) -> None:
        """Show what the list is narrowed to, and which one is chosen."""
        model = self._model
        for facet, box in self.boxes.items():
            box.fill(model.choices(facet), getattr(model.facets, facet))
        if self.here.isChecked() is not model.facets.here:
            self.here.setChecked(model.facets.here)
        some = bool(model.rows.shown)
        self.stack.setCurrentIndex(0 if some else 1)
        self.clear_filters.setVisible(model.total > 0)
        self.again.setVisible(not model.total and bool(model.sentence))
        if not some:
            heading, sentence = self._hint()
            self.empty.heading.setText(heading)
            self.empty.sentence.setText(sentence)
        self._show_chosen()

    def _show_chosen(self) -> None:
        model = self._model
        place = model.rows.place_of(model.chosen)
        if place is not None and self.table.chosen != place:
            self.table.selectRow(place)
            self.table.scrollTo(model.rows.index(place, 0), QAbstractItemView.ScrollHint.EnsureVisible)

    def _hint(self) -> tuple[str, str]:
        model = self._model
        if model.total:
            return tr("No match"), tr("No preset matches the search and the filters.")
        if model.sentence:
            return tr("Not loaded"), model.sentence
        if model.page is None:
            return tr("Presets"), tr("Reading the presets…")
        return tr("No presets"), tr("The catalogue is empty. Local models start without a preset.")
