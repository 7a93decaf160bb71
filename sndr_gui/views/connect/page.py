"""Connect: editors and agents of this machine, what each has to be told, written, undone and tried."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from engine_host.protocol.endpoint.connect import ClientChange
from engine_host.protocol.language import tr
from sndr_gui.models.connect.page import ConnectModel
from sndr_gui.views.connect.detail import ClientDetail
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.labels import set_text
from sndr_gui.views.widgets.layout import GAP, HeightForWidthLayout, beside_bar, scrolling
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.widgets.tables import Table

_NARROW = 900


class ConnectView(Page):
    """The page of clients."""

    def __init__(self, model: ConnectModel, open_launch: Callable[[], None]) -> None:
        super().__init__(tr("Connect"))
        self.model = model
        self.models = ChoiceBox(tr("Model to tell clients of"))
        self.models.activated.connect(self._on_model)
        self.tools.addWidget(self.models)
        self.table = Table(model.rows, tr("Clients"), 1, {0: 120, 2: 96})  # type: ignore[arg-type]
        self.table.fit({0: 200, 2: 96})
        self.table.row_chosen.connect(self._on_chosen)
        self.detail = ClientDetail(model, open_launch)
        canvas = QWidget()
        canvas.setObjectName("canvas")
        lines = HeightForWidthLayout(canvas)
        lines.addWidget(self.detail)
        lines.addStretch(1)
        area = scrolling(canvas)
        beside_bar(area, lines)
        area.setMinimumWidth(300)
        split = QHBoxLayout()
        split.setSpacing(GAP)
        split.addWidget(self.table, 2)
        split.addWidget(area, 3)
        self.body.addLayout(split, 1)
        model.changed.connect(self.refresh)
        model.proposed.connect(self._on_proposed)
        self.refresh()

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.table.setColumnHidden(2, self.width() < _NARROW)

    def refresh(self) -> None:
        """Show the clients and the one that is chosen."""
        model = self.model
        found = sum(bool(entry.found) for entry in model.rows.shown)
        said = tr("{found} of {total} clients on this machine", found=found, total=model.rows.total)
        set_text(self.subtitle, f"{said}  ·  {model.url}" if model.url else said)
        place = model.rows.place_of(model.chosen)
        if place is not None and place != self.table.chosen:
            self.table.selectRow(place)
        names = list(model.models)
        if [self.models.itemText(number) for number in range(self.models.count())] != names:
            self.models.clear()
            self.models.addItems(names)
        if model.facts is not None:
            self.models.setCurrentText(model.facts.model)
        self.models.setVisible(len(names) > 1)
        self.detail.refresh()

    def _on_chosen(self, place: int) -> None:
        entry = self.model.rows.row_at(place)
        if entry is not None:
            self.model.choose(entry.name)

    def _on_model(self, place: int) -> None:
        self.model.choose_model(self.models.itemText(place))

    def _on_proposed(self, change: ClientChange) -> None:
        if self.isVisible():
            from sndr_gui.views.connect.dialog import WriteDialog

            WriteDialog(self, self.model, change).open()
