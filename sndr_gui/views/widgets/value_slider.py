"""A slider over given values beside a field for the exact number, with a mark at the largest that fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QSlider, QWidget

from sndr_gui.kit import formats, theme
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.views.widgets.fields import NumberField
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import column, row

_HANDLE = 9.0
INSET = int(_HANDLE) + 2
"""Room beside the groove for the handle at its ends, in pixels."""
_GROOVE = 4.0
_FIELD = 108


class MarkedSlider(QSlider):
    """A horizontal slider in the theme's colours; `mark` is the last place that has room, if it is known."""

    def __init__(self) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._mark: int | None = None
        self._dim = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setPageStep(8)
        theme.notifier.changed.connect(self.update)

    @property
    def mark(self) -> int | None:
        """The last place that has room."""
        return self._mark

    def set_mark(self, place: int | None, dim: bool) -> None:
        """Move the mark; `dim`: it is that of an older answer."""
        if (place, dim) != (self._mark, self._dim):
            self._mark, self._dim = place, dim
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(160, 30)

    def minimumSizeHint(self) -> QSize:
        return QSize(80, 30)

    def wheelEvent(self, event: QWheelEvent) -> None:
        # A page that is scrolled must not change what it shows.
        event.ignore()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    # The whole groove is the handle's way: a click goes there at once, and the drag goes on from it.

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self.setSliderDown(True)
        self.setValue(self._place_at(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self.isSliderDown():
            self.setValue(self._place_at(event.position().x()))

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        self.setSliderDown(False)

    def _span(self) -> tuple[float, float]:
        return float(INSET), float(self.width() - 2 * INSET)

    def _at(self, place: int) -> float:
        left, wide = self._span()
        return left + wide * (place - self.minimum()) / max(1, self.maximum() - self.minimum())

    def _place_at(self, x: float) -> int:
        left, wide = self._span()
        share = min(1.0, max(0.0, (x - left) / max(1.0, wide)))
        return self.minimum() + round(share * (self.maximum() - self.minimum()))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        left, wide = self._span()
        middle = self.height() / 2
        here = self._at(self.value())
        usable = self.isEnabled()

        def groove(start: float, end: float, token: str, alpha: float = 1.0) -> None:
            ink = theme.color(token)
            ink.setAlphaF(alpha)
            painter.setBrush(ink)
            place = QRectF(start, middle - _GROOVE / 2, max(0.0, end - start), _GROOVE)
            painter.drawRoundedRect(place, _GROOVE / 2, _GROOVE / 2)

        groove(left, left + wide, "line")
        groove(left, here, "accent" if usable else "muted")
        if self._mark is not None:
            end = self._at(self._mark)
            if self._mark < self.maximum():
                groove(end, left + wide, "bad", 0.25 if self._dim else 0.5)
            self._paint_mark(painter, end, middle)
        self._paint_handle(painter, QPointF(here, middle), usable)
        painter.end()

    def _paint_mark(self, painter: QPainter, place: float, middle: float) -> None:
        ink = theme.color("text")
        ink.setAlphaF(0.35 if self._dim else 1.0)
        painter.setBrush(ink)
        top = middle + _HANDLE + 1
        painter.drawPolygon(
            QPolygonF([QPointF(place, top), QPointF(place - 4, top + 5), QPointF(place + 4, top + 5)])
        )

    def _paint_handle(self, painter: QPainter, centre: QPointF, usable: bool) -> None:
        if self.hasFocus():
            ring = theme.color("accent")
            ring.setAlphaF(0.3)
            painter.setBrush(ring)
            painter.drawEllipse(centre, _HANDLE + 2, _HANDLE + 2)
        painter.setPen(QPen(theme.color("accent" if usable else "muted"), 2))
        painter.setBrush(theme.color("surface"))
        painter.drawEllipse(centre, _HANDLE - 2, _HANDLE - 2)
        painter.setPen(Qt.PenStyle.NoPen)


class ValueSlider(QWidget):
    """A caption, a field for the number, a slider over `values`, and a line about the mark.

    Signals:
        chosen: the number that was chosen on the slider
    """

    chosen = Signal(int)

    def __init__(
        self,
        caption: str,
        accessible_name: str,
        low: int,
        high: int,
        edited: Callable[[], object],
        *,
        tokens: bool = False,
    ) -> None:
        super().__init__()
        self._accessible_name = accessible_name
        self._filling = False
        self._values: tuple[int, ...] = (low,)
        self.caption = text(caption, "muted")
        self.field = NumberField(accessible_name, low, high, edited, tokens=tokens)
        self.field.edit.setFixedWidth(_FIELD)
        self.field.edit.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.caption.setBuddy(self.field)
        self.slider = MarkedSlider()
        self.slider.setAccessibleName(accessible_name)
        self.slider.valueChanged.connect(self._on_moved)
        self.note = text("", "muted", wrap=True)
        # What is wrong needs the whole width, the field does not.
        wrong, inside = self.field.wrong, self.field.layout()
        if inside is not None:
            inside.removeWidget(wrong)
        lines = column(row(self.caption, None, self.field), self.slider, wrong, self.note, spacing=2)
        self.setLayout(lines)

    def _on_moved(self, place: int) -> None:
        if not self._filling and place < len(self._values):
            value = self._values[place]
            self._name(value)
            self.chosen.emit(value)

    def _name(self, value: int | None) -> None:
        said = (
            f"{self._accessible_name}: {formats.number(value)}"
            if value is not None
            else self._accessible_name
        )
        if self.slider.accessibleName() != said:
            self.slider.setAccessibleName(said)
            self.slider.setToolTip(plain_tooltip(said))

    def show_values(
        self, values: Sequence[int], value: int | None, mark: int | None, note: str, dim: bool
    ) -> None:
        """Offer these values, stand at `value`; `mark`: the most that has room, `dim`: of an older answer."""
        self._filling = True
        self._values = tuple(values)
        self.slider.setEnabled(value is not None)
        self.slider.setRange(0, max(0, len(self._values) - 1))
        if value is not None:
            place = min(range(len(self._values)), key=lambda number: abs(self._values[number] - value))
            self.slider.setValue(place)
        fitting = None
        if mark is not None:
            fitting = max((number for number, one in enumerate(self._values) if one <= mark), default=0)
        self.slider.set_mark(fitting, dim)
        self._name(value)
        set_text(self.note, note)
        self.note.setVisible(bool(note))
        self._filling = False
