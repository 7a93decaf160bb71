"""The graphs of Monitor: one set of them at a time, as many beside each other as there is room for."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from sndr_gui.kit import formats
from sndr_gui.kit.formats import shortened
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.monitor.graphs import ENGINE, GRAPHS, KV, RATES, SETS
from sndr_gui.models.monitor.lines import split_name
from sndr_gui.models.monitor.marks import Bunch
from sndr_gui.models.monitor.page import MonitorModel
from sndr_gui.models.monitor.playback import told_of
from sndr_gui.views.graphs.card import GraphCard, load_graphs
from sndr_gui.views.widgets.copying import SegmentedControl
from sndr_gui.views.widgets.layout import GAP

_NARROW = 900
_HINTS = {
    "Engine": "Memory, KV cache and tokens per second",
    "Latency": "Time to first token, time between tokens, prefix cache and drafts, requests",
    "GPUs": "Load, power, temperature, clocks, and what slows them down",
    "Machine": "CPU, RAM, disk and network",
}


class GraphGrid(QWidget):
    """Cards with graphs; those of a set are made when it is first looked at, and hidden ones draw nothing."""

    def __init__(self, model: MonitorModel, open_log: Callable[[str, float], object]) -> None:
        super().__init__()
        self.model = model
        self._open_log = open_log
        self.sets = SegmentedControl(SETS, "Graphs shown")
        for name, choice in zip(SETS, self.sets.buttons, strict=True):
            choice.setToolTip(plain_tooltip(_HINTS[name]))
            choice.clicked.connect(self._on_set)
        self.memory = GraphCard("Memory used, GiB", formats.size)
        self.kv = GraphCard(KV.title, KV.word)
        self.rates = GraphCard(RATES.title, RATES.word)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(GAP)
        self._cards: dict[str, tuple[GraphCard, ...]] = {ENGINE: (self.memory, self.kv, self.rates)}
        self._arranged: tuple[str, bool] | None = None
        self._asked = self._loaded = False
        self._arrange()
        model.marks.changed.connect(self._on_marks)

    def _on_marks(self) -> None:
        if self.isVisible():
            self.draw_marks()

    @property
    def shown_set(self) -> str:
        """The name of the set that is shown."""
        return SETS[self.sets.place]

    def cards(self) -> tuple[GraphCard, ...]:
        """Return the cards of the set that is shown."""
        if self.shown_set not in self._cards:
            rows = GRAPHS[self.shown_set]
            self._cards[self.shown_set] = tuple(GraphCard(row.title, row.word) for row in rows)
        return self._cards[self.shown_set]

    def set_shown(self, shown: bool) -> None:
        """Load the library of graphs when they are first looked at."""
        if shown and not self._asked:
            self._asked = True
            self.model.session.tasks.start(self._load(), "load the graphs")

    async def _load(self) -> None:
        await load_graphs()
        self._loaded = True
        self.draw()

    def draw(self) -> None:
        """Draw the set that is shown."""
        model, seconds, now = self.model, float(self.model.range_seconds), time.time()
        of = f", {shortened(model.engine.name)}" if model.several and model.engine is not None else ""
        if self._loaded:
            self._make()
        if self.shown_set != ENGINE:
            for row, card in zip(GRAPHS[self.shown_set], self.cards(), strict=True):
                lines = model.lines_of(row)
                title = row.title + (of if row.of_engine else "") + told_of(lines)
                card.show_lines(title, lines, seconds, now)
            self.draw_marks()
            return
        memory = model.memory()
        vram = any(split_name(line.name)[0] == "" and "gpu." in line.name for line in memory)
        title = ("VRAM used, GiB" if vram else "RAM used, GiB") + told_of(memory)
        self.memory.show_lines(title, memory, seconds, now)
        for row, card in ((KV, self.kv), (RATES, self.rates)):
            card.show_lines(row.title + of, model.lines_of(row), seconds, now)
        self.draw_marks()

    def draw_marks(self) -> None:
        """Draw what happened over the graphs."""
        marks = self.model.marks.shown()
        for card in self.cards():
            card.show_marks(marks)

    def _make(self) -> None:
        rows = GRAPHS.get(self.shown_set)
        scales = ((1 / 2**30, None), (KV.scale, KV.top), (RATES.scale, RATES.top))
        for card, (scale, top) in zip(
            self.cards(), scales if rows is None else [(row.scale, row.top) for row in rows], strict=True
        ):
            if card.graph is None:
                card.make_graph(scale, top)
                card.on_mark(self._on_mark)

    def _on_mark(self, bunch: Bunch) -> None:
        gravest = bunch.marks[0]
        self._open_log(gravest.engine, gravest.at)

    def _on_set(self) -> None:
        self._arrange()
        self.draw()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Put two graphs beside each other, or each over the whole width of a small window."""
        narrow = self.width() < _NARROW
        if (self.shown_set, narrow) == self._arranged:
            return
        self._arranged = (self.shown_set, narrow)
        cards, across = self.cards(), 1 if narrow else 2
        for place, card in enumerate(cards):
            alone = place == len(cards) - 1 and place % across == 0
            self._grid.addWidget(card, place // across, place % across, 1, across if alone else 1)
        # Not before they have a place here: on its own a card would be a window.
        for several in self._cards.values():
            for card in several:
                card.setVisible(several is cards)
        for place in (0, 1):
            self._grid.setColumnStretch(place, 0 if narrow and place else 1)
