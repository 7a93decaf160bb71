"""The words in that part of a graph in which nothing was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from sndr_gui.kit import theme
from sndr_gui.models.monitor.unmeasured import Unmeasured

_BESIDE = 8


def paint_unmeasured(
    painter: QPainter, area: QRectF, times: Sequence[Unmeasured], x_of: Callable[[float], float]
) -> None:
    """Write the words of each time that is wide enough for them."""
    painter.save()
    painter.setPen(QPen(theme.color("muted")))
    for one in times:
        left, right = max(area.left(), x_of(one.since)), min(area.right(), x_of(one.until))
        wide = painter.fontMetrics().horizontalAdvance(one.words)
        if wide + 2 * _BESIDE <= right - left:
            place = QRectF(left, area.top(), right - left, area.height())
            painter.drawText(place, Qt.AlignmentFlag.AlignCenter, one.words)
    painter.restore()
