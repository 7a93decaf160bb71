"""The figures of a machine without an engine host over the last minutes, as small lines."""

from __future__ import annotations

import time

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout

from engine_host.client.request_words import readable
from engine_host.protocol.language import tr, unit
from engine_host.protocol.telemetry import Series
from sndr_gui.models.hosts.detail import SERIES_SECONDS, HostDetailModel
from sndr_gui.views.graphs.trend import Trend
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.labels import ElidedLabel
from sndr_gui.views.widgets.layout import clear, column, show_part

_READ_MS = 5_000
_MOST = 8
# What never changes while the machine runs is no line: the tables of facts have it.
_TOTALS = (".total", ".limit")
_SCALES = {"bytes": (1 / 2**30, "GiB"), "share": (100.0, "%"), "celsius": (1.0, "°C"), "watts": (1.0, "W")}


class SeriesCard(Card):
    """A line for each series that was measured; hidden while there is none."""

    def __init__(self, model: HostDetailModel) -> None:
        super().__init__(tr("Last ten minutes"))
        self._model = model
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(18)
        self._grid.setVerticalSpacing(10)
        self.body.addLayout(self._grid)
        self.lines: dict[str, Trend] = {}
        self._clock = QTimer(self)
        self._clock.setInterval(_READ_MS)
        self._clock.timeout.connect(model.read_series)
        model.read_series()
        self._clock.start()
        self.refresh()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._clock.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if not self.isHidden():
            # Another section or page is shown; without a figure it waits for one.
            self._clock.stop()

    def refresh(self) -> None:
        """Show the newest figures."""
        told = [one for one in self._model.series if _is_line(one)][:_MOST]
        if [one.name for one in told] != list(self.lines):
            clear(self._grid)
            self.lines = {}
            for place, one in enumerate(told):
                title = f"{readable(one.title)}, {unit(_scale(one)[1])}"
                most = 100.0 if one.unit == "share" else None
                self.lines[one.name] = Trend(title, SERIES_SECONDS, self._model.series_step, most)
                made = column(ElidedLabel(title, "muted"), self.lines[one.name], spacing=2)
                self._grid.addLayout(made, place // 2, place % 2)
        now = time.time()
        for one in told:
            factor = _scale(one)[0]
            points = [
                (at, None if value is None else value * factor)
                for at, value in zip(one.at, one.values, strict=True)
            ]
            self.lines[one.name].show_points(points, now)
        show_part(self, bool(told))


def _is_line(one: Series) -> bool:
    return not one.name.endswith(_TOTALS) and any(value is not None for value in one.values)


def _scale(one: Series) -> tuple[float, str]:
    return _SCALES.get(one.unit, (1.0, one.unit))
