"""The marks of events as they are drawn over a graph, and in the menu that switches them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPen, QPixmap, QPolygonF

from sndr_gui.kit import theme
from sndr_gui.models.monitor.marks import Bunch, MarkGroup

_RADIUS = 4.0
_REACH = 6.0
"""Pixels from a mark within which the pointer is on it."""


def paint_marks(
    painter: QPainter,
    area: QRectF,
    bunches: tuple[Bunch, ...],
    x_of: Callable[[float], float],
    chosen: Bunch | None,
) -> None:
    """Draw a line with a form at its upper end for each mark in an area; a form as well as a colour."""
    painter.save()
    painter.setClipRect(area.adjusted(-_RADIUS, 0, _RADIUS, 0))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for bunch in bunches:
        x = x_of(bunch.at)
        if not area.left() <= x <= area.right():
            continue
        colour = theme.color(bunch.group.tone)
        faint = QColor(colour)
        faint.setAlphaF(0.9 if bunch == chosen else 0.45)
        style = Qt.PenStyle.SolidLine if bunch == chosen else Qt.PenStyle.DashLine
        painter.setPen(QPen(faint, 1, style))
        painter.drawLine(QPointF(x, area.top() + 2 * _RADIUS + 2), QPointF(x, area.bottom()))
        _paint_form(painter, bunch.group.shape, QPointF(x, area.top() + _RADIUS + 1), colour)
    painter.restore()


def near(bunches: tuple[Bunch, ...], x: float, x_of: Callable[[float], float]) -> Bunch | None:
    """Return the mark at a place, in pixels, if there is one."""
    closest = min(bunches, key=lambda bunch: abs(x_of(bunch.at) - x), default=None)
    return closest if closest is not None and abs(x_of(closest.at) - x) <= _REACH else None


def icon_of(group: MarkGroup) -> QIcon:
    """Return the form of a group's marks, for a legend."""
    picture = QPixmap(16, 16)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    _paint_form(painter, group.shape, QPointF(8, 8), theme.color(group.tone))
    painter.end()
    return QIcon(picture)


def _paint_form(painter: QPainter, shape: str, centre: QPointF, colour: QColor) -> None:
    r = _RADIUS
    painter.setPen(QPen(colour, 2 if shape == "cross" else 1))
    painter.setBrush(colour)
    x, y = centre.x(), centre.y()
    if shape == "cross":
        painter.drawLine(QPointF(x - r, y - r), QPointF(x + r, y + r))
        painter.drawLine(QPointF(x - r, y + r), QPointF(x + r, y - r))
    elif shape == "triangle":
        painter.drawPolygon(QPolygonF([QPointF(x, y - r), QPointF(x + r, y + r), QPointF(x - r, y + r)]))
    elif shape == "square":
        painter.drawRect(QRectF(x - r + 1, y - r + 1, 2 * r - 2, 2 * r - 2))
    elif shape == "diamond":
        corners = [QPointF(x, y - r), QPointF(x + r, y), QPointF(x, y + r), QPointF(x - r, y)]
        painter.drawPolygon(QPolygonF(corners))
    else:
        painter.drawEllipse(centre, r - 1, r - 1)
