"""What a start takes of each device, as stacked bars with a legend; told to screen readers in sentences."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QHelpEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QToolTip, QWidget

from engine_host.protocol.fit import FitReport
from sndr_gui.kit import formats, theme
from sndr_gui.kit.plain_tip import plain_tip
from sndr_gui.models.fit.memory_stack import Piece, Stack, stacks_of, summary
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.parts import Elided, clear, column, row, set_text, set_tone, text, unbroken

_HEAD = 21
_BAR = 20
_APART = 10
_ROUND = 5
_DIM = 0.38
_NOT_COMPUTED = "not computed"


def part_colour(number: int) -> QColor:
    """The colour of a part in the theme in use."""
    colours = theme.current().parts
    return QColor(colours[number % len(colours)])


class MemoryBars(QWidget):
    """One stacked bar a device, all to one scale: others' processes, the parts, the room's end, the band.

    Dimmed while an answer is waited for; without one it says so and draws no part.
    """

    def __init__(self) -> None:
        super().__init__()
        self._stacks: tuple[Stack, ...] = ()
        self._waiting = False
        self._note = _NOT_COMPUTED
        self.setAccessibleName("Memory of each device")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(120)
        theme.notifier.changed.connect(self.update)
        self.show_stacks((), False)

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """What is drawn."""
        return self._stacks

    @property
    def waiting(self) -> bool:
        """Whether it is dimmed."""
        return self._waiting

    def show_stacks(self, stacks: tuple[Stack, ...], waiting: bool, note: str = _NOT_COMPUTED) -> None:
        """Draw these devices; `note` is said where there is none."""
        rows = len(self._stacks)
        self._stacks, self._waiting, self._note = stacks, waiting, note
        said = " ".join(stack.sentence for stack in stacks) or note
        self.setAccessibleDescription(f"{_NOT_COMPUTED}; before: {said}" if waiting and stacks else said)
        if len(stacks) != rows or self.minimumHeight() != self._height():
            self.setFixedHeight(self._height())
        self.update()

    def _height(self) -> int:
        rows = max(1, len(self._stacks))
        return rows * (_HEAD + _BAR) + (rows - 1) * _APART + 2

    def sizeHint(self) -> QSize:
        return QSize(320, self._height())

    # Where things are.

    def _scale(self) -> float:
        """Pixels a byte."""
        return (self.width() - 2) / max((stack.reach for stack in self._stacks), default=1)

    def _bar(self, number: int) -> QRectF:
        top = number * (_HEAD + _BAR + _APART) + _HEAD
        stack = self._stacks[number]
        return QRectF(1, top, stack.total * self._scale(), _BAR)

    def _spans(self, number: int) -> list[tuple[Piece, QRectF]]:
        stack, scale, bar = self._stacks[number], self._scale(), self._bar(number)
        left, found = bar.left() + stack.taken * scale, []
        for piece in stack.pieces:
            wide = piece.size * scale
            found.append((piece, QRectF(left, bar.top(), wide, bar.height())))
            left += wide
        return found

    def said_at(self, place: QPointF) -> str:
        """What lies at a place of the widget: the tooltip."""
        for number, stack in enumerate(self._stacks):
            bar = self._bar(number)
            if not bar.top() <= place.y() <= bar.bottom():
                continue
            for piece, span in self._spans(number):
                if span.left() <= place.x() <= span.right():
                    return piece.sentence
            if stack.taken and place.x() < bar.left() + stack.taken * self._scale():
                return f"Other processes hold {formats.size(stack.taken)}"
            if place.x() > bar.left() + stack.limit * self._scale():
                return f"Beyond the {formats.size(stack.room)} that the engine may use"
            return stack.rest
        return ""

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            said = self.said_at(QPointF(event.pos()))
            if said:
                QToolTip.showText(event.globalPos(), plain_tip(said), self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    # Drawing.

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._stacks:
            self._paint_nothing(painter)
        for number, stack in enumerate(self._stacks):
            self._paint_head(painter, number, stack)
            painter.setOpacity(_DIM if self._waiting else 1.0)
            self._paint_bar(painter, number, stack)
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

    def _paint_head(self, painter: QPainter, number: int, stack: Stack) -> None:
        line = QRectF(1, self._bar(number).top() - _HEAD, self.width() - 2, _HEAD - 3)
        figure = "computing…" if self._waiting else stack.figure
        painter.setPen(theme.color("muted" if self._waiting or stack.fits else "bad"))
        painter.drawText(line, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), figure)
        room = line.adjusted(0, 0, -painter.fontMetrics().horizontalAdvance(figure) - 10, 0)
        painter.setPen(theme.color("text"))
        name = f"{stack.name}  ·  {formats.size(stack.total)}"
        name = painter.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, round(room.width()))
        painter.drawText(room, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), name)

    def _paint_bar(self, painter: QPainter, number: int, stack: Stack) -> None:
        bar, scale = self._bar(number), self._scale()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("raised"))
        painter.drawRoundedRect(bar, _ROUND, _ROUND)
        painter.save()
        whole = QPainterPath()
        wide = max(bar.width(), (stack.taken + stack.needed) * scale)
        whole.addRoundedRect(QRectF(bar.left(), bar.top(), wide, bar.height()), _ROUND, _ROUND)
        painter.setClipPath(whole)
        if stack.taken:
            held = QRectF(bar.left(), bar.top(), stack.taken * scale, bar.height())
            ground = theme.color("muted")
            ground.setAlphaF(0.28)
            painter.fillRect(held, ground)
            _hatch(painter, held, "muted", Qt.BrushStyle.Dense6Pattern)
        for piece, span in self._spans(number):
            painter.fillRect(span, part_colour(piece.colour))
            painter.fillRect(QRectF(span.right() - 1, span.top(), 1, span.height()), theme.color("surface"))
        painter.restore()
        self._paint_band(painter, bar, stack, scale)
        self._paint_limit(painter, bar, stack, scale)

    def _paint_band(self, painter: QPainter, bar: QRectF, stack: Stack, scale: float) -> None:
        """Where the stack may end: between all estimates at their lower and at their upper end."""
        if stack.low == stack.high:
            return
        left = bar.left() + (stack.taken + stack.low) * scale
        band = QRectF(left, bar.top() + 3, max(2.0, (stack.high - stack.low) * scale), bar.height() - 6)
        _hatch(painter, band, "text", Qt.BrushStyle.BDiagPattern)

    def _paint_limit(self, painter: QPainter, bar: QRectF, stack: Stack, scale: float) -> None:
        place = bar.left() + stack.limit * scale
        if not stack.fits:
            over = QRectF(place, bar.top(), (stack.taken + stack.needed - stack.limit) * scale, bar.height())
            ground = theme.color("bad")
            ground.setAlphaF(0.25)
            painter.fillRect(over, ground)
            _hatch(painter, over, "bad", Qt.BrushStyle.FDiagPattern)
        pen = QPen(theme.color("text" if stack.fits else "bad"), 2)
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
class _Explained:
    """One entry of the legend: how it is drawn, what is said beside it, and everything about it."""

    kind: int
    name: str
    words: str
    said: str


def _explained(stack: Stack | None) -> tuple[_Explained, ...]:
    if stack is None:
        return ()
    found = [
        _Explained(piece.colour, piece.name, f"{piece.name} {formats.size(piece.size)}", piece.sentence)
        for piece in stack.pieces
    ]
    if stack.taken:
        held = formats.size(stack.taken)
        said = f"Other processes hold {held}"
        found.append(_Explained(Swatch.HELD, "held", f"other processes {held}", said))
    room = formats.size(stack.room)
    found.append(_Explained(Swatch.LIMIT, "room", f"end of the room, {room}", f"The engine may use {room}"))
    if stack.low != stack.high:
        low, high = formats.size(stack.low), formats.size(stack.high)
        said = f"All estimates together may move the end: {low} to {high} are needed"
        found.append(_Explained(Swatch.BAND, "band", f"estimates {low} to {high}", said))
    return tuple(found)


class PartLegend(Flow):
    """What is drawn of the fullest device: its parts with their bytes, what others hold, room and band."""

    def __init__(self) -> None:
        super().__init__(spacing=14, lines=6)
        self._names: tuple[str, ...] = ()
        self._entries: list[tuple[QWidget, QLabel]] = []
        self.setMinimumWidth(1)

    def show_stack(self, stack: Stack | None, waiting: bool = False) -> None:
        """Explain the colours of a device; muted while other figures are waited for."""
        entries = _explained(stack)
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
            cell.setToolTip(plain_tip(entry.said))
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
        self._shown: tuple[Piece, ...] = ()

    def show_stack(self, stack: Stack | None) -> None:
        """Show the parts of a device."""
        pieces = stack.pieces if stack else ()
        if pieces == self._shown:
            return
        self._shown = pieces
        clear(self._grid)
        for number, piece in enumerate(pieces):
            size = text(formats.size(piece.size))
            size.setAlignment(Qt.AlignmentFlag.AlignRight)
            note = f"{piece.source}: {piece.note}" if piece.note else piece.source
            source = Elided(note, "muted")
            source.setToolTip(plain_tip(note))
            cells = (
                Swatch(piece.colour),
                text(piece.name),
                size,
                text(piece.band or "exact", "muted"),
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
        stacks = stacks_of(report)
        self.bars.show_stacks(stacks, waiting, note)
        fullest = max(stacks, key=lambda stack: stack.needed - stack.room, default=None)
        computing = "Computing…" if waiting else ""
        set_text(self.summary, unbroken(computing or summary(report)))
        set_tone(self.summary, "muted" if waiting or fullest is None or fullest.fits else "bad")
        self.summary.setVisible(bool(stacks))
        self.legend.show_stack(fullest, waiting)
        self.legend.setVisible(bool(stacks))
