"""The strip of chips for this machine: how full each part is, and who holds it."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.home.machine import MachineModel, MachinePart
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import clear, column, row

_FULL = 0.9


class _Gauge(QWidget):
    """A thin bar: how much is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._share = 0.0
        self.setFixedHeight(4)
        theme.notifier.changed.connect(self.update)

    def show_share(self, share: float) -> None:
        """Draw this share, 0 to 1."""
        if share != self._share:
            self._share = share
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("line"))
        painter.drawRoundedRect(QRectF(0, 0, self.width(), 4), 2, 2)
        painter.setBrush(theme.color("warn" if self._share > _FULL else "accent"))
        painter.drawRoundedRect(QRectF(0, 0, self.width() * min(1.0, self._share), 4), 2, 2)
        painter.end()


class _Chip(QFrame):
    """One thing of the machine."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("inset")
        self._name: QLabel = text("", "muted")
        self._value: QLabel = text("")
        self._gauge = _Gauge()
        lines = QVBoxLayout(self)
        lines.setContentsMargins(10, 5, 10, 6)
        lines.setSpacing(3)
        lines.addLayout(row(self._name, self._value, spacing=8))
        lines.addWidget(self._gauge)

    def show_part(self, part: MachinePart) -> None:
        """Show one thing."""
        set_text(self._name, part.name)
        set_text(self._value, part.value)
        self._gauge.setVisible(part.share is not None)
        if part.share is not None:
            self._gauge.show_share(part.share)
        self.setToolTip(plain_tooltip(part.hint))
        self.setAccessibleName(f"{part.name}: {part.value}")
        self.setAccessibleDescription(part.hint)


class MachineStrip(QWidget):
    """One chip for each GPU, the main memory and each engine; opened, everything about each in words."""

    def __init__(self, model: MachineModel) -> None:
        super().__init__()
        self._model = model
        self._chips: list[_Chip] = []
        self._shown: tuple[MachinePart, ...] = ()
        self._narrow = False
        self.setAccessibleName(tr("This machine"))
        self._flow = Flow(spacing=8, lines=6, middle=False)
        self.details = button(
            tr("Details"), self._on_details, kind="flat", hint=tr("GPU processes and installed engines")
        )
        self.details.setAccessibleName(tr("Details of this machine"))
        self.details.setToolTip(tr("GPU processes and installed engines\nsndr status"))
        self.details.setCheckable(True)
        self.table = QFrame()
        self.table.setObjectName("inset")
        self._grid = QGridLayout(self.table)
        self._grid.setContentsMargins(12, 8, 12, 8)
        self._grid.setHorizontalSpacing(16)
        self._grid.setColumnStretch(1, 1)
        self.table.hide()
        line = row(self._flow, column(self.details, None))
        line.setStretch(0, 1)
        self.setLayout(column(line, self.table, spacing=8))
        model.changed.connect(self.refresh)
        self.refresh()

    def _on_details(self) -> None:
        self.table.setVisible(self.details.isChecked())

    def set_narrow(self, narrow: bool) -> None:
        """Leave the engines to the details where there is little room."""
        if narrow is not self._narrow:
            self._narrow = narrow
            self.refresh()

    def refresh(self) -> None:
        """Show the machine of now."""
        parts = self._model.parts()
        if len(parts) != len(self._chips):
            self._flow.clear()
            self._chips = []
            for _part in parts:
                chip = _Chip()
                self._chips.append(chip)
                self._flow.add(chip)
        for chip, part in zip(self._chips, parts, strict=True):
            chip.show_part(part)
            chip.setVisible(not (self._narrow and part.is_engine))
        if parts != self._shown:
            self._shown = parts
            clear(self._grid)
            for number, part in enumerate(parts):
                self._grid.addWidget(text(part.name, "muted"), number, 0, Qt.AlignmentFlag.AlignTop)
                self._grid.addWidget(text(part.sentence, wrap=True), number, 1)
