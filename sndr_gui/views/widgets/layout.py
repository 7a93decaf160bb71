"""Rows, columns and scroll areas."""

from collections.abc import Iterable
from typing import TypeVar

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLayout,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

MARGIN = 28
GAP = 14
Box = TypeVar("Box", bound=QBoxLayout)


def row(*items: QWidget | QLayout | None, spacing: int = 8) -> QHBoxLayout:
    """Return widgets beside each other; None is a stretch."""
    return _filled(QHBoxLayout(), items, spacing)


def column(*items: QWidget | QLayout | None, spacing: int = 8) -> QVBoxLayout:
    """Return widgets below each other; None is a stretch."""
    return _filled(QVBoxLayout(), items, spacing)


def _filled(made: Box, items: Iterable[QWidget | QLayout | None], spacing: int) -> Box:
    made.setContentsMargins(0, 0, 0, 0)
    made.setSpacing(spacing)
    for item in items:
        if item is None:
            made.addStretch(1)
        elif isinstance(item, QWidget):
            made.addWidget(item)
        else:
            made.addLayout(item)
    return made


def clear(layout: QLayout) -> None:
    """Remove everything from a layout."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()
        elif (inner := item.layout()) is not None:
            clear(inner)


def show_part(part: QWidget, shown: bool) -> None:
    """Show a part or hide it; one that has no parent yet is shown with the parent that it gets.

    Shown by itself it would be a window of its own for a moment, and be painted over the program's.
    """
    if shown and part.parentWidget() is None:
        part.setAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide, False)
    else:
        part.setVisible(shown)


def rule() -> QFrame:
    """Return a separator line."""
    line = QFrame()
    line.setObjectName("rule")
    return line


class HeightForWidthLayout(QVBoxLayout):
    """The layout of a canvas whose least height does not count: it is as high as it must be at its width.

    A layout asks that of its own accord only while it shows a text that wraps; without one the scroll area
    around it would take the canvas for as high as itself, and draw what is too much over the rest.
    """

    def hasHeightForWidth(self) -> bool:
        return True

    def setGeometry(self, rect: QRect) -> None:
        # The scroll area makes the canvas higher a turn of the loop after its contents grew: until then what
        # is too much is out of sight, and nothing is squeezed.
        least = self.heightForWidth(rect.width())
        super().setGeometry(QRect(rect.topLeft(), QSize(rect.width(), max(rect.height(), least))))


def scrolling(canvas: QWidget) -> QScrollArea:
    """Return a scroll area around a canvas, without a frame.

    Across it scrolls only where words leave no other way: whatever the language, nothing is out of reach.
    """
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    if isinstance(canvas.layout(), HeightForWidthLayout):
        # As high as its texts are at this width, and not as they would be at the least one.
        canvas.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored)
    area.setWidget(canvas)
    return area


def room_of(part: QWidget) -> int:
    """Return the width at which a part can be seen whole; nothing before it was given a place.

    Its own width does not tell: before it has a place it is Qt's 640, and a canvas whose contents stand
    beside each other is never narrower than they are, however little of it its scroll area shows.
    """
    if not part.testAttribute(Qt.WidgetAttribute.WA_Resized):
        return 0
    hidden, inner = 0, part
    while (outer := inner.parentWidget()) is not None and not inner.isWindow():
        if isinstance(outer.parentWidget(), QScrollArea):
            hidden = max(hidden, inner.width() - outer.width())
        inner = outer
    return part.width() - hidden


def beside_bar(area: QScrollArea, lines: QLayout) -> None:
    """Keep a gap between a canvas and its scroll bar; without the bar it ends at the page's margin."""

    def keep(_low: int, high: int) -> None:
        lines.setContentsMargins(0, 0, 6 if high else 0, 0)

    lines.setContentsMargins(0, 0, 0, 0)
    area.verticalScrollBar().rangeChanged.connect(keep)
