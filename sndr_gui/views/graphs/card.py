"""A card with one live graph; the graph library is read when the first one is looked at."""

from __future__ import annotations

import asyncio
import importlib
import math
import time
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import formats, theme
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.monitor.lines import Line
from sndr_gui.views.widgets.cards import BORDER, Card, EmptyState, card_margins
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import Dot, set_text, text
from sndr_gui.views.widgets.layout import row

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine_host.protocol.telemetry import Mark
    from sndr_gui.models.monitor.marks import Bunch
    from sndr_gui.models.monitor.unmeasured import Unmeasured
    from sndr_gui.views.graphs.plots import Graph


AXIS = 44
"""Width of the value axis of a graph, in pixels."""


def axis_margins() -> tuple[int, int]:
    """Return how far inside the edges of its card the time axis of a graph begins and ends, in pixels."""
    left, _top, right, _bottom = card_margins()
    return BORDER + left + AXIS, BORDER + right + 1


async def load_graphs() -> None:
    """Read the graph library in a thread: it takes half a second, and the window answers meanwhile."""
    await asyncio.to_thread(importlib.import_module, "pyqtgraph")


class _SeriesDot(Dot):
    """The colour of one line of a graph."""

    def __init__(self, number: int) -> None:
        super().__init__("accent", 9)
        self._number = number

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current().series
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(0, 0, 0, 0))
        painter.setBrush(QColor(colours[self._number % len(colours)]))
        painter.drawEllipse(1, 1, 7, 7)
        painter.end()


class _Picture(QStackedWidget):
    """The graph, or what stands in its place; it takes what the page leaves to it."""

    def sizeHint(self) -> QSize:
        # A graph would like to be 480 high, and the lists below it would be out of sight.
        return QSize(super().sizeHint().width(), self.minimumHeight())


class GraphCard(Card):
    """One graph with its title, its legend with newest values, and the reading under the pointer."""

    def __init__(self, title: str, word: Callable[[float], str], about: str = "") -> None:
        """`about`: who measured it, for the pointer on the title and for screen readers."""
        self._legend = Flow(spacing=14, lines=2)
        # A small window wraps the legend, or cuts it, rather than widening the page.
        self._legend.setMinimumWidth(1)
        super().__init__(title)
        self.title.setToolTip(plain_tooltip(about))
        self.setAccessibleDescription(about)
        self.body.addWidget(self._legend)
        self._word = word
        self._reading = text("", "muted")
        self._reading.setMinimumWidth(10)
        self._stack = _Picture()
        self._note = EmptyState("activity", "", tr("Loading the graphs…"))
        self._note.sentence.set_width(260)
        self._note.heading.hide()
        self._stack.addWidget(self._note)
        self.body.addWidget(self._stack, 1)
        self.body.setSpacing(4)
        self._stack.setMinimumHeight(120)
        self.graph: Graph | None = None
        self._open: Callable[[Bunch], None] | None = None
        self._names: tuple[str, ...] = ()
        self._values: list[tuple[Line, object]] = []

    def make_graph(self, scale: float, top: float | None) -> None:
        """Make the graph, when it is first looked at."""
        from sndr_gui.views.graphs.plots import Graph

        self.graph = Graph(self.title.text(), scale, top, self._word)
        self.graph.on_reading(self._on_reading)
        self.graph.on_mark(self._on_open)
        self._stack.addWidget(self.graph)

    def on_mark(self, open_mark: Callable[[Bunch], None]) -> None:
        """Call this with the mark that is clicked."""
        self._open = open_mark

    def on_time(self, look_at: Callable[[float], None]) -> None:
        """Call this with the time that is clicked."""
        if self.graph is not None:
            self.graph.on_time(look_at)

    def show_marks(self, marks: tuple[Mark, ...]) -> None:
        """Draw marks of what happened over the lines."""
        if self.graph is not None:
            self.graph.show_marks(marks)

    def _on_open(self, mark: Bunch) -> None:
        if self._open is not None:
            self._open(mark)

    def _on_reading(self, sentence: str) -> None:
        self.setToolTip(plain_tooltip(sentence))

    def show_lines(
        self,
        title: str,
        lines: list[Line],
        seconds: float,
        now: float | None = None,
        at: float | None = None,
        within: float = math.inf,
        unmeasured: tuple[Unmeasured, ...] = (),
    ) -> None:
        """Draw the lines, or say that there are none; what there is no colour for is counted in the title.

        `unmeasured` are the times in which nothing was, of which the graph says so.

        With `at` the legend tells the values of that time, `within` seconds, and the graph shows it.
        """
        measured = [line for line in lines if any(value is not None for value in line.values)]
        most = len(theme.current().series)
        set_text(
            self.title,
            tr("{title}  (and {measured} more)", title=title, measured=len(measured) - most)
            if len(measured) > most
            else title,
        )
        measured = measured[:most]
        self._show_legend(measured, at, within)
        if self.graph is None:
            return
        self._note.sentence.setText(tr("Nothing was measured in this time."))
        self._stack.setCurrentIndex(1 if measured else 0)
        if measured:
            shown = time.time() if now is None else now
            self.graph.show_lines(measured, seconds, shown, unmeasured, within)
            self.graph.show_time(at)

    def _show_legend(self, lines: list[Line], at: float | None, within: float) -> None:
        names = tuple(line.name for line in lines)
        if names != self._names:
            self._names = names
            self._legend.clear()
            self._values = []
            for number, line in enumerate(lines):
                name = text(line.title, "muted")
                name.setToolTip(plain_tooltip(tr("Measured by: {source}", source=line.source)))
                value = text("")
                self._values.append((line, value))
                entry = QWidget()
                entry.setLayout(row(_SeriesDot(number), name, value, spacing=6))
                self._legend.add(entry)
        for line, (_old, label) in zip(lines, self._values, strict=True):
            told = line.latest if at is None else line.value_at(at, within)
            shown = formats.UNMEASURED if told is None else self._word(told)
            set_text(label, shown)  # type: ignore[arg-type]
