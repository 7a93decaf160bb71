"""The holders of memory: a bar for each device, engines by their parts, and the same in words."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import formats, theme
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.monitor.memory import FREE, OTHERS, Bar, MemoryModel, Segment
from sndr_gui.views.graphs.memory_bar import part_colour
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import clear, row

_HIGH = 18
_NARROWEST = 2.0


class StackedBar(QWidget):
    """One device; the pointer on a segment tells what it is, and so does the description."""

    def __init__(self) -> None:
        super().__init__()
        self.bar: Bar | None = None
        self.setFixedHeight(_HIGH)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.notifier.changed.connect(self.update)

    def show_bar(self, bar: Bar) -> None:
        """Draw this device."""
        self.bar = bar
        self.setAccessibleName(bar.title)
        self.setAccessibleDescription(bar.sentence)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(320, _HIGH)

    def spans(self) -> list[tuple[Segment, QRectF]]:
        """Return each segment with its place."""
        if self.bar is None:
            return []
        whole = max(self.bar.total, sum(one.size for one in self.bar.segments), 1)
        found, left = [], 0.0
        for segment in self.bar.segments:
            wide = max(_NARROWEST, self.width() * segment.size / whole)
            found.append((segment, QRectF(left, 0, wide, self.height())))
            left += wide
        return found

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            place = event.pos().x()
            hit = next((one for one, span in self.spans() if span.left() <= place <= span.right()), None)
            if hit is not None:
                QToolTip.showText(event.globalPos(), plain_tooltip(hit.sentence), self)
                return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(Qt.PenStyle.NoPen)
        for segment, span in self.spans():
            painter.fillRect(span.adjusted(0, 0, -1, 0), theme.color("raised"))
            if segment.colour == FREE:
                continue
            inner = span.adjusted(0, 0, -1, 0)
            if segment.colour == OTHERS:
                # Hatched, so that what is not ours is told without a colour too.
                painter.fillRect(inner, QBrush(theme.color("muted"), Qt.BrushStyle.BDiagPattern))
            else:
                painter.fillRect(inner, part_colour(segment.colour))
        painter.end()


class _Swatch(QWidget):
    """The colour of a segment in the legend."""

    def __init__(self, segment: Segment) -> None:
        super().__init__()
        self._segment = segment
        self.setFixedSize(10, 10)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        place = self._segment.colour
        if place == OTHERS:
            painter.fillRect(self.rect(), QBrush(theme.color("muted"), Qt.BrushStyle.BDiagPattern))
        else:
            colour: QColor = theme.color("raised") if place == FREE else part_colour(place)
            painter.fillRect(self.rect(), colour)
        painter.end()


class MemoryPane(QWidget):
    """Every device with its bar and its legend."""

    def __init__(self, model: MemoryModel) -> None:
        super().__init__()
        self.model = model
        self._said = text("", "muted")
        self._said.setWordWrap(True)
        self._devices = QVBoxLayout()
        self._devices.setSpacing(6)
        self.bars: list[StackedBar] = []
        self._drawn: tuple[Bar, ...] = ()
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.addWidget(self._said)
        lines.addLayout(self._devices)
        lines.addWidget(CopyField("sndr telemetry memory", tr("equivalent command")))
        lines.addStretch(1)
        model.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the newest answer."""
        problem = self.model.problem
        if problem is not None:
            set_text(self._said, tr("Not read now: {message}", message=problem.message))
        elif self.model.page is None:
            set_text(self._said, tr("Asking who holds memory…"))
        elif self.model.on_gpus:
            set_text(
                self._said, tr("Now, by the driver's list of processes; parts as the engines print them.")
            )
        else:
            set_text(
                self._said, tr("Now, by the system's list of processes; parts as the engines print them.")
            )
        bars = self.model.bars
        if bars == self._drawn:
            return
        self._drawn = bars
        clear(self._devices)
        self.bars = []
        for bar in bars:
            self._add(bar)

    def _add(self, bar: Bar) -> None:
        drawn = StackedBar()
        drawn.show_bar(bar)
        self.bars.append(drawn)
        legend = Flow(spacing=14)
        for segment in bar.segments:
            entry = QWidget()
            name = formats.shortened(segment.label, 44)
            entry.setLayout(
                row(_Swatch(segment), text(name, "muted"), text(formats.size(segment.size)), spacing=6)
            )
            entry.setToolTip(plain_tooltip(segment.sentence))
            legend.add(entry)
        for missing in bar.unknown:
            legend.add(text(tr("{missing}: not measured", missing=formats.shortened(missing, 44)), "muted"))
        self._devices.addWidget(text(bar.title))
        self._devices.addWidget(drawn)
        self._devices.addWidget(legend)
