"""Shares as bars, painted by hand; read by screen readers as one sentence."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import formats, theme
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.engine.page import StageSpan

_WIDEST = 64
_NARROWEST = 4
_APART = 2


class ShareBars(QWidget):
    """One bar for each place 1, 2, …; the whole height is 100 %, and what was not measured has a dash."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._shares: tuple[float | None, ...] = ()
        self.setAccessibleName(name)
        self.setMinimumHeight(120)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.notifier.changed.connect(self.update)

    def show_shares(self, shares: tuple[float | None, ...]) -> None:
        """Draw these shares, 0 to 1; None is not measured."""
        if shares == self._shares:
            return
        self._shares = shares
        said = ", ".join(f"{place}: {formats.percent(share)}" for place, share in enumerate(shares, 1))
        self.setAccessibleName(f"{self._name}: {said}" if said else self._name)
        self.setToolTip(plain_tooltip(said))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(0, 20, self.width(), self.height() - 42)
        painter.setPen(theme.color("line"))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        if self._shares:
            self._paint_bars(painter, area)
        painter.end()

    def _paint_bars(self, painter: QPainter, area: QRectF) -> None:
        place = area.width() / len(self._shares)
        wide = min(_WIDEST, place * 0.6)
        centre = Qt.AlignmentFlag.AlignHCenter
        for number, share in enumerate(self._shares):
            middle = area.left() + place * (number + 0.5)
            ground = QRectF(middle - wide / 2, area.top(), wide, area.height())
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("raised"))
            painter.drawRoundedRect(ground, 4, 4)
            height = area.height() * min(1.0, max(0.0, share or 0.0))
            painter.setBrush(theme.color("accent"))
            painter.drawRoundedRect(QRectF(ground.left(), area.bottom() - height, wide, height), 4, 4)
            painter.setPen(theme.color("text"))
            painter.drawText(QRectF(middle - 40, 0, 80, 18), centre, formats.percent(share))
            painter.setPen(theme.color("muted"))
            painter.drawText(QRectF(middle - 40, area.bottom() + 4, 80, 18), centre, str(number + 1))


class StageStrip(QWidget):
    """The stages of a start beside each other, each as wide as the time that it took."""

    def __init__(self) -> None:
        super().__init__()
        self._stages: tuple[StageSpan, ...] = ()
        self.setFixedHeight(12)
        self.setMouseTracking(True)
        self.setAccessibleName(tr("Stages of the start"))
        theme.notifier.changed.connect(self.update)

    def show_stages(self, stages: tuple[StageSpan, ...]) -> None:
        """Draw these stages."""
        if stages == self._stages:
            return
        self._stages = stages
        said = ", ".join(f"{stage.name} {formats.duration(stage.seconds)}" for stage in stages)
        self.setAccessibleName(
            tr("Stages of the start: {said}", said=said) if said else tr("Stages of the start")
        )
        self.update()

    def _spans(self) -> list[tuple[StageSpan, QRectF]]:
        """Return each stage with its place; none is too narrow to be seen."""
        whole = sum(stage.seconds for stage in self._stages)
        room = self.width() - _APART * (len(self._stages) - 1) - _NARROWEST * len(self._stages)
        spans, left = [], 0.0
        for stage in self._stages:
            wide = _NARROWEST + max(0.0, room) * (stage.seconds / whole if whole else 0.0)
            spans.append((stage, QRectF(left, 1, wide, self.height() - 2)))
            left += wide + _APART
        return spans

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        for stage, place in self._spans():
            if place.left() <= event.position().x() <= place.right() + _APART:
                self.setToolTip(plain_tooltip(f"{stage.name}: {formats.duration(stage.seconds)}"))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        for number, (stage, place) in enumerate(self._spans()):
            colour = theme.color({"failed": "bad", "running": "accent"}.get(stage.state, "good"))
            # Neighbours differ a little, so that one can be told from the next.
            colour.setAlphaF(0.9 if stage.state != "done" or number % 2 else 0.6)
            painter.setBrush(colour)
            painter.drawRoundedRect(place, 3, 3)
        painter.end()
