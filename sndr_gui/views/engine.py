"""Engine: the stages of a start, what the engine reports, its patches, and what it was started with."""

import time
from collections.abc import Callable

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QComboBox, QGridLayout, QWidget

from sndr_gui.engine import DECODE, KV, EngineModel, Fact, LatencyRow
from sndr_gui.readings import Value
from sndr_gui.trends import TREND_SECONDS
from sndr_gui.views.bars import ShareBars
from sndr_gui.views.copying import CommandLine
from sndr_gui.views.parts import (
    GAP,
    Card,
    Elided,
    EmptyState,
    Page,
    ValueCard,
    button,
    clear,
    column,
    restyle,
    set_text,
    text,
)
from sndr_gui.views.problems import ProblemBox
from sndr_gui.views.stages import StageList
from sndr_gui.views.trend import Trend

_EMPTY = {
    "connecting": "Starting the engine host",
    "lost": "The engine host is away",
    "empty": "No engine was started yet",
}
_NARROW = 900


class EngineView(Page):
    """The page of one engine."""

    def __init__(
        self,
        model: EngineModel,
        open_launch: Callable[[], None],
        open_patches: Callable[[], None],
        open_logs: Callable[[str], None],
        open_chat: Callable[[], None],
    ) -> None:
        super().__init__("Engine", scrolls=True)
        self.model = model
        self._open_logs = open_logs
        self._narrow: bool | None = None
        self.starts = QComboBox()
        self.starts.setAccessibleName("Which start is shown")
        self.starts.setToolTip("Look at an earlier start")
        self.starts.setMaximumWidth(320)
        self.starts.activated.connect(self._on_chosen)
        self.chat = button("Chat", open_chat, icon="message-square", hint="Ask this engine")
        self.log = button("Log", self._on_log, icon="terminal", hint="What the engine printed")
        self.stop = button("Stop", model.home.stop, hint="Finish what runs, then stop", command="sndr stop")
        self.relaunch = button("Relaunch", model.home.relaunch, kind="primary", hint="Start the same again")
        for tool in (self.starts, self.log, self.chat, self.stop, self.relaunch):
            self.tools.addWidget(tool)
        self.empty = EmptyState(
            "gauge", "", "", button("Choose a model", open_launch, kind="primary", icon="rocket")
        )
        self.failure = ProblemBox()
        self.failure.mended.connect(model.actions.mend)
        self.failure.log.show()
        self.failure.log_wanted.connect(self._on_log)
        self.start = _StartCard(model)
        self.cards: list[ValueCard] = []
        self._cards = QWidget()
        self._grid = QGridLayout(self._cards)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(GAP)
        self.decode = _TrendCard(
            "Decode, all streams, tokens a second", "Decode rate of the last five minutes"
        )
        self.kv = _TrendCard("KV cache filled, %", "KV cache of the last five minutes")
        self.trends = QWidget()
        self._trends = QGridLayout(self.trends)
        self._trends.setContentsMargins(0, 0, 0, 0)
        self._trends.setSpacing(GAP)
        self.latencies = _LatencyCard()
        self.speculation = _SpeculationCard()
        self.patches = _PatchesCard(open_patches)
        self.facts = _FactsCard()
        self._lower = QGridLayout()
        self._lower.setSpacing(GAP)
        self.settings = _SettingsCard()
        for part in (self.empty, self.failure, self.start, self._cards, self.trends):
            self.body.addWidget(part)
        self.body.addLayout(self._lower)
        self.body.addWidget(self.settings)
        self.body.addStretch(1)
        model.changed.connect(self.refresh)
        self._arrange(False)
        self.refresh()

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)
        if shown:
            self.refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(self.width() < _NARROW)

    def _on_log(self) -> None:
        engine = self.model.engine
        self._open_logs(engine.id if engine else "host")

    def _on_chosen(self, place: int) -> None:
        self.model.choose(str(self.starts.itemData(place)))

    def _arrange(self, narrow: bool) -> None:
        """Two cards beside each other, or one below the other in a small window."""
        if narrow is self._narrow:
            return
        self._narrow = narrow
        for grid, parts in (
            (self._trends, (self.decode, self.kv)),
            (self._lower, (self.latencies, self.speculation, self.patches, self.facts)),
        ):
            for place, part in enumerate(parts):
                line, across = (place, 0) if narrow else divmod(place, 2)
                grid.addWidget(part, line, across)
            grid.setColumnStretch(0, 1)
            grid.setColumnStretch(1, 0 if narrow else 1)
        self._place_cards()

    def _place_cards(self) -> None:
        columns = 2 if self._narrow else (3 if len(self.cards) > 4 else 4)
        for place, card in enumerate(self.cards):
            line, across = divmod(place, columns)
            self._grid.addWidget(card, line, across)
        for across in range(4):
            self._grid.setColumnStretch(across, 1 if across < columns else 0)

    def refresh(self) -> None:
        """Show the state of now."""
        model, mode = self.model, self.model.mode
        set_text(self.subtitle, model.subtitle)
        self._refresh_tools(mode)
        there = mode not in _EMPTY
        self.empty.setVisible(not there)
        for part in (self.start, self._cards, self.patches, self.facts, self.settings):
            part.setVisible(there)
        self.failure.setVisible(mode == "failed")
        running = mode in ("running", "stopping")
        self.trends.setVisible(running and model.newest)
        if not there:
            set_text(self.empty.heading, _EMPTY[mode])
            self.empty.sentence.setText(
                "Start a model: this page then shows each stage of its start, and what the engine reports."
                if mode == "empty"
                else model.session.link.sentence
            )
            self.latencies.hide()
            self.speculation.hide()
            return
        self.start.refresh(mode)
        self._refresh_failure(mode)
        self._show_cards(model.cards())
        if running:
            self.decode.trend.show_points(list(model.trends.points(DECODE)), time.time())
            filled = [(at, None if share is None else 100 * share) for at, share in model.trends.points(KV)]
            self.kv.trend.show_points(filled, time.time())
        self.latencies.show_rows(model.latencies())
        self.speculation.refresh(model)
        self.patches.refresh(model)
        self.facts.show_facts(model.facts(), model.command, model.argv)
        self.settings.show_facts(model.settings())

    def _refresh_tools(self, mode: str) -> None:
        model = self.model
        engines = model.engines()
        titles = [model.title_of(engine) for engine in engines]
        if titles != [self.starts.itemText(place) for place in range(self.starts.count())]:
            self.starts.clear()
            for engine, title in zip(engines, titles, strict=True):
                self.starts.addItem(title, engine.id)
        if model.engine is not None:
            self.starts.setCurrentIndex(self.starts.findData(model.engine.id))
        self.starts.setVisible(len(engines) > 1)
        connected = model.session.link.connected
        stopping = mode == "stopping" or model.actions.pending("stop")
        label = "Stopping…" if stopping else model.home.confirming or "Stop"
        if self.stop.text() != label:
            self.stop.setText(label)
            self.stop.setAccessibleName(label)
            self.stop.setProperty("danger", "true" if model.home.confirming else "")
            restyle(self.stop)
        self.stop.setVisible(model.newest and mode in ("running", "stopping"))
        self.stop.setEnabled(connected and not stopping)
        relaunching = model.actions.pending("relaunch")
        self.relaunch.setText("Relaunching…" if relaunching else "Relaunch")
        self.relaunch.setVisible(model.newest and mode in ("running", "stopping", "failed", "ended"))
        self.relaunch.setEnabled(connected and not relaunching)
        self.relaunch.setToolTip(f"Start the same again  (Ctrl+R)\n{model.command}")
        self.chat.setVisible(model.newest and mode == "running")
        self.log.setVisible(mode not in _EMPTY)

    def _refresh_failure(self, mode: str) -> None:
        engine, problem = self.model.engine, self.model.problem()
        if mode != "failed" or engine is None:
            return
        if problem is not None:
            self.failure.show_problem(problem, engine.last_lines)
        else:
            self.failure.show_sentence(f"{engine.name} ended.", "", engine.last_lines)

    def _show_cards(self, values: tuple[Value, ...]) -> None:
        while len(self.cards) < len(values):
            self.cards.append(ValueCard(""))
            self._place_cards()
        for place, card in enumerate(self.cards):
            card.setVisible(place < len(values))
        for card, value in zip(self.cards, values, strict=False):
            card.show_value(value.caption, value.value, value.note)


class _TrendCard(Card):
    """One line over the last minutes."""

    def __init__(self, title: str, name: str) -> None:
        super().__init__(title)
        self.trend = Trend(name, TREND_SECONDS)
        self.body.addWidget(self.trend, 1)
        self.setMinimumHeight(170)
        self.setMaximumHeight(260)


class _StartCard(Card):
    """The stages of the start; folded away once the engine is ready."""

    def __init__(self, model: EngineModel) -> None:
        self._age = text("", "muted")
        self.fold = button("Show stages", self._on_fold, kind="flat")
        self.fold.setCheckable(True)
        self.cancel = button("Cancel", model.cancel, hint="Give up this start", command="sndr stop --now")
        self.cancel.setAccessibleName("Cancel the start")
        super().__init__(" ", self._age, self.fold, self.cancel)
        self._model = model
        self.stages = StageList()
        self.body.addWidget(self.stages)

    def _on_fold(self) -> None:
        self.refresh(self._model.mode)

    def refresh(self, mode: str) -> None:
        """Show how far the start is, or how it went."""
        model = self._model
        starting = mode == "starting"
        set_text(self.title, model.start_title)
        set_text(self._age, model.start_age)
        self._age.setVisible(starting)
        engine = model.engine
        cancelling = model.actions.pending("stop") or (
            engine is not None and model.actions.pending(f"cancel {engine.job}")
        )
        self.cancel.setText("Cancelling…" if cancelling else "Cancel")
        self.cancel.setEnabled(not cancelling)
        self.cancel.setVisible(starting)
        folds = mode in ("running", "stopping", "ended")
        self.fold.setVisible(folds)
        opened = self.fold.isChecked()
        self.fold.setText("Hide stages" if opened else "Show stages")
        self.stages.setVisible(opened or not folds)
        self.stages.show_stages(model.stages())


class _LatencyCard(Card):
    """The engine's own histograms."""

    def __init__(self) -> None:
        super().__init__("Latencies")
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(18)
        self._grid.setVerticalSpacing(6)
        self._shown: tuple[LatencyRow, ...] = ()
        self.body.addLayout(self._grid)
        self.body.addWidget(
            text("Since the start, in the engine; quantiles are read from its buckets.", "muted", wrap=True)
        )
        self.body.addStretch(1)

    def show_rows(self, rows: tuple[LatencyRow, ...]) -> None:
        """Show these latencies; nothing where the engine has none."""
        self.setVisible(bool(rows))
        if rows == self._shown:
            return
        self._shown = rows
        clear(self._grid)
        for across, heading in enumerate(("", "median", "95 %", "mean", "count")):
            self._grid.addWidget(text(heading, "muted"), 0, across)
        for line, entry in enumerate(rows, start=1):
            name = text(entry.name)
            name.setToolTip(entry.about)
            name.setAccessibleName(f"{entry.about}: median {entry.p50}, 95 % {entry.p95}, mean {entry.mean}")
            for across, label in enumerate(
                (name, text(entry.p50), text(entry.p95), text(entry.mean), text(entry.count, "muted"))
            ):
                self._grid.addWidget(label, line, across)
        self._grid.setColumnStretch(0, 1)


class _SpeculationCard(Card):
    """How many of the drafts were right, and at which place."""

    def __init__(self) -> None:
        super().__init__("Speculation")
        self._sentence = text("", wrap=True)
        self.bars = ShareBars("Share of drafts accepted by position")
        self._about = text("Share of drafts accepted at draft token 1, 2, …", "muted", wrap=True)
        for part in (self._sentence, self.bars, self._about):
            self.body.addWidget(part)
        self.body.addStretch(1)

    def refresh(self, model: EngineModel) -> None:
        """Show how drafts did; nothing where nothing is drafted."""
        found = model.speculation()
        self.setVisible(found is not None and model.readings is not None)
        if found is None:
            return
        set_text(self.title, f"Speculation: {found.method}")
        set_text(self._sentence, found.sentence)
        for part in (self.bars, self._about):
            part.setVisible(bool(found.by_position))
        self.bars.show_shares(found.by_position)


class _PatchesCard(Card):
    """What took effect in which process, in a sentence."""

    def __init__(self, open_patches: Callable[[], None]) -> None:
        self.open = button("Open Patches", open_patches, icon="layers", kind="flat")
        super().__init__("Patches", self.open)
        self._sentence = text("", wrap=True)
        self._grid = QGridLayout()
        self._grid.setVerticalSpacing(4)
        self._shown: tuple[tuple[str, str], ...] = ()
        self.body.addWidget(self._sentence)
        self.body.addLayout(self._grid)
        self.body.addStretch(1)

    def refresh(self, model: EngineModel) -> None:
        """Show the apply summary of now."""
        set_text(self._sentence, model.patched)
        left_out = model.left_out()
        if left_out != self._shown:
            self._shown = left_out
            clear(self._grid)
            for line, (name, why) in enumerate(left_out):
                self._grid.addWidget(text(name, "muted"), line, 0)
                self._grid.addWidget(Elided(why, "muted"), line, 1)
            self._grid.setColumnStretch(1, 1)


class _FactsCard(Card):
    """What runs, and the two command lines: ours, and the engine's own."""

    def __init__(self) -> None:
        super().__init__("What was started")
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(18)
        self._grid.setVerticalSpacing(4)
        self._shown: tuple[Fact, ...] = ()
        self._command = CommandLine(what="the command line that starts the same")
        self._argv = CommandLine(what="the command line of the engine itself")
        self.body.addLayout(self._grid)
        self.body.addLayout(column(text("The same from the command line", "muted"), self._command, spacing=4))
        self.body.addLayout(column(text("The engine's own command line", "muted"), self._argv, spacing=4))
        self.body.addStretch(1)

    def show_facts(self, facts: tuple[Fact, ...], command: str, argv: str) -> None:
        """Show what a start is."""
        self._command.set_content(command)
        self._argv.set_content(argv)
        if facts != self._shown:
            self._shown = facts
            _fill(self._grid, facts)


class _SettingsCard(Card):
    """Every setting of the start with the layer that set it."""

    def __init__(self) -> None:
        self.fold = button("Show", self._on_fold, kind="flat")
        self.fold.setCheckable(True)
        self.fold.setAccessibleName("Show the settings of this start")
        super().__init__("Settings of this start", self.fold)
        self._inner = QWidget()
        self._grid = QGridLayout(self._inner)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(18)
        self._grid.setVerticalSpacing(4)
        self._shown: tuple[Fact, ...] = ()
        self._inner.hide()
        self.body.addWidget(self._inner)

    def _on_fold(self) -> None:
        self._inner.setVisible(self.fold.isChecked())
        self.fold.setText("Hide" if self.fold.isChecked() else "Show")

    def show_facts(self, facts: tuple[Fact, ...]) -> None:
        """Show these settings."""
        if facts == self._shown:
            return
        self._shown = facts
        clear(self._grid)
        for line, fact in enumerate(facts):
            self._grid.addWidget(text(fact.name, "muted"), line, 0)
            self._grid.addWidget(Elided(fact.value, name="mono"), line, 1)
            self._grid.addWidget(Elided(fact.about, "muted"), line, 2)
        self._grid.setColumnStretch(1, 2)
        self._grid.setColumnStretch(2, 3)


def _fill(grid: QGridLayout, facts: tuple[Fact, ...]) -> None:
    clear(grid)
    for line, fact in enumerate(facts):
        value = Elided(fact.value)
        value.setToolTip(fact.about)
        value.setAccessibleName(f"{fact.name}: {fact.value}")
        grid.addWidget(text(fact.name, "muted"), line, 0)
        grid.addWidget(value, line, 1)
    grid.setColumnStretch(1, 1)
