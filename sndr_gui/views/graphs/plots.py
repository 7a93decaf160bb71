"""Live graphs; the only importer of pyqtgraph, itself imported when a graph is first shown."""

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFocusEvent, QFont, QKeyEvent, QMouseEvent, QPainter, QWheelEvent
from PySide6.QtWidgets import QToolTip

from engine_host.client.bench_reports.plots import Plot, Series
from engine_host.protocol.language import tr
from engine_host.protocol.telemetry import Mark
from sndr_gui.kit import formats, theme
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.monitor.lines import Line
from sndr_gui.models.monitor.marks import Bunch, bunched
from sndr_gui.models.monitor.unmeasured import Unmeasured
from sndr_gui.views.graphs.card import AXIS
from sndr_gui.views.graphs.marks import near, paint_marks
from sndr_gui.views.graphs.unmeasured import paint_unmeasured

FloatArray = NDArray[np.float64]
# A value between two gaps is drawn as one of so many dashes over the whole width.
_DASHES = 250
# Points of all lines up to which they are drawn with smooth edges.
_SMOOTH = 5000


class _AgoAxis(pg.AxisItem):  # type: ignore[misc]
    """A time axis that counts back from now."""

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        return [tr("now") if value > -1 else tr("{ago} ago", ago=_ago(-value)) for value in values]

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
        return [formats.number(value, f",.{digits}f") for value in values]


def _ago(seconds: float) -> str:
    if seconds < 60:
        return formats.measure(f"{seconds:.0f}", "s")
    if seconds < 3600:
        minutes = seconds / 60
        return formats.measure(formats.number(minutes, ".0f" if minutes == int(minutes) else ".1f"), "min")
    hours = seconds / 3600
    return formats.measure(f"{hours:.0f}", "h") if hours < 48 else formats.measure(f"{hours / 24:.0f}", "d")


def thinned(xs: FloatArray, ys: FloatArray, wide: float, dash: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest value of each piece of time this wide; one without any is a gap.

    Pieces are counted by the clock, so that a picture that moves on keeps its form. A piece between gaps
    becomes a dash.
    """
    if wide <= 0 or len(xs) < 2 or (xs[-1] - xs[0]) / wide * 4 > len(xs):
        return xs, ys
    firsts = np.flatnonzero(np.diff(np.floor(xs / wide), prepend=-math.inf))
    low, high = np.fmin.reduceat(ys, firsts), np.fmax.reduceat(ys, firsts)
    both = np.repeat(xs[firsts], 2)
    both[1::2] += np.where(_alone(high), dash, 0.0)
    return both, np.stack((low, high), axis=1).ravel()


def _alone(ys: FloatArray) -> NDArray[np.bool_]:
    """Return where a value stands between gaps."""
    measured = np.isfinite(ys)
    alone = measured.copy()
    alone[1:] &= ~measured[:-1]
    alone[:-1] &= ~measured[1:]
    return alone


def drawn(
    line: Line, now: float, scale: float, dash: float, pixel: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return seconds before now and shown values; a value between gaps becomes a dash that wide.

    `pixel` is the time that one is wide: what lies closer together is drawn as its lowest and highest value.
    """
    at, values = line.numbers()
    xs, ys = thinned(np.array(at), np.array(values) * scale, pixel, dash)
    xs = xs - now
    places = np.flatnonzero(_alone(ys))
    return np.insert(xs, places + 1, xs[places] + dash), np.insert(ys, places + 1, ys[places])


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
        self._left.setWidth(AXIS)
        self._bottom.setHeight(26)

    def wheelEvent(self, event: QWheelEvent) -> None:
        # It does not zoom: the wheel is for the page.
        event.ignore()


class Graph(_Plot):
    """Lines over time, and marks of what happened; `scale` turns a measured value into the shown unit."""

    def __init__(self, name: str, scale: float, top: float | None, word: Callable[[float], str]) -> None:
        # Painting begins before the base is there as a whole.
        self._bunches: tuple[Bunch, ...] = ()
        self._unmeasured: tuple[Unmeasured, ...] = ()
        self._within = math.inf
        self._walked: Bunch | None = None
        super().__init__(name, _AgoAxis("bottom"))
        self._scale, self._top, self._word = scale, top, word
        # Without a fixed top the axis goes at least this far.
        self.least = 0.0
        self._curves: list[pg.PlotCurveItem] = []
        self._lines: list[Line] = []
        self._range, self._now = 300.0, time.time()
        plot = self.getPlotItem()
        plot.setClipToView(True)
        self._cursor = pg.InfiniteLine(angle=90, movable=False)
        self._cursor.hide()
        plot.addItem(self._cursor, ignoreBounds=True)
        self._looked = pg.InfiniteLine(angle=90, movable=False)
        self._looked.hide()
        plot.addItem(self._looked, ignoreBounds=True)
        self._look_at: Callable[[float], None] | None = None
        self._reading: Callable[[str], None] | None = None
        self._open: Callable[[Bunch], None] | None = None
        self.scene().sigMouseMoved.connect(self._on_mouse)
        self.repaint_theme()

    def on_reading(self, tell: Callable[[str], None]) -> None:
        """Call this with the values under the pointer."""
        self._reading = tell

    def on_mark(self, open_mark: Callable[[Bunch], None]) -> None:
        """Call this with the mark that is clicked, or chosen with the keys."""
        self._open = open_mark

    def repaint_theme(self) -> None:
        """Draw in the colours of now."""
        super().repaint_theme()
        self._cursor.setPen(pg.mkPen(theme.color("muted")))
        self._looked.setPen(pg.mkPen(theme.color("warn"), width=1))
        colours = theme.current().series
        for number, curve in enumerate(self._curves):
            curve.setPen(pg.mkPen(colours[number % len(colours)], width=1))

    def show_lines(
        self,
        lines: list[Line],
        seconds: float,
        now: float,
        unmeasured: tuple[Unmeasured, ...] = (),
        within: float = math.inf,
    ) -> None:
        """Draw these lines over the last seconds before `now`, which is the right edge.

        In the times in which nothing was measured it says so; a value holds for `within` seconds beside it.
        """
        self._lines, self._range, self._now = lines, seconds, now
        self._within = within
        if unmeasured or self._unmeasured:
            self.viewport().update()
        self._unmeasured = unmeasured
        plot = self.getPlotItem()
        colours = theme.current().series
        while len(self._curves) < len(lines):
            pen = pg.mkPen(colours[len(self._curves) % len(colours)], width=1)
            # A gap is NaN and stays a gap.
            curve = pg.PlotCurveItem(pen=pen, antialias=True, connect="finite")
            self._curves.append(curve)
            plot.addItem(curve)
        while len(self._curves) > len(lines):
            plot.removeItem(self._curves.pop())
        highest = 0.0
        pixel = seconds / max(100.0, self._area().width())
        for curve, line in zip(self._curves, lines, strict=True):
            xs, ys = drawn(line, now, self._scale, seconds / _DASHES, pixel)
            highest = max(highest, float(np.nanmax(ys))) if np.isfinite(ys).any() else highest
            # Smooth edges of many lines of many points would take longer than a picture of the screen.
            curve.setData(xs, ys, antialias=len(xs) * len(lines) <= _SMOOTH)
        plot.setXRange(-seconds, 0, padding=0)
        top = self._top if self._top is not None else max(highest * 1.15, self.least) or 1.0
        plot.setYRange(0, top, padding=0)

    def on_time(self, look_at: Callable[[float], None]) -> None:
        """Call this with the time that is clicked where no mark is."""
        self._look_at = look_at

    def show_time(self, at: float | None) -> None:
        """Show the moment that is looked at; None is now."""
        self._looked.setVisible(at is not None)
        if at is not None:
            self._looked.setPos(at - self._now)

    def show_marks(self, marks: tuple[Mark, ...]) -> None:
        """Draw these marks over the lines."""
        inside = (mark for mark in marks if self._now - self._range <= mark.at <= self._now)
        found = bunched(inside, self._range, self._area().width())
        if self._walked is not None and self._walked not in found:
            self._walked = None
        if found or self._bunches:
            # The lines are drawn by pyqtgraph, which knows nothing of what is in front of them.
            self.viewport().update()
        self._bunches = found

    @property
    def bunches(self) -> tuple[Bunch, ...]:
        """The marks as they are drawn."""
        return self._bunches

    def drawForeground(self, painter: QPainter, area: QRectF | QRect) -> None:
        """Draw the marks, and say where nothing was measured."""
        super().drawForeground(painter, area)
        if self._unmeasured:
            painter.setFont(self._bottom.style["tickFont"])
            paint_unmeasured(painter, self._area(), self._unmeasured, self._x_of)
        if self._bunches:
            paint_marks(painter, self._area(), self._bunches, self._x_of, self._walked)

    def _area(self) -> QRectF:
        found: QRectF = self.getPlotItem().vb.sceneBoundingRect()
        return found

    def _x_of(self, at: float) -> float:
        """Return where a time is, in pixels of the scene."""
        area = self._area()
        return area.right() - area.width() * (self._now - at) / self._range

    def leaveEvent(self, event: object) -> None:
        super().leaveEvent(event)
        self._cursor.hide()
        self.unsetCursor()
        if self._reading is not None:
            self._reading("")

    def _on_mouse(self, place: QPointF) -> None:
        if self._reading is None or not self._area().contains(place):
            return
        mark = near(self._bunches, place.x(), self._x_of)
        self.setCursor(Qt.CursorShape.PointingHandCursor if mark else Qt.CursorShape.ArrowCursor)
        self._read(mark.at if mark else self._now + self.getPlotItem().vb.mapSceneToView(place).x(), mark)

    def _read(self, at: float, mark: Bunch | None) -> None:
        """Tell the values at a time, and what happened there."""
        self._cursor.setPos(at - self._now)
        self._cursor.show()
        parts = []
        for line in self._lines:
            value = line.value_at(at, self._within)
            shown = formats.UNMEASURED if value is None else self._word(value)
            parts.append(f"{line.title} {shown}")
        said = (tr("{ago} ago:", ago=_ago(max(0.0, self._now - at))) + "  ") + "  ·  ".join(parts)
        if self._reading is not None:
            self._reading(
                tr("{said}\n{sentences}\nClick for its log.", said=said, sentences=mark.sentences())
                if mark
                else said
            )

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Open the mark under the pointer."""
        place = self.mapToScene(event.position().toPoint())
        mark = near(self._bunches, place.x(), self._x_of) if self._area().contains(place) else None
        if event.button() is Qt.MouseButton.LeftButton and mark is not None and self._open is not None:
            self._open(mark)
            event.accept()
            return
        left = event.button() is Qt.MouseButton.LeftButton
        if left and self._look_at is not None and self._area().contains(place):
            self._look_at(self._now + self.getPlotItem().vb.mapSceneToView(place).x())
            event.accept()
            return
        super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go from mark to mark, and open the one that is chosen."""
        keys, key = Qt.Key, event.key()
        if key in (keys.Key_Left, keys.Key_Right) and self._bunches:
            self._walk(-1 if key == keys.Key_Left else 1)
        elif key in (keys.Key_Return, keys.Key_Enter) and self._walked is not None and self._open is not None:
            self._open(self._walked)
        else:
            event.ignore()

    def _walk(self, by: int) -> None:
        if self._walked is None:
            place = len(self._bunches) - 1 if by < 0 else 0
        else:
            place = self._bunches.index(self._walked) + by
        self._walked = mark = self._bunches[min(max(0, place), len(self._bunches) - 1)]
        self._read(mark.at, mark)
        self.setAccessibleDescription(mark.sentences())
        below = self.mapFromScene(QPointF(self._x_of(mark.at), self._area().top()))
        QToolTip.showText(self.viewport().mapToGlobal(below), plain_tooltip(mark.sentences()), self)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Leave the marks."""
        super().focusOutEvent(event)
        self._walked = None
        self._cursor.hide()
        self.viewport().update()


class Measured(_Plot):
    """A plot of a measurement: its points with their intervals, its boxes, and its marks."""

    def __init__(self, plot: Plot) -> None:
        bottom = _ValueAxis("bottom")
        super().__init__(plot.said(), bottom)
        self.plot = plot
        self._lines: list[pg.PlotDataItem] = []
        self._errors: list[pg.ErrorBarItem] = []
        self._boxes: list[pg.BarGraphItem] = []
        self._across: list[pg.InfiniteLine] = []
        named = self._left if plot.across else self._bottom
        named.setTicks([list(plot.ticks)] if plot.ticks else None)
        for series in plot.series:
            self._add(series)
        for place, label in plot.marks:
            line = pg.InfiniteLine(place, angle=90, movable=False, label=label or None)
            self._across.append(line)
            self.getPlotItem().addItem(line, ignoreBounds=True)
        self._fit()
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.repaint_theme()

    def repaint_theme(self) -> None:
        """Draw in the colours of now."""
        super().repaint_theme()
        colour = theme.current().series[0]
        for line, series in zip(self._lines, self.plot.series, strict=True):
            shown = theme.color("muted") if series.dots else colour
            line.setPen(pg.mkPen(shown, width=2) if series.joined else None)
            line.setSymbolBrush(shown)
            line.setSymbolPen(None)
        for error in self._errors:
            error.setOpts(pen=pg.mkPen(colour, width=2))
        for box in self._boxes:
            faint = pg.mkColor(colour)
            faint.setAlpha(50)
            box.setOpts(brush=faint, pen=pg.mkPen(colour))
        for mark in self._across:
            mark.setPen(pg.mkPen(theme.color("muted"), style=Qt.PenStyle.DashLine))
            if hasattr(mark, "label"):
                mark.label.setColor(theme.color("muted"))
        if self.plot.across:
            self._left.setWidth(150)

    def _add(self, series: Series) -> None:
        across = self.plot.across
        places = np.array([point.x for point in series.points])
        values = np.array([point.y for point in series.points])
        xs, ys = (values, places) if across else (places, values)
        line = pg.PlotDataItem(xs, ys, symbol="o", symbolSize=4 if series.dots else 8, antialias=True)
        self._lines.append(line)
        if known := [one for one in series.points if one.low is not None and one.high is not None]:
            at = np.array([one.x for one in known])
            middle = np.array([one.y for one in known])
            below = middle - np.array([one.low for one in known])
            above = np.array([one.high for one in known]) - middle
            error = (
                pg.ErrorBarItem(x=middle, y=at, left=below, right=above)
                if across
                else pg.ErrorBarItem(x=at, y=middle, top=above, bottom=below)
            )
            self._errors.append(error)
            self.getPlotItem().addItem(error)
        boxes = [one for one in series.points if one.q1 is not None and one.q3 is not None]
        if boxes and not across:
            lower = np.array([one.q1 for one in boxes])
            height = np.array([one.q3 for one in boxes]) - lower
            box = pg.BarGraphItem(x=[one.x for one in boxes], y0=lower, height=height, width=0.18)
            self._boxes.append(box)
            self.getPlotItem().addItem(box)
        self.getPlotItem().addItem(line)

    def _fit(self) -> None:
        low, high = self.plot.shown()
        plot = self.getPlotItem()
        along, up = (plot.setYRange, plot.setXRange) if self.plot.across else (plot.setXRange, plot.setYRange)
        along(*self.plot.places(), padding=0)
        up(low, high, padding=0.05 if self.plot.across else 0)


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
