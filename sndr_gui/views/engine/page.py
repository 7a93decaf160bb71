"""Engine: the stages of a start, what the engine reports, its patches, and what it was started with."""

import shlex
from collections.abc import Callable

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.kit.shortcuts import keys
from sndr_gui.models.engine.choice import command_of
from sndr_gui.models.engine.metrics import Metric
from sndr_gui.models.engine.page import EngineModel
from sndr_gui.models.engine.trends import TREND_SECONDS
from sndr_gui.models.window.throttle import Throttle
from sndr_gui.views.engine.again import StartAgain
from sndr_gui.views.engine.cards import (
    FactsCard,
    LatencyCard,
    PatchesCard,
    SettingsCard,
    SpeculationCard,
    StartCard,
)
from sndr_gui.views.engine.choice import EngineChoice
from sndr_gui.views.graphs.card import GraphCard, load_graphs
from sndr_gui.views.widgets.buttons import button, set_primary, tip
from sndr_gui.views.widgets.cards import EmptyState, ValueCard
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import set_text
from sndr_gui.views.widgets.layout import GAP, row
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.widgets.problems import ProblemBox
from sndr_gui.views.widgets.stop_button import StopButton

_EMPTY = {
    "connecting": tr("Starting the engine host"),
    "lost": tr("Engine host not connected"),
    "empty": tr("No engine runs"),
}
_EMPTY_HINT = tr(
    "Start a model to see the stages of its start, then its requests, KV cache, "
    "speed, latencies and draft tokens."
)
_DEMO = "sndr run --demo"
_NARROW = 900
_GRAPH_HEIGHT = 216


class EngineView(Page):
    """The page of one engine."""

    def __init__(
        self,
        model: EngineModel,
        open_launch: Callable[[], None],
        open_patches: Callable[[int | None], None],
        open_logs: Callable[[str], None],
        open_chat: Callable[[str], None],
    ) -> None:
        super().__init__(tr("Engine"), scrolls=True)
        self.model = model
        self._open_logs, self._open_chat = open_logs, open_chat
        self._arranged: tuple[object, ...] = ()
        self._measures = self._drafts = self._patched = False
        self._loading = False
        self._make_tools()
        self.launch = button(
            tr("Choose a model"), open_launch, kind="primary", icon="rocket", hint=tr("Open Launch")
        )
        self._try = CopyField(_DEMO, tr("equivalent command"))
        self._try.setFixedWidth(300)
        self.again = StartAgain(model.home.last, keys("relaunch"))
        self.empty = EmptyState("gauge", "", "", row(self.again, self.launch), self._try)
        self.failure = ProblemBox(apply_fix=model.actions.apply_fix)
        self.failure.log_wanted.connect(self._on_log)
        self.start = StartCard(model)
        self.cards: list[ValueCard] = []
        self._cards, self._grid = _grid()
        self.rates = GraphCard(tr("Tokens per second, all streams"), formats.rate)
        self.requests = GraphCard(tr("Requests"), formats.count)
        self.kv = GraphCard(tr("KV cache filled, %"), formats.percent)
        self.acceptance = GraphCard(
            tr("Acceptance length, tokens per step"), lambda value: formats.number(value, ".2f")
        )
        self.graphs = (self.rates, self.requests, self.kv, self.acceptance)
        self.trends, self._trends = _grid()
        for graph in self.graphs:
            graph.setFixedHeight(_GRAPH_HEIGHT)
        self.latencies = LatencyCard()
        self.speculation = SpeculationCard()
        self.patches = PatchesCard(open_patches)
        self.facts = FactsCard()
        self._lower_part, self._lower = _grid()
        self.settings = SettingsCard()
        # Where there is nothing else it has the whole page, and stands in its middle.
        self.body.addWidget(self.empty, 1000)
        for part in (
            self.failure,
            self.start,
            self._cards,
            self.trends,
            self._lower_part,
            self.settings,
        ):
            self.body.addWidget(part)
        self.body.addStretch(1)
        # Two drawings of the graphs a second are plenty.
        self._throttle = Throttle(self, 500, self._draw)
        model.changed.connect(self._on_changed)
        self.refresh()

    def _make_tools(self) -> None:
        model = self.model
        self.choice = EngineChoice(model.session.state, label=tr("Start"), ended=True)
        self.below_header.addWidget(self.choice)
        self.chat = button(tr("Chat"), self._on_chat, icon="message-square")
        self.log = button(tr("Log"), self._on_log, icon="terminal", hint=tr("Show the engine's log"))
        self.stop = StopButton(model.stop)
        self.relaunch = button(tr("Relaunch"), model.relaunch, kind="primary", shortcut=keys("relaunch"))
        for tool in (self.log, self.chat, self.stop, self.relaunch):
            self.tools.addWidget(tool)

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)
        if not shown:
            return
        if not self._loading:
            self._loading = True
            self.model.session.tasks.start(self._load_graphs(), "load the graphs")
        self.refresh()
        self._draw()

    async def _load_graphs(self) -> None:
        await load_graphs()
        for card, scale, top in zip(self.graphs, (1, 1, 100, 1), (None, None, 100.0, None), strict=True):
            card.make_graph(scale, top)
        self._draw()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _on_changed(self) -> None:
        # A page that nobody sees is drawn when it is shown.
        if self.isVisible():
            self.refresh()
            self._throttle.trigger()

    def _on_chat(self) -> None:
        if self.model.engine is not None:
            self._open_chat(self.model.engine.id)

    def _on_log(self) -> None:
        engine = self.model.engine
        self._open_logs(engine.id if engine else "host")

    def _arrange(self) -> None:
        """Put two cards beside each other, or one below the other in a small window; a lone one is wide."""
        narrow = self.width() < _NARROW
        wanted = (narrow, len(self.cards), self._measures, self._drafts, self._patched)
        if wanted == self._arranged:
            return
        self._arranged = wanted
        columns = 1 if narrow else 2
        measured: list[QWidget] = [self.latencies] if self._measures else []
        measured += [self.speculation] if self._measures and self._drafts else []
        measured += [self.patches] if self._patched else []
        graphs = self.graphs if self._drafts else self.graphs[:-1]
        for grid, parts in ((self._trends, graphs), (self._lower, (*measured, self.facts))):
            for place, part in enumerate(parts):
                alone = place == len(parts) - 1 and place % columns == 0
                grid.addWidget(part, *divmod(place, columns), 1, columns if alone else 1)
                # Qt would show it a turn of the loop later, when the rest has its places without it.
                part.show()
            grid.setColumnStretch(0, 1)
            grid.setColumnStretch(1, columns - 1)
        self.acceptance.setVisible(self._drafts)
        self.latencies.setVisible(self._measures)
        self.speculation.setVisible(self._measures and self._drafts)
        self.patches.setVisible(self._patched)
        # A line holds four cards, or three in a small window; the last two then share one.
        for place, card in enumerate(self.cards):
            line, across, wide = (*divmod(place, 4), 1)
            if narrow:
                line, across, wide = (place // 3, place % 3 * 2, 2) if place < 6 else (2, place % 2 * 3, 3)
            self._grid.addWidget(card, line, across, 1, wide)
            card.show()
        for place in range(6):
            self._grid.setColumnStretch(place, 1 if narrow or place < 4 else 0)

    def refresh(self) -> None:
        """Show the state of now."""
        model, mode = self.model, self.model.mode
        set_text(self.subtitle, model.subtitle)
        self._refresh_tools(mode)
        there = mode not in _EMPTY
        running = mode in ("running", "stopping")
        self.empty.setVisible(not there)
        for part in (self._lower_part, self.settings):
            part.setVisible(there)
        self.start.setVisible(there and not self._refused)
        self.failure.setVisible(mode == "failed")
        for part in (self._cards, self.trends):
            part.setVisible(running)
        if not there:
            set_text(self.empty.heading, _EMPTY[mode])
            again = self.again.refresh(mode == "empty")
            set_primary(self.launch, not again)
            hint = model.home.last.sentence() if again else _EMPTY_HINT
            self.empty.sentence.setText(hint if mode == "empty" else model.session.connection.sentence)
            self._try.set_content(model.home.last.command if again else _DEMO)
            for part in (self.launch, self._try):
                part.setVisible(mode == "empty")
            return
        self.start.refresh(mode)
        self._refresh_failure(mode)
        self._show_cards(model.cards() if running else ())
        self._measures, self._drafts = running, model.speculation() is not None
        self._patched = model.has_overlay
        self.latencies.show_rows(model.latencies(), model.latency_source)
        self.speculation.refresh(model)
        self.patches.refresh(model)
        self.facts.show_facts(model.facts(), model.command, model.argv)
        self.settings.show_facts(model.settings())
        self._arrange()

    def _draw(self) -> None:
        """Draw the graphs."""
        model = self.model
        if not self.trends.isVisible():
            return
        if self.requests.graph is not None and model.engine is not None:
            self.requests.graph.least = float(model.engine.plan.streams)
        for card, names in (
            (self.rates, ("decode_rate", "prefill_rate")),
            (self.requests, ("requests.running", "requests.waiting")),
            (self.kv, ("kv.share",)),
            (self.acceptance, ("acceptance_length",)),
        ):
            card.show_lines(card.title.text(), model.lines(*names), TREND_SECONDS)

    def _refresh_tools(self, mode: str) -> None:
        model = self.model
        if model.engine is not None:
            self.log.setToolTip(tip(tr("Show the engine's log"), "", f"sndr logs {model.engine.id}"))
        running = mode in ("running", "stopping")
        connected = model.session.connection.connected
        self._refresh_stop(mode == "stopping" or model.actions.stopping(model.engine))
        self.stop.setVisible(running)
        relaunching = model.actions.relaunching(model.engine)
        question = model.stopping.relaunch_question(model.engine)
        self.relaunch.setText(tr("Relaunching…") if relaunching else question or tr("Relaunch"))
        self.relaunch.setVisible(running or (mode == "failed" and model.can_relaunch))
        self.relaunch.setEnabled(connected and not relaunching)
        self.relaunch.setToolTip(tip(tr("Start the same again"), keys("relaunch"), model.command))
        self.chat.setVisible(mode == "running")
        option = ("--model",) if model.told_apart else ()
        command = command_of(model.session.state, model.engine, "chat", *option)
        self.chat.setToolTip(tip(tr("Chat with this model"), "", command))
        self.log.setVisible(mode not in _EMPTY and not self._refused)

    def _refresh_stop(self, stopping: bool) -> None:
        model = self.model
        question = model.stopping.question(model.engine)
        self.stop.show_state(question, stopping, model.session.connection.connected, model.told_apart)
        if model.engine is not None:
            self.stop.show_equivalent_command(shlex.join(["sndr", "stop", model.engine.name]))

    @property
    def _refused(self) -> bool:
        """True for a start of which nothing ever ran: it has no stages and no log."""
        return self.model.engine is not None and self.model.engine.was_refused

    def _refresh_failure(self, mode: str) -> None:
        if mode == "failed" and self.model.engine is not None:
            self.failure.show_end(self.model.engine)

    def _show_cards(self, values: tuple[Metric, ...]) -> None:
        while len(self.cards) < len(values):
            self.cards.append(ValueCard(""))
        for card, value in zip(self.cards, values, strict=False):
            card.show_value(value.caption, value.value, value.note, value.why)


def _grid() -> tuple[QWidget, QGridLayout]:
    """Return a part of the page whose cards stand in a grid."""
    part = QWidget()
    grid = QGridLayout(part)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setSpacing(GAP)
    return part, grid
