"""The memory of each device as stacked bars with a legend; read by screen readers as sentences."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QHelpEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QToolTip, QWidget

from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import FitReport
from sndr_gui.kit import formats, theme
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.fit.device_memory import DeviceMemory, MemoryPart, device_memories, summary
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import ElidedLabel, set_text, set_tone, text, unbroken
from sndr_gui.views.widgets.layout import clear, column, row

_HEAD = 21
_BAR = 20
_APART = 10
_ROUND = 5
_DIM = 0.38
_NOT_COMPUTED = tr("not computed")


def part_colour(number: int) -> QColor:
    """Return the colour of a part in the theme in use."""
    colours = theme.current().parts
    return QColor(colours[number % len(colours)])


class MemoryBars(QWidget):
    """One stacked bar a device, all to one scale: others' processes, the parts, the room's end, the band.

    Dimmed while an answer is waited for; without one it says so and draws no part.
    """

    def __init__(self) -> None:
        super().__init__()
        self._devices: tuple[DeviceMemory, ...] = ()
        self._waiting = False
        self._note = _NOT_COMPUTED
        self.setAccessibleName(tr("Memory per device"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(120)
        theme.notifier.changed.connect(self.update)
        self.show_devices((), False)

    @property
    def devices(self) -> tuple[DeviceMemory, ...]:
        """The devices that are drawn."""
        return self._devices

    @property
    def waiting(self) -> bool:
        """True while the bars are dimmed."""
        return self._waiting

    def show_devices(
        self, devices: tuple[DeviceMemory, ...], waiting: bool, note: str = _NOT_COMPUTED
    ) -> None:
        """Draw these devices; `note` is said where there is none."""
        rows = len(self._devices)
        self._devices, self._waiting, self._note = devices, waiting, note
        said = " ".join(device.sentence for device in devices) or note
        self.setAccessibleDescription(
            tr("{not_computed}; before: {said}", not_computed=_NOT_COMPUTED, said=said)
            if waiting and devices
            else said
        )
        if len(devices) != rows or self.minimumHeight() != self._height():
            self.setFixedHeight(self._height())
        self.update()

    def _height(self) -> int:
        rows = max(1, len(self._devices))
        return rows * (_HEAD + _BAR) + (rows - 1) * _APART + 2

    def sizeHint(self) -> QSize:
        return QSize(320, self._height())

    # Where things are.

    def _scale(self) -> float:
        """Return the pixels of a byte."""
        return (self.width() - 2) / max((device.extent for device in self._devices), default=1)

    def _bar(self, number: int) -> QRectF:
        top = number * (_HEAD + _BAR + _APART) + _HEAD
        device = self._devices[number]
        return QRectF(1, top, device.total * self._scale(), _BAR)

    def _spans(self, number: int) -> list[tuple[MemoryPart, QRectF]]:
        device, scale, bar = self._devices[number], self._scale(), self._bar(number)
        left, found = bar.left() + device.taken * scale, []
        for part in device.parts:
            wide = part.size * scale
            found.append((part, QRectF(left, bar.top(), wide, bar.height())))
            left += wide
        return found

    def tooltip_at(self, place: QPointF) -> str:
        """Return the tooltip of a place of the widget."""
        for number, device in enumerate(self._devices):
            bar = self._bar(number)
            if not bar.top() <= place.y() <= bar.bottom():
                continue
            for part, span in self._spans(number):
                if span.left() <= place.x() <= span.right():
                    return part.sentence
            if device.taken and place.x() < bar.left() + device.taken * self._scale():
                return tr("Other processes hold {size}", size=formats.size(device.taken))
            if place.x() > bar.left() + device.limit * self._scale():
                return tr("Beyond the {size} that the engine may use", size=formats.size(device.usable))
            return device.remainder
        return ""

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            said = self.tooltip_at(QPointF(event.pos()))
            if said:
                QToolTip.showText(event.globalPos(), plain_tooltip(said), self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    # Drawing.

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._devices:
            self._paint_nothing(painter)
        for number, device in enumerate(self._devices):
            self._paint_head(painter, number, device)
            painter.setOpacity(_DIM if self._waiting else 1.0)
            self._paint_bar(painter, number, device)
            painter.setOpacity(1.0)
        painter.end()

    def _paint_nothing(self, painter: QPainter) -> None:
        bar = QRectF(1, _HEAD, self.width() - 2, _BAR)
        pen = QPen(theme.color("line"))
        pen.setStyle(Qt.PenStyle.DashLine)
        painter.setPen(pen)
        painter.setBrush(theme.color("raised"))
        painter.drawRoundedRect(bar, _ROUND, _ROUND)
        painter.setPen(theme.color("muted"))
        painter.drawText(bar, Qt.AlignmentFlag.AlignCenter, self._note)

    def _paint_head(self, painter: QPainter, number: int, device: DeviceMemory) -> None:
        line = QRectF(1, self._bar(number).top() - _HEAD, self.width() - 2, _HEAD - 3)
        figure = tr("computing…") if self._waiting else device.usage
        painter.setPen(theme.color("muted" if self._waiting or device.fits else "bad"))
        painter.drawText(line, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), figure)
        room = line.adjusted(0, 0, -painter.fontMetrics().horizontalAdvance(figure) - 10, 0)
        painter.setPen(theme.color("text"))
        name = f"{device.name}  ·  {formats.size(device.total)}"
        name = painter.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, round(room.width()))
        painter.drawText(room, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), name)

    def _paint_bar(self, painter: QPainter, number: int, device: DeviceMemory) -> None:
        bar, scale = self._bar(number), self._scale()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("raised"))
        painter.drawRoundedRect(bar, _ROUND, _ROUND)
        painter.save()
        whole = QPainterPath()
        wide = max(bar.width(), (device.taken + device.needed) * scale)
        whole.addRoundedRect(QRectF(bar.left(), bar.top(), wide, bar.height()), _ROUND, _ROUND)
        painter.setClipPath(whole)
        if device.taken:
            held = QRectF(bar.left(), bar.top(), device.taken * scale, bar.height())
            ground = theme.color("muted")
            ground.setAlphaF(0.28)
            painter.fillRect(held, ground)
            _hatch(painter, held, "muted", Qt.BrushStyle.Dense6Pattern)
        for part, span in self._spans(number):
            painter.fillRect(span, part_colour(part.colour))
            painter.fillRect(QRectF(span.right() - 1, span.top(), 1, span.height()), theme.color("surface"))
        painter.restore()
        self._paint_band(painter, bar, device, scale)
        self._paint_limit(painter, bar, device, scale)

    def _paint_band(self, painter: QPainter, bar: QRectF, device: DeviceMemory, scale: float) -> None:
        """Hatch where the parts may end: between all estimates at their lower and at their upper end."""
        if device.low == device.high:
            return
        left = bar.left() + (device.taken + device.low) * scale
        band = QRectF(left, bar.top() + 3, max(2.0, (device.high - device.low) * scale), bar.height() - 6)
        _hatch(painter, band, "text", Qt.BrushStyle.BDiagPattern)

    def _paint_limit(self, painter: QPainter, bar: QRectF, device: DeviceMemory, scale: float) -> None:
        place = bar.left() + device.limit * scale
        if not device.fits:
            over = QRectF(
                place, bar.top(), (device.taken + device.needed - device.limit) * scale, bar.height()
            )
            ground = theme.color("bad")
            ground.setAlphaF(0.25)
            painter.fillRect(over, ground)
            _hatch(painter, over, "bad", Qt.BrushStyle.FDiagPattern)
        pen = QPen(theme.color("text" if device.fits else "bad"), 2)
        painter.setPen(pen)
        painter.drawLine(QPointF(place, bar.top() - 3), QPointF(place, bar.bottom() + 2))


def _hatch(painter: QPainter, area: QRectF, token: str, pattern: Qt.BrushStyle) -> None:
    ink = theme.color(token)
    ink.setAlphaF(0.55)
    painter.fillRect(area, QBrush(ink, pattern))


class Swatch(QWidget):
    """A small sample of how something is drawn: a part by its colour's number, or one of the marks."""

    HELD, LIMIT, BAND = -1, -2, -3

    def __init__(self, kind: int) -> None:
        super().__init__()
        self._kind = kind
        self.setFixedSize(10, 12)
        theme.notifier.changed.connect(self.update)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if self._kind == self.LIMIT:
            painter.fillRect(QRectF(4, 0, 2, 12), theme.color("text"))
        elif self._kind == self.BAND:
            _hatch(painter, QRectF(0, 1, 10, 10), "text", Qt.BrushStyle.BDiagPattern)
        else:
            ground = theme.color("muted") if self._kind == self.HELD else part_colour(self._kind)
            if self._kind == self.HELD:
                ground.setAlphaF(0.45)
            painter.setBrush(ground)
            painter.drawRoundedRect(0, 1, 10, 10, 3, 3)
        painter.end()


@dataclass(frozen=True)
class _LegendEntry:
    """One entry of the legend: how it is drawn, what is said beside it, and everything about it."""

    kind: int
    name: str
    words: str
    said: str


def _legend_entries(device: DeviceMemory | None) -> tuple[_LegendEntry, ...]:
    if device is None:
        return ()
    found = [
        _LegendEntry(part.colour, part.name, f"{part.name} {formats.size(part.size)}", part.sentence)
        for part in device.parts
    ]
    if device.taken:
        held = formats.size(device.taken)
        said = tr("Other processes hold {held}", held=held)
        found.append(_LegendEntry(Swatch.HELD, "held", tr("other processes {held}", held=held), said))
    room = formats.size(device.usable)
    found.append(
        _LegendEntry(
            Swatch.LIMIT,
            "room",
            tr("usable memory {room}", room=room),
            tr("The engine may use {room}", room=room),
        )
    )
    if device.low != device.high:
        low, high = formats.size(device.low), formats.size(device.high)
        said = tr("With all estimates, {low} to {high} are needed", low=low, high=high)
        found.append(
            _LegendEntry(Swatch.BAND, "band", tr("estimates {low} to {high}", low=low, high=high), said)
        )
    return tuple(found)


class PartLegend(Flow):
    """The legend of the fullest device: its parts, other processes, usable memory and band."""

    def __init__(self) -> None:
        super().__init__(spacing=14, lines=6)
        self._names: tuple[str, ...] = ()
        self._entries: list[tuple[QWidget, QLabel]] = []
        self.setMinimumWidth(1)

    def show_device(self, device: DeviceMemory | None, waiting: bool = False) -> None:
        """Explain the colours of a device; muted while other figures are waited for."""
        entries = _legend_entries(device)
        names = tuple(entry.name for entry in entries)
        if names != self._names:
            self._names = names
            self.clear()
            self._entries = []
            for entry in entries:
                label = text("")
                cell = QWidget()
                cell.setLayout(row(Swatch(entry.kind), label, spacing=6))
                self._entries.append((cell, label))
                self.add(cell)
        for (cell, label), entry in zip(self._entries, entries, strict=True):
            set_text(label, entry.words)
            set_tone(label, "muted" if waiting else "")
            cell.setToolTip(plain_tooltip(entry.said))
            label.setAccessibleName(entry.said)


class PartTable(QWidget):
    """Every part of the fullest device with its bytes, its band and where the figure is from."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnStretch(4, 1)
        self._shown: tuple[MemoryPart, ...] = ()

    def show_device(self, device: DeviceMemory | None) -> None:
        """Show the parts of a device."""
        parts = device.parts if device else ()
        if parts == self._shown:
            return
        self._shown = parts
        clear(self._grid)
        for number, part in enumerate(parts):
            size = text(formats.size(part.size))
            size.setAlignment(Qt.AlignmentFlag.AlignRight)
            note = f"{part.source}: {part.note}" if part.note else part.source
            source = ElidedLabel(note, "muted")
            source.setToolTip(plain_tooltip(note))
            cells = (
                Swatch(part.colour),
                text(part.name),
                size,
                text(part.band or tr("exact"), "muted"),
                source,
            )
            for place, cell in enumerate(cells):
                self._grid.addWidget(cell, number, place)


class MemoryView(QWidget):
    """The bars with what they say in words, and the legend; what a page shows of a fit report."""

    def __init__(self) -> None:
        super().__init__()
        self.bars = MemoryBars()
        self.summary = text("", "muted", wrap=True)
        self.legend = PartLegend()
        self.setLayout(column(self.bars, self.summary, self.legend, spacing=8))

    def show_report(self, report: FitReport | None, waiting: bool, note: str = _NOT_COMPUTED) -> None:
        """Show an answer; dimmed while another one is waited for. `note` stands where there is none."""
        devices = device_memories(report)
        self.bars.show_devices(devices, waiting, note)
        fullest = max(devices, key=lambda device: device.needed - device.usable, default=None)
        computing = tr("Computing…") if waiting else ""
        set_text(self.summary, unbroken(computing or summary(report)))
        set_tone(self.summary, "muted" if waiting or fullest is None or fullest.fits else "bad")
        self.summary.setVisible(bool(devices))
        self.legend.show_device(fullest, waiting)
        self.legend.setVisible(bool(devices))
