"""A small line of the last minutes, painted by hand so that the first page needs no graph library."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QLinearGradient, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import formats, theme

Points = list[tuple[float, float | None]]
_LABEL = 100
"""Pixels that the label of a minute and its distance to the next one take."""
_GAP = 6.0
"""Seconds between two points from which on nothing is known of the time between them."""


class Trend(QWidget):
    """Values over time with a scale at the left; a gap stays a gap.

    `step` is the time between two points in seconds, where it is known. `most` is the highest value that
    there can be: the scale goes no further.
    """

    def __init__(self, name: str, seconds: float, step: float = 0.0, most: float | None = None) -> None:
        super().__init__()
        self._seconds = seconds
        self._gap = max(_GAP, 2.5 * step)
        self._most = most
        self._points: Points = []
        self._now = 0.0
        self._name = name
        self.setAccessibleName(name)
        self.setMinimumHeight(90)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.notifier.changed.connect(self.update)

    def show_points(self, points: Points, now: float) -> None:
        """Draw these points; the right edge is now."""
        self._points, self._now = points, now
        newest = next((value for _at, value in reversed(points) if value is not None), None)
        self.setAccessibleName(
            f"{self._name}: " + formats.number(newest, ".1f") if newest is not None else self._name
        )
        self.update()

    @property
    def top(self) -> float:
        """The value at the upper end of the scale."""
        top = nice_top(max((value for _at, value in self._points if value is not None), default=0.0))
        return top if self._most is None else min(top, self._most)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(44, 6, self.width() - 46, self.height() - 28)
        top = self.top
        self._paint_scale(painter, area, top)
        for run in self._runs(area, top):
            self._paint_run(painter, run, area)
        painter.end()

    def _paint_scale(self, painter: QPainter, area: QRectF, top: float) -> None:
        line, muted = theme.color("line"), theme.color("muted")
        font = self.font()
        font.setPixelSize(12)
        painter.setFont(font)
        for step in range(5):
            y = area.bottom() - area.height() * step / 4
            if step:
                faint = QColor(line)
                faint.setAlphaF(0.55)
                painter.setPen(faint)
            else:
                painter.setPen(line)
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            if step in (0, 2, 4):
                painter.setPen(muted)
                label = formats.number(top * step / 4, ",g")
                place = QRectF(0, y - 9, area.left() - 8, 18)
                painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, label)
        painter.setPen(muted)
        minutes = round(self._seconds / 60)
        for number in minutes_named(minutes, area.width()):
            x = area.right() - area.width() * number / minutes
            label = tr("{number} min ago", number=number) if number else tr("now")
            side = Qt.AlignmentFlag.AlignHCenter
            box = QRectF(x - 36, area.bottom() + 4, 72, 18)
            if number == 0:
                side, box = Qt.AlignmentFlag.AlignRight, QRectF(x - 72, area.bottom() + 4, 72, 18)
            elif number == minutes:
                side, box = Qt.AlignmentFlag.AlignLeft, QRectF(x, area.bottom() + 4, 72, 18)
            painter.drawText(box, side, label)

    def _runs(self, area: QRectF, top: float) -> list[list[QPointF]]:
        runs: list[list[QPointF]] = [[]]
        before: float | None = None
        for at, value in self._points:
            age = self._now - at
            if value is None or age > self._seconds or (before is not None and at - before > self._gap):
                runs.append([])
            before = at
            if value is not None and age <= self._seconds:
                x = area.right() - area.width() * max(0.0, age) / self._seconds
                runs[-1].append(QPointF(x, area.bottom() - area.height() * min(1.0, value / top)))
        return [run for run in runs if len(run) > 1]

    def _paint_run(self, painter: QPainter, run: list[QPointF], area: QRectF) -> None:
        accent = theme.color("accent")
        path = QPainterPath(run[0])
        for point in run[1:]:
            path.lineTo(point)
        ground = QPainterPath(path)
        ground.lineTo(run[-1].x(), area.bottom())
        ground.lineTo(run[0].x(), area.bottom())
        shade = QLinearGradient(0, area.top(), 0, area.bottom())
        strong, faint = QColor(accent), QColor(accent)
        strong.setAlphaF(0.22)
        faint.setAlphaF(0.02)
        shade.setColorAt(0, strong)
        shade.setColorAt(1, faint)
        painter.fillPath(ground, shade)
        painter.setPen(QPen(accent, 1.4))
        painter.drawPath(path)


def minutes_named(minutes: int, width: float) -> range:
    """Return the minutes with a label below a line of this width in pixels: none covers another."""
    steps = (step for step in (1, 2, 5, 10, 15, 30, 60) if minutes % step == 0)
    every = next((step for step in steps if width * step / minutes >= _LABEL), max(1, minutes))
    return range(minutes, -1, -every)


def nice_top(highest: float) -> float:
    """Return the smallest round number above a value."""
    wanted = max(highest * 1.1, 1.0)
    scale = 1.0
    while wanted > 10 * scale:
        scale *= 10
    return next(step * scale for step in (1, 2, 4, 5, 8, 10) if step * scale >= wanted)
