"""Live graphs; the only importer of pyqtgraph, itself imported when a graph is first shown."""

import math
import time
from collections.abc import Callable, Sequence

import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFont, QWheelEvent

from sndr_gui.kit import formats, theme
from sndr_gui.models.monitor.lines import Line

# A value between two gaps is drawn as one of so many dashes over the whole width.
_DASHES = 250


class _AgoAxis(pg.AxisItem):  # type: ignore[misc]
    """A time axis that counts back from now."""

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        return ["now" if value > -1 else f"{_ago(-value)} ago" for value in values]

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        wanted = max(1.0, (high - low) / max(2, size / 130))
        steps = (15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800)
        step = next((float(step) for step in steps if step >= wanted), 432000.0)
        first = math.ceil(low / step) * step
        return [(step, [first + number * step for number in range(int((high - first) / step) + 1)])]


class _ValueAxis(pg.AxisItem):  # type: ignore[misc]
    """A value axis in the unit of its graph."""

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        digits = 0 if spacing >= 1 else 1 if spacing >= 0.1 else 2
        return [f"{value:,.{digits}f}" for value in values]


def _ago(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        minutes = seconds / 60
        return f"{minutes:.0f} min" if minutes == int(minutes) else f"{minutes:.1f} min"
    hours = seconds / 3600
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} d"


def drawn(line: Line, now: float, scale: float, dash: float) -> tuple[list[float], list[float]]:
    """Return seconds before now and shown values; a value between gaps becomes a dash that wide."""
    xs: list[float] = []
    ys: list[float] = []
    values = line.values
    for place, (at, value) in enumerate(zip(line.at, values, strict=True)):
        xs.append(at - now)
        ys.append(math.nan if value is None else value * scale)
        before, after = values[place - 1] if place else None, values[place + 1 : place + 2]
        if value is not None and before is None and after in ([], [None]):
            xs.append(at - now + dash)
            ys.append(value * scale)
    return xs, ys


class _Plot(pg.PlotWidget):  # type: ignore[misc]
    """A plot in the theme's colours that neither zooms nor scrolls."""

    def __init__(self, name: str, bottom: pg.AxisItem) -> None:
        self._bottom, self._left = bottom, _ValueAxis("left")
        super().__init__(axisItems={"bottom": self._bottom, "left": self._left})
        self.setAccessibleName(name)
        plot = self.getPlotItem()
        plot.setMenuEnabled(False)
        plot.hideButtons()
        plot.setMouseEnabled(False, False)
        plot.showGrid(x=False, y=True, alpha=0.12)
        theme.notifier.changed.connect(self.repaint_theme)

    def repaint_theme(self) -> None:
        """Draw in the colours of now."""
        self.setBackground(theme.color("surface"))
        font = QFont("Inter")
        font.setPixelSize(12)
        font.setFeature(QFont.Tag("tnum"), 1)
        for axis in (self._bottom, self._left):
            axis.setPen(pg.mkPen(theme.color("line")))
            axis.setTextPen(pg.mkPen(theme.color("muted")))
            axis.setStyle(tickFont=font, tickLength=0, tickTextOffset=8)
        self._left.setWidth(44)
        self._bottom.setHeight(26)

    def wheelEvent(self, event: QWheelEvent) -> None:
        # It does not zoom: the wheel is for the page.
        event.ignore()


class Graph(_Plot):
    """Lines over time; `scale` turns a measured value into the shown unit."""

    def __init__(self, name: str, scale: float, top: float | None, word: Callable[[float], str]) -> None:
        super().__init__(name, _AgoAxis("bottom"))
        self._scale, self._top, self._word = scale, top, word
        # Without a fixed top the axis goes at least this far.
        self.least = 0.0
        self._curves: list[pg.PlotDataItem] = []
        self._lines: list[Line] = []
        self._range = 300.0
        plot = self.getPlotItem()
        plot.setClipToView(True)
        plot.setDownsampling(auto=True, mode="peak")
        self._cursor = pg.InfiniteLine(angle=90, movable=False)
        self._cursor.hide()
        plot.addItem(self._cursor, ignoreBounds=True)
        self._reading: Callable[[str], None] | None = None
        self.scene().sigMouseMoved.connect(self._on_mouse)
        self.repaint_theme()

    def on_reading(self, tell: Callable[[str], None]) -> None:
        """Call this with the values under the pointer."""
        self._reading = tell

    def repaint_theme(self) -> None:
        """Draw in the colours of now."""
        super().repaint_theme()
        self._cursor.setPen(pg.mkPen(theme.color("muted")))
        colours = theme.current().series
        for number, curve in enumerate(self._curves):
            curve.setPen(pg.mkPen(colours[number % len(colours)], width=1))

    def show_lines(self, lines: list[Line], seconds: float) -> None:
        """Draw these lines over the last seconds."""
        self._lines, self._range = lines, seconds
        plot = self.getPlotItem()
        colours = theme.current().series
        while len(self._curves) < len(lines):
            pen = pg.mkPen(colours[len(self._curves) % len(colours)], width=1)
            # A gap is NaN and stays a gap.
            curve = pg.PlotDataItem(pen=pen, antialias=True, connect="finite")
            self._curves.append(curve)
            plot.addItem(curve)
        while len(self._curves) > len(lines):
            plot.removeItem(self._curves.pop())
        now = time.time()
        highest = 0.0
        for curve, line in zip(self._curves, lines, strict=True):
            xs, ys = drawn(line, now, self._scale, seconds / _DASHES)
            highest = max((y for y in ys if y == y), default=highest) if ys else highest
            curve.setData(xs, ys)
        plot.setXRange(-seconds, 0, padding=0)
        tops = [max((y * self._scale for y in line.values if y is not None), default=0.0) for line in lines]
        top = self._top if self._top is not None else max(max([*tops, 0.0]) * 1.15, self.least) or 1.0
        plot.setYRange(0, top, padding=0)

    def leaveEvent(self, event: object) -> None:
        super().leaveEvent(event)
        self._cursor.hide()
        if self._reading is not None:
            self._reading("")

    def _on_mouse(self, place: QPointF) -> None:
        view = self.getPlotItem().vb
        if self._reading is None or not view.sceneBoundingRect().contains(place):
            return
        x = view.mapSceneToView(place).x()
        self._cursor.setPos(x)
        self._cursor.show()
        now = time.time()
        parts = []
        for line in self._lines:
            distances = [abs(at - now - x) for at in line.at]
            value = line.values[distances.index(min(distances))] if distances else None
            shown = formats.UNMEASURED if value is None else self._word(value)
            parts.append(f"{line.title} {shown}")
        self._reading(f"{_ago(max(0.0, -x))} ago:  " + "  ·  ".join(parts))


class _TokensAxis(pg.AxisItem):  # type: ignore[misc]
    """An axis of numbers of tokens."""

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        return [formats.count(value) if value > 0 else "0" for value in values]


class Curve(_Plot):
    """One line over tokens, a level that it should stay below, and a mark at one place."""

    def __init__(self, name: str) -> None:
        super().__init__(name, _TokensAxis("bottom"))
        self._line = pg.PlotDataItem(antialias=True)
        self._level = pg.InfiniteLine(angle=0, movable=False)
        self._place = pg.InfiniteLine(angle=90, movable=False)
        for item in (self._line, self._level, self._place):
            self.getPlotItem().addItem(item, ignoreBounds=item is not self._line)
        self.repaint_theme()

    def repaint_theme(self) -> None:
        """Draw in the colours of now."""
        super().repaint_theme()
        self._line.setPen(pg.mkPen(theme.current().series[0], width=1))
        self._level.setPen(pg.mkPen(theme.color("bad"), width=1))
        self._place.setPen(pg.mkPen(theme.color("muted"), width=1, style=Qt.PenStyle.DashLine))

    def show_points(self, tokens: list[int], values: list[float], level: float, place: int) -> None:
        """Draw values over tokens, the level, and the mark."""
        self._line.setData(tokens, values)
        self._level.setPos(level)
        self._place.setPos(place)
        plot = self.getPlotItem()
        plot.setXRange(0, max(tokens, default=1), padding=0.01)
        plot.setYRange(0, max([*values, level]) * 1.08, padding=0)
