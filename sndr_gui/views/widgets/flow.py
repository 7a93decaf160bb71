"""Widgets beside each other that wrap into the next line."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRect, QSize
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QWidget


class Flow(QWidget):
    """Widgets in their preferred sizes, as many in a line as fit; hidden ones take no room.

    It places its children itself: a layout of one's own in Python outlives its items in Qt.
    """

    def __init__(
        self, *widgets: QWidget, spacing: int = 8, lines: int | None = None, middle: bool = True
    ) -> None:
        """`lines`: the room between two lines, where it is another than between two widgets.

        Without `middle` a lower widget stands at the top of its line: where the words of a higher one do too.
        """
        super().__init__()
        self._spacing, self._middle = spacing, middle
        self._lines = spacing if lines is None else lines
        self._widgets: list[QWidget] = []
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        for widget in widgets:
            self.add(widget)

    def add(self, widget: QWidget) -> None:
        """Put one more at the end."""
        widget.setParent(self)
        widget.show()
        self._widgets.append(widget)
        self._arrange()

    def clear(self) -> None:
        """Remove all."""
        for widget in self._widgets:
            widget.hide()
            widget.deleteLater()
        self._widgets = []
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # Children that came while the page was hidden asked nobody for a place.
        self._arrange()

    def event(self, event: QEvent) -> bool:
        # A child that changed its size, or was shown or hidden, asks its parent for a place.
        if event.type() == QEvent.Type.LayoutRequest:
            self._arrange()
        return super().event(event)

    def sizeHint(self) -> QSize:
        shown = [widget.sizeHint() for widget in self._shown()]
        width = sum(size.width() for size in shown) + self._spacing * max(0, len(shown) - 1)
        return QSize(width, self.minimumHeight())

    def minimumSizeHint(self) -> QSize:
        widest = max((widget.sizeHint().width() for widget in self._shown()), default=0)
        return QSize(widest, self.minimumHeight())

    def _shown(self) -> list[QWidget]:
        return [widget for widget in self._widgets if not widget.isHidden()]

    def _arrange(self) -> None:
        left = top = 0
        lines: list[list[tuple[QWidget, QRect]]] = [[]]
        for widget in self._shown():
            size = widget.sizeHint().boundedTo(widget.maximumSize()).expandedTo(widget.minimumSize())
            if left and left + size.width() > self.width():
                left = 0
                lines.append([])
            width = min(size.width(), max(1, self.width()))
            lines[-1].append((widget, QRect(left, 0, width, size.height())))
            left += size.width() + self._spacing
        for number, line in enumerate(lines):
            top += self._lines if number else 0
            height = max((place.height() for _widget, place in line), default=0)
            for widget, place in line:
                # In the middle of its line the words of a lower one are on the height of the others'.
                down = (height - place.height()) // 2 if self._middle else 0
                widget.setGeometry(place.translated(0, top + down))
            top += height
        if self.height() != top or self.minimumHeight() != top:
            self.setFixedHeight(top)
