"""The graphs of Monitor: one set of them at a time, as many beside each other as there is room for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.kit.formats import shortened
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.monitor.graphs import ENGINE, GPUS, GRAPHS, KV, LATENCY, MACHINE, RATES, SETS, GraphRow
from sndr_gui.models.monitor.lines import split_name
from sndr_gui.models.monitor.marks import Bunch
from sndr_gui.models.monitor.page import MonitorModel
from sndr_gui.models.monitor.playback import told_of
from sndr_gui.views.graphs.card import GraphCard, load_graphs
from sndr_gui.views.widgets.copying import SegmentedControl
from sndr_gui.views.widgets.layout import GAP, room_of

_NARROW = 900
_HINTS = {
    ENGINE: tr("Memory, KV cache and tokens per second"),
    LATENCY: tr("Time to first token, time between tokens, prefix cache and drafts, requests"),
    GPUS: tr("Load, power, temperature, clocks, and what slows them down"),
    MACHINE: tr("CPU, RAM, disk and network"),
}


class GraphGrid(QWidget):
    """Cards with graphs; those of a set are made when it is first looked at, and hidden ones draw nothing."""

    def __init__(self, model: MonitorModel, open_log: Callable[[str, float], object]) -> None:
        super().__init__()
        self.model = model
        self._open_log = open_log
        self.sets = SegmentedControl(SETS, tr("Graphs shown"))
        for name, choice in zip(SETS, self.sets.buttons, strict=True):
            choice.setToolTip(plain_tooltip(_HINTS[name]))
            choice.clicked.connect(self._on_set)
        self.memory = GraphCard(tr("Memory used, GiB"), formats.size)
        self.kv = GraphCard(KV.title, KV.word)
        self.rates = GraphCard(RATES.title, RATES.word)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(GAP)
        self._cards: dict[str, tuple[GraphCard, ...]] = {ENGINE: (self.memory, self.kv, self.rates)}
        self._arranged: tuple[str, bool] | None = None
        self._asked = self._loaded = False
        self._waiting: list[tuple[GraphCard, Callable[[], None]]] = []
        self._turn = QTimer(self)
        self._turn.setSingleShot(True)
        self._turn.timeout.connect(self._draw_next)
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
            self._cards[self.shown_set] = tuple(GraphCard(row.title, row.word, row.about) for row in rows)
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
        self._waiting = []
        for card, draw in self._drawings():
            draw()
            self._mark(card)

    def draw_in_turn(self) -> None:
        """Draw a card at a time: what else waits, such as keys and clicks, comes in between."""
        self._waiting = self._drawings()
        self._turn.start()

    def _draw_next(self) -> None:
        if self._waiting and self.isVisible():
            card, draw = self._waiting.pop(0)
            draw()
            self._mark(card)
            self._turn.start()

    def _drawings(self) -> list[tuple[GraphCard, Callable[[], None]]]:
        """Return each card of the set that is shown with its drawing, of one moment."""
        model, seconds, now = self.model, float(self.model.range_seconds), self.model.past.now
        of = f", {shortened(model.engine.name)}" if model.several and model.engine is not None else ""
        at, unmeasured = model.past.at, model.unmeasured()
        if self._loaded:
            self._make()

        def show(card: GraphCard, row: GraphRow) -> None:
            lines = model.lines_of(row)
            title = row.title + (of if row.of_engine else "") + told_of(lines)
            card.show_lines(title, lines, seconds, now, at, model.within, unmeasured)

        def show_memory() -> None:
            memory = model.memory()
            vram = any(split_name(line.name)[0] == "" and "gpu." in line.name for line in memory)
            title = (tr("VRAM used, GiB") if vram else tr("RAM used, GiB")) + told_of(memory)
            self.memory.show_lines(title, memory, seconds, now, at, model.within, unmeasured)

        if self.shown_set != ENGINE:
            rows = zip(GRAPHS[self.shown_set], self.cards(), strict=True)
            return [(card, partial(show, card, row)) for row, card in rows]
        return [
            (self.memory, show_memory),
            (self.kv, partial(show, self.kv, KV)),
            (self.rates, partial(show, self.rates, RATES)),
        ]

    def _mark(self, card: GraphCard) -> None:
        card.show_marks(self.model.marks.shown())

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
                card.on_time(self.model.past.look_at)

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
        narrow = room_of(self) < _NARROW
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
