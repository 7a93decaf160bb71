"""The pool of KV cache as a map of squares, by share."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.models.monitor.kv_pool import KvPool
from sndr_gui.views.graphs.memory_bar import part_colour
from sndr_gui.views.widgets.labels import set_text, text

SQUARES = 400
_ROWS = 8
_HIGH = 96


class PoolMap(QWidget):
    """Squares: full ones are used, hatched ones kept, empty ones free."""

    def __init__(self) -> None:
        super().__init__()
        self.pool: KvPool | None = None
        self.setFixedHeight(_HIGH)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("KV cache, by share"))
        theme.notifier.changed.connect(self.update)

    def show_pool(self, pool: KvPool | None) -> None:
        """Draw this pool; none is drawn where it is not measured."""
        if pool == self.pool:
            return
        self.pool = pool
        said = tr("not measured") if pool is None else ". ".join(pool.sentences(SQUARES))
        self.setAccessibleDescription(said)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(400, _HIGH)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.pool is None:
            return
        used, kept = self.pool.squares(SQUARES)
        columns = SQUARES // _ROWS
        wide, high = self.width() / columns, self.height() / _ROWS
        full, ground = part_colour(1), theme.color("raised")
        hatched = QBrush(part_colour(1), Qt.BrushStyle.BDiagPattern)
        painter = QPainter(self)
        for place in range(SQUARES):
            # By columns, so that the pool fills from the left as a bar does.
            column, line = divmod(place, _ROWS)
            square = QRectF(column * wide, line * high, wide - 1.5, high - 1.5)
            painter.fillRect(square, ground)
            if place < used:
                painter.fillRect(square, full)
            elif place < used + kept:
                painter.fillRect(square, hatched)
        painter.end()


class KvPane(QWidget):
    """The map and the same in words; the curve is the graph of the set Engine."""

    def __init__(self) -> None:
        super().__init__()
        self.map = PoolMap()
        self.said = text("", "muted")
        self.said.setWordWrap(True)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.addWidget(self.map)
        lines.addWidget(self.said)
        lines.addStretch(1)

    def show_pool(self, pool: KvPool | None, why: str) -> None:
        """Show a pool; `why` says why there is none."""
        self.map.setVisible(pool is not None)
        self.map.show_pool(pool)
        set_text(self.said, why if pool is None else "\n".join(pool.sentences(SQUARES)))
