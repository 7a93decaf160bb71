"""The list of presets on Launch, with what narrows it; each row says in two lines what it is."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QCheckBox,
    QStackedWidget,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from sndr_gui import theme
from sndr_gui.launch_presets import LaunchPresets
from sndr_gui.preset_rows import FACETS
from sndr_gui.rows import TONE_ROLE
from sndr_gui.views.fields import ChoiceBox
from sndr_gui.views.flow import Flow
from sndr_gui.views.parts import EmptyState, button
from sndr_gui.views.tables import Table

_ROW = 52
_LINE = 18


class _TwoLines(QStyledItemDelegate):
    """Draws a name, and below it in muted words what it is."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        drawn = QStyleOptionViewItem(option)
        self.initStyleOption(drawn, index)
        name, _, about = drawn.text.partition("\n")
        drawn.text = ""
        style = drawn.widget.style() if drawn.widget is not None else QApplication.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, drawn, painter, drawn.widget)
        area: QRect = drawn.rect.adjusted(12, 0, -6, 0)
        top = area.top() + (area.height() - 2 * _LINE) // 2
        for number, (words, tone) in enumerate(((name, index.data(TONE_ROLE) or "text"), (about, "muted"))):
            line = QRect(area.left(), top + number * _LINE, area.width(), _LINE)
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
            box = ChoiceBox(f"Only this {facet}")
            box.setToolTip(f"Only presets of this {facet}")
            box.setMinimumContentsLength(6)
            box.setFixedWidth(136)
            box.activated.connect(partial(self._on_facet, facet))
            self.boxes[facet] = box
        self.here = QCheckBox("Runs here")
        self.here.setToolTip("Only presets that fit on this machine, or nearly")
        self.here.toggled.connect(self._on_here)
        self.table = Table(model.rows, "Presets", 0, {1: 108, 2: 92})  # type: ignore[arg-type]
        self.table.setItemDelegateForColumn(0, _TwoLines(self.table))
        self.table.verticalHeader().setDefaultSectionSize(_ROW)
        self.table.setColumnHidden(3, True)
        self.table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.table.row_chosen.connect(self._on_row)
        widen = button("Show every preset", model.widen, hint="Take back the search and the filters")
        self.empty = EmptyState("rocket", "", "", widen)
        self.empty.sentence.set_width(240)
        self.widen = widen
        self.stack = QStackedWidget()
        self.stack.addWidget(self.table)
        self.stack.addWidget(self.empty)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(8)
        lines.addWidget(Flow(*self.boxes.values(), self.here, spacing=8, lines=6))
        lines.addWidget(self.stack, 1)
        model.rows_changed.connect(self.refresh)
        self.refresh()

    def _on_facet(self, facet: str, _place: int) -> None:
        self._model.set_facet(facet, str(self.boxes[facet].currentData() or ""))

    def _on_here(self, wanted: bool) -> None:
        self._model.narrow(replace(self._model.narrowing, here=wanted))

    def _on_row(self, place: int) -> None:
        row = self._model.rows.row_at(place)
        if row is not None:
            self.chosen.emit(row.item.preset.id)

    def set_narrow(self, narrow: bool) -> None:
        """Leave out the ceiling of speed where there is little room: the card says it."""
        self.table.setColumnHidden(2, narrow)
        self.table.setColumnWidth(1, 96 if narrow else 108)
        for box in self.boxes.values():
            box.setFixedWidth(124 if narrow else 136)

    def refresh(self) -> None:
        """Show what the list is narrowed to, and which one is chosen."""
        model = self._model
        for facet, box in self.boxes.items():
            box.fill(model.choices(facet), getattr(model.narrowing, facet))
        if self.here.isChecked() is not model.narrowing.here:
            self.here.setChecked(model.narrowing.here)
        some = bool(model.rows.shown)
        self.stack.setCurrentIndex(0 if some else 1)
        self.widen.setVisible(model.total > 0)
        if not some:
            heading, sentence = self._lesson()
            self.empty.heading.setText(heading)
            self.empty.sentence.setText(sentence)
        place = model.rows.place_of(model.chosen)
        if place is not None and self.table.chosen != place:
            self.table.selectRow(place)
            self.table.scrollTo(model.rows.index(place, 0), QAbstractItemView.ScrollHint.EnsureVisible)

    def _lesson(self) -> tuple[str, str]:
        model = self._model
        if model.total:
            return "None of them", "No preset fits the search and the filters."
        if model.sentence:
            return "Not read", model.sentence
        if model.page is None:
            return "Presets", "Reading the presets…"
        return "No presets", "The catalogue is empty. A model of this machine starts without one."
