"""Monitor: memory, KV cache and token rates over time, and the requests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QMenu

from engine_host.protocol.engines import Request
from engine_host.protocol.language import tr
from sndr_gui.host.state import OPEN_REQUESTS
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.monitor.graphs import GPUS
from sndr_gui.models.monitor.page import RANGES, MonitorModel
from sndr_gui.models.window.throttle import Throttle
from sndr_gui.views.engine.choice import EngineChoice
from sndr_gui.views.graphs.time_bar import TimeBar
from sndr_gui.views.monitor.capture import CaptureLine
from sndr_gui.views.monitor.graphs import GraphGrid
from sndr_gui.views.monitor.inspector import InspectorDialog
from sndr_gui.views.monitor.kv_pool import KvPane
from sndr_gui.views.monitor.lens import LensPane
from sndr_gui.views.monitor.marks import MarksLegend
from sndr_gui.views.monitor.memory import MemoryPane
from sndr_gui.views.monitor.playback import PlaybackLine
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import SegmentedControl, copy
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.labels import ElidedLabel, set_text, set_tone
from sndr_gui.views.widgets.layout import row, show_part
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.widgets.problems import Findings
from sndr_gui.views.widgets.tables import Table

# The column that only several engines need.
_ENGINE, _ACCEPTED = 2, 11
# The least width of the choice of an engine, in pixels: a small window cuts its names.
_ONLY = 72
REQUESTS, LENS, MEMORY, POOL = PANES = (tr("Requests"), tr("Prefix lens"), tr("Memory"), "KV")
_HINTS = (
    tr("Requests to the endpoint"),
    tr("What of each prompt came from the prefix cache, and where it diverged from the turn before"),
    tr("Who holds the memory of GPUs and RAM; engines by their parts"),
    tr("KV cache pool: used, prefix cache, free"),
)
_NO_REQUESTS = tr(
    "No requests yet. Every request to the endpoint appears here: from Chat, your editor or curl."
)
_NONE_THEN = tr("No request of that moment is known: the newest 200 are kept.")


class MonitorView(Page):
    """The page of graphs and requests."""

    def __init__(self, model: MonitorModel, open_log: Callable[[str, float], object]) -> None:
        """`open_log` shows the log of a source, the empty one for all, at a time."""
        super().__init__(tr("Monitor"), scrolls=True)
        self.model = model
        self._chosen = ""
        self.ranges = SegmentedControl(tuple(name for name, _ in RANGES), tr("Time shown"))
        for number, choice in enumerate(self.ranges.buttons):
            choice.clicked.connect(self._on_range)
            choice.setToolTip(plain_tooltip(tr("Show the last {ranges}", ranges=RANGES[number][0])))
        self.tools.addWidget(self.ranges)
        self.choice = EngineChoice(model.session.state)
        self.below_header.addWidget(self.choice)
        self.playback = PlaybackLine(model.playback)
        self.body.addWidget(self.playback)
        self.graphs = GraphGrid(model, open_log)
        self.marks = MarksLegend(model.marks)
        self.energy = ElidedLabel("", "muted")
        self.energy.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.energy.hide()
        model.energy.changed.connect(self._show_energy)
        self.time = TimeBar(model.past, self, lambda: model.last_event)
        self.time.place_over_graphs()
        self.time.said.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        tools = row(self.graphs.sets, self.energy, self.time.words)
        tools.setStretchFactor(self.energy, 1)
        tools.setStretchFactor(self.time.words, 1)
        self.below_header.addLayout(tools)
        for choice in self.graphs.sets.buttons:
            choice.clicked.connect(self._on_set)
        self.body.addWidget(self.time)
        self.body.addWidget(self.marks)
        self.no_gpu = Findings(lambda _finding: None, lambda _fix: False)
        self.no_gpu.hide()
        self.body.addWidget(self.no_gpu)
        self.body.addWidget(self.graphs, 3)
        self.cancel = button(
            tr("Cancel request"),
            self._on_cancel,
            icon="x",
            hint=tr("Cancel the selected request (Delete)"),
            command="sndr requests cancel ID",
        )
        self.cancel.setEnabled(False)
        self.inspect = button(
            tr("Inspect"),
            self._on_inspect,
            icon="info",
            hint=tr("Show all that is known of the selected request (Enter)"),
            command="sndr requests show ID",
        )
        self.inspect.setEnabled(False)
        self.panes = SegmentedControl(PANES, tr("Shown below the graphs"))
        for choice, hint in zip(self.panes.buttons, _HINTS, strict=True):
            choice.clicked.connect(self._on_pane)
            choice.setToolTip(plain_tooltip(hint))
        # The page of a small window has no room for all of it beside the buttons.
        self._count = ElidedLabel("", "muted")
        self.only = ChoiceBox(tr("Requests of which engine"))
        self.only.setToolTip(tr("List the requests of one engine, or of all"))
        self.only.activated.connect(self._on_only)
        self.only.setMinimumWidth(_ONLY)
        bar = row(self.panes, self._count, self.only, self.inspect, self.cancel)
        bar.setStretchFactor(self._count, 1)
        # Where the count is hidden too, the panes keep their width.
        bar.addStretch(0)
        self.body.addLayout(bar)
        widths = {0: 84, 1: 92, 2: 130, 4: 140, 5: 76, 6: 100, 7: 104, 8: 72, 9: 72, 10: 72, 11: 84}
        self.table = Table(model.requests, tr("Requests"), 3, widths)  # type: ignore[arg-type]
        # Without a drafter nothing is ever accepted.
        self.table.leave_out(_ACCEPTED)
        self.table.setMinimumHeight(150)
        self.table.row_chosen.connect(self._on_chosen)
        self.table.doubleClicked.connect(self._on_inspect)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(self._on_menu)
        for keys, done in (
            (Qt.Key.Key_Return, self._on_inspect),
            (Qt.Key.Key_Enter, self._on_inspect),
            (Qt.Key.Key_Delete, self._on_cancel),
        ):
            shortcut = QShortcut(QKeySequence(keys), self.table)
            shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(done)
        self._empty = ElidedLabel(_NO_REQUESTS, "muted")
        self.body.addWidget(self.table, 2)
        self.body.addWidget(self._empty)
        self.keeping = CaptureLine(model.capture)
        self.body.addWidget(self.keeping)
        self.lens = LensPane(model.lens)
        self.lens.hide()
        self.body.addWidget(self.lens, 2)
        self.holders = MemoryPane(model.holders)
        self.pool = KvPane()
        for pane in (self.holders, self.pool):
            pane.hide()
            self.body.addWidget(pane)
        model.history_changed.connect(self._draw)
        model.sampled.connect(self._schedule_draw)
        model.requests_changed.connect(self._on_requests)
        model.changed.connect(self._on_changed)
        # Two drawings a second are plenty; samples may come faster.
        self._throttle = Throttle(self, 500, self._draw_live)
        self._on_requests()
        self._on_changed()

    def set_shown(self, shown: bool) -> None:
        self.graphs.set_shown(shown)
        self.model.set_shown(shown)
        self._show_parts(shown)
        if shown:
            self._draw()
            self._on_changed()

    def _on_range(self) -> None:
        self.model.set_range(RANGES[self.ranges.place][1])
        self._show_parts(self.isVisible())

    def _schedule_draw(self) -> None:
        if self.isVisible():
            self._throttle.trigger()

    def _on_requests(self) -> None:
        total = self.model.requests.total
        live = sum(1 for request in self.model.requests.shown if request.state in OPEN_REQUESTS)
        set_text(self._count, tr("{live} active, {total} shown", live=live, total=total) if total else "")
        engines = self.model.engines_of_requests()
        several = len(engines) > 2
        self.only.fill(engines, self.model.only)
        self.table.setColumnHidden(_ENGINE, not several or bool(self.model.only))
        self._show_pane()
        self._choose_again()
        self._show_cancel()

    def _choose_again(self) -> None:
        """Select the same request at its new place: a list with other rows than before has none selected."""
        place = self.model.requests.place_of(self._chosen)
        if place is not None and place != self.table.chosen:
            bar = self.table.verticalScrollBar()
            # Choosing scrolls to the row, and whoever reads others did not ask for that.
            before = bar.value()
            self.table.selectRow(place)
            bar.setValue(before)

    def _on_chosen(self, place: int) -> None:
        request = self.model.requests.row_at(place)
        self._chosen = request.id if request is not None else ""
        self._show_cancel()

    def _show_cancel(self) -> None:
        request = self.model.requests.row_at(self.table.chosen)
        live = self.model.past.at is None
        self.cancel.setEnabled(live and request is not None and request.state in OPEN_REQUESTS)
        self.inspect.setEnabled(request is not None)

    def _on_pane(self) -> None:
        self._show_pane()
        self._show_parts(self.isVisible())
        self._draw_pool()

    @property
    def pane(self) -> str:
        """The name of the pane below the graphs."""
        return PANES[self.panes.place]

    def _show_parts(self, shown: bool) -> None:
        """Have what is looked at read, and nothing else."""
        self.model.lens.set_shown(shown and self.pane == LENS)
        self.model.holders.set_shown(shown and self.pane == MEMORY)
        gpus = self.graphs.shown_set == GPUS
        no_gpu = self.model.no_gpu
        self.no_gpu.show_findings((no_gpu,) if gpus and no_gpu is not None else ())
        self.model.energy.set_shown(shown and gpus, self.model.range_seconds)

    def _on_set(self) -> None:
        self._show_parts(self.isVisible())
        self._show_energy()

    def _show_energy(self) -> None:
        said = self.model.energy.said if self.graphs.shown_set == GPUS else ""
        span = RANGES[self.ranges.place][0]
        set_text(self.energy, tr("{said}  ·  the last {span}", said=said, span=span) if said else "")
        show_part(self.energy, bool(said))

    def _draw(self) -> None:
        if self.isVisible():
            self.graphs.draw()
            self._draw_pool()

    def _draw_live(self) -> None:
        if self.isVisible():
            self.graphs.draw_in_turn()
            self._draw_pool()

    def _draw_pool(self) -> None:
        if self.pane == POOL:
            past = self.model.past.at is not None
            why = tr("Not measured at that moment.") if past else tr("No engine tells of its KV cache now.")
            self.pool.show_pool(self.model.pool(), why)

    def _show_pane(self) -> None:
        requests, total = self.pane == REQUESTS, self.model.requests.total
        self.lens.setVisible(self.pane == LENS)
        self.holders.setVisible(self.pane == MEMORY)
        self.pool.setVisible(self.pane == POOL)
        self.keeping.setVisible(requests)
        self.table.setVisible(requests and total > 0)
        self._empty.setVisible(requests and total == 0)
        past = self.model.past.at is not None
        set_text(self._empty, _NONE_THEN if past else _NO_REQUESTS)
        for part in (self.inspect, self.cancel, self._count):
            part.setVisible(requests)
        self.only.setVisible(requests and len(self.model.engines_of_requests()) > 2)

    def _on_inspect(self) -> None:
        request = self.model.requests.row_at(self.table.chosen)
        if request is not None:
            InspectorDialog(self, self.model.inspector(request), self.model.capture).open()

    def _on_menu(self, place: QPoint) -> None:
        request = self.model.requests.row_at(self.table.chosen)
        if request is not None:
            self.menu_of(request).popup(self.table.viewport().mapToGlobal(place))

    def menu_of(self, request: Request) -> QMenu:
        """Return the menu of the chosen request."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("Inspect"), self._on_inspect)
        cancel = menu.addAction(tr("Cancel request"), self._on_cancel)
        cancel.setEnabled(request.state in OPEN_REQUESTS)
        menu.addAction(tr("Copy its id"), partial(copy, request.id))
        return menu

    def _on_only(self, place: int) -> None:
        self.model.show_only(str(self.only.itemData(place)))

    def _on_cancel(self) -> None:
        request = self.model.requests.row_at(self.table.chosen)
        if request is not None and request.state in OPEN_REQUESTS:
            self.cancel.setEnabled(False)
            self.model.cancel(request)

    def _on_changed(self) -> None:
        stale = self.model.stale
        plain = self.model.subtitle
        set_text(self.subtitle, stale or plain)
        set_tone(self.subtitle, "warn" if stale else "muted")
