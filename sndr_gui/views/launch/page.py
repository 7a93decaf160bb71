"""Launch: this machine, the presets and models, the chosen one with what it takes, and the start."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QSizePolicy,
    QStackedWidget,
    QWidget,
)

from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import Verdict
from sndr_gui.kit.look.level import chosen
from sndr_gui.kit.shortcuts import keys
from sndr_gui.models.home.machine import MachineModel
from sndr_gui.models.launch.fixes import LaunchFixes
from sndr_gui.models.launch.page import LaunchModel, ListKind
from sndr_gui.models.window.throttle import Throttle
from sndr_gui.views.engine.installations import InstallCard
from sndr_gui.views.fit.notes import AdviceCard, ChangesCard, SpeedCard
from sndr_gui.views.launch.form import FormCard, ModelHead
from sndr_gui.views.launch.machine_strip import MachineStrip
from sndr_gui.views.launch.memory import MemoryCard
from sndr_gui.views.launch.placement import PlacementCard
from sndr_gui.views.launch.plan import PlanCard
from sndr_gui.views.launch.preset_card import PresetFacts, PresetHead
from sndr_gui.views.launch.preset_list import PresetList
from sndr_gui.views.launch.start import OutcomeCard, StartBar
from sndr_gui.views.widgets.buttons import button, keep_to_paths
from sndr_gui.views.widgets.cards import EmptyState
from sndr_gui.views.widgets.copying import SegmentedControl
from sndr_gui.views.widgets.labels import set_text
from sndr_gui.views.widgets.layout import GAP, HeightForWidthLayout, column, row, scrolling
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.widgets.tables import Table

_KINDS = tuple(ListKind)
_NARROW = 900


class LaunchView(Page):
    """The page that starts engines.

    Signals:
        edit_requested: the id of a preset to change, or to make one's own
        fit_requested: the id of a preset to look at on any hardware
    """

    edit_requested = Signal(str)
    fit_requested = Signal(str)

    def __init__(
        self,
        model: LaunchModel,
        machine: MachineModel,
        open_chat: Callable[[str], None],
        open_log: Callable[[str], None],
    ) -> None:
        super().__init__(tr("Launch"))
        self.model, self._machine = model, machine
        self.filter = QLineEdit()
        self.filter.setClearButtonEnabled(True)
        self.filter.setFixedWidth(230)
        self.filter.textChanged.connect(self._on_filter)
        self.filter.installEventFilter(self)
        self.tools.addWidget(self.filter)
        self.machine = MachineStrip(machine)
        self.body.addWidget(self.machine)
        self.switcher = SegmentedControl(tuple(kind.value for kind in _KINDS), tr("List"))
        for made in self.switcher.buttons:
            made.clicked.connect(self._on_switched)
        self.presets = PresetList(model.presets)
        self.presets.chosen.connect(model.select_preset)
        self.presets.clear_filters.clicked.connect(self.filter.clear)
        self.table = Table(model.models.rows, tr("Models"), 0, {1: 74, 2: 84, 3: 76, 4: 150})  # type: ignore[arg-type]
        self.table.fit({1: 90, 2: 100, 3: 90, 4: 150})
        self.table.row_chosen.connect(self._on_row)
        self.lists = QStackedWidget()
        self.lists.addWidget(self.presets)
        self.lists.addWidget(self._models())
        # The hint of a page that is not shown must not take the panel's room.
        self.lists.setMinimumWidth(240)
        self.lists.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.preset = PresetHead(model, self.fit_requested.emit, self.edit_requested.emit)
        self.about = ModelHead(model)
        self.outcome = OutcomeCard(model, open_chat, open_log)
        self.placement = PlacementCard(model)
        self.install = InstallCard(model.installations)
        self.sizes = MemoryCard(model)
        fixes = LaunchFixes(model)
        self.changes = ChangesCard(fixes.apply_change, fixes.can_change)
        self.advice = AdviceCard()
        self.speed = SpeedCard()
        self.form = FormCard(model)
        chosen.changed.connect(self.form.refresh)
        self.facts = PresetFacts(model)
        self.plan = PlanCard(model, fixes)
        self.panel = scrolling(self._canvas())
        self.panel.setMinimumWidth(320)
        self.nothing = EmptyState(
            "rocket", tr("Nothing selected"), tr("Select a preset or a model in the list.")
        )
        self.right = QStackedWidget()
        self.right.addWidget(self.panel)
        self.right.addWidget(self.nothing)
        self.nothing.sentence.set_width(260)
        split = QHBoxLayout()
        split.setSpacing(GAP)
        split.addLayout(column(self._list_head(), self.lists, spacing=8), 10)
        split.addWidget(self.right, 12)
        self.body.addLayout(split, 1)
        self._about: dict[str, str] | None = None
        # The seconds of a start count up without any event.
        self._clock = QTimer(self)
        self._clock.setInterval(1000)
        self._clock.timeout.connect(self._on_changed)
        self._below_throttle = Throttle(self, 40, self._refresh_below)
        self.start = StartBar(model)
        self.body.addWidget(self.start)
        model.models.changed.connect(self._on_lists)
        model.presets.rows_changed.connect(self._on_lists)
        model.presets.rows_changed.connect(self.preset.refresh)
        # What it waits for may be the presets.
        model.presets.rows_changed.connect(self.start.refresh)
        model.presets.detail_changed.connect(self._on_detail)
        model.subject_changed.connect(self._on_subject)
        model.plan_changed.connect(self._on_plan)
        model.fit.changed.connect(self._on_fit)
        model.changed.connect(self._on_changed)
        # The stages of a start and its end stand at the top.
        model.actions.started.connect(self._to_top)
        self._on_lists()
        self._on_subject()

    def _models(self) -> QWidget:
        add = button(tr("Add model folder…"), self._on_add, kind="primary", icon="folder-plus")
        self._empty = EmptyState(
            "folder-plus",
            tr("No models yet"),
            tr("Add a folder with GGUF files or checkpoints. Nothing is moved or copied."),
            add,
        )
        self._empty.sentence.set_width(260)
        made = QStackedWidget()
        made.addWidget(self.table)
        made.addWidget(self._empty)
        self._model_list = made
        return made

    def _list_head(self) -> QHBoxLayout:
        self.add = button(
            tr("Add model folder…"),
            self._on_add,
            icon="folder-plus",
            hint=tr("Add a folder with GGUF files or checkpoints"),
            command="sndr settings set models.folders PATH",
        )
        keep_to_paths(self.add, self.model.session.host)
        return row(self.switcher, None, self.presets.filters, self.add)

    def _canvas(self) -> QWidget:
        canvas = QWidget()
        canvas.setObjectName("canvas")
        # As high as its texts are at the width that they have, and not as the narrowest would need.
        canvas.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored)
        # Nothing scrolls sideways: no long word may push the rest beyond the edge.
        canvas.setMinimumWidth(1)
        lines = HeightForWidthLayout(canvas)
        lines.setContentsMargins(0, 0, 4, 0)
        lines.setSpacing(GAP)
        for part in (
            self.outcome,
            self.preset,
            self.about,
            self.install,
            self.placement,
            self.sizes,
            self.changes,
            self.advice,
            self.speed,
            self.form,
            self.plan,
            self.facts,
        ):
            lines.addWidget(part)
        lines.addStretch(1)
        return canvas

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # The card says the rest of the chosen one; its name needs the room.
        narrow = self.width() < _NARROW
        for place in (2, 3):
            self.table.setColumnHidden(place, self.width() < 1200)
        self.table.setColumnHidden(4, narrow)
        self.presets.set_narrow(narrow)
        self.machine.set_narrow(narrow)
        self.add.setText(tr("Add folder…") if narrow else tr("Add model folder…"))
        self._on_lists()
        self.filter.setFixedWidth(180 if narrow else 230)

    def focus_filter(self) -> None:
        self.filter.setFocus()
        self.filter.selectAll()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # From the search the arrow goes on into what was found.
        pressed = (
            event.key() if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress else None
        )
        if watched is not self.filter or pressed != Qt.Key.Key_Down:
            return super().eventFilter(watched, event)
        table = self.presets.table if self.model.list is ListKind.PRESETS else self.table
        table.setFocus(Qt.FocusReason.TabFocusReason)
        if table.chosen < 0 and table.model().rowCount():
            table.selectRow(0)
        return True

    def set_shown(self, shown: bool) -> None:
        self._machine.set_shown(shown)
        self.model.set_shown(shown)
        if not shown:
            self._clock.stop()
        if shown:
            self._on_lists()
            self._on_changed()

    # What the person did.

    def _on_add(self) -> None:
        dialog = QFileDialog(self, tr("Add model folder"))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.model.models.add_folder)
        # open() and not exec(): a nested loop would lose tasks.
        dialog.open()

    def _on_switched(self) -> None:
        self.model.show_list(_KINDS[self.switcher.place])

    def _on_filter(self, content: str) -> None:
        # One search for both lists: whoever looks for a name need not know which holds it.
        self.model.models.set_filter(content)
        self.model.presets.set_filter(content)

    def _on_row(self, place: int) -> None:
        chosen = self.model.models.rows.row_at(place)
        if chosen is not None:
            self.model.select(chosen.id)

    # What is shown.

    def _on_lists(self) -> None:
        """Show the list in front, and how many it holds."""
        model, kind = self.model, self.model.list
        place = _KINDS.index(kind)
        if self.switcher.place != place:
            self.switcher.buttons[place].setChecked(True)
        self.lists.setCurrentIndex(place)
        presets = kind is ListKind.PRESETS
        set_text(self.subtitle, model.presets.subtitle if presets else model.models.subtitle)
        search = tr("Search presets") if presets else tr("Search models")
        pressed = keys("filter")
        self.filter.setPlaceholderText(
            tr("Search presets  ({keys})", keys=pressed)
            if presets
            else tr("Search models  ({keys})", keys=pressed)
        )
        self.filter.setAccessibleName(search)
        self.filter.setToolTip("sndr presets list" if presets else "sndr models")
        self.add.setVisible(not presets)
        self.presets.filters.setVisible(presets and self.presets.narrow)
        self._model_list.setCurrentIndex(0 if model.models.rows.total else 1)
        self._show_selection()

    def _show_selection(self) -> None:
        subject = self.model.subject
        if subject is None or subject.is_preset:
            return
        place = self.model.models.rows.place_of(subject.id)
        if place is not None and self.table.chosen != place:
            self.table.selectRow(place)

    def _on_subject(self) -> None:
        subject = self.model.subject
        asks = subject.asks if subject is not None else None
        if asks != self._about:
            self._about = asks
            self._to_top()
        preset = subject is not None and subject.is_preset
        self.right.setCurrentIndex(0 if subject is not None else 1)
        for part, shown in ((self.preset, preset), (self.facts, preset), (self.about, not preset)):
            part.setVisible(shown)
        self._on_lists()
        self._on_detail()
        self.about.refresh()
        self.form.refresh()
        self.sizes.refresh()
        self._on_fit()
        self.form.refresh_planned()
        self._on_changed()

    def _to_top(self) -> None:
        self.panel.verticalScrollBar().setValue(0)

    def _on_detail(self) -> None:
        self.preset.refresh()
        # What lies below is many small texts: whoever walks through the list must not wait for them.
        self._below_throttle.trigger()

    def _refresh_below(self) -> None:
        self.facts.refresh()
        self.plan.refresh()

    def _on_fit(self) -> None:
        self.placement.refresh()
        fit, row = self.model.fit, self.model.presets.row
        report = fit.report
        verdict = row.verdict if row is not None and self.model.list is ListKind.PRESETS else None
        # What cannot run at all is not mended by less context.
        hopeless = verdict is not None and verdict.verdict is Verdict.CANNOT_RUN
        some = report is not None and not fit.waiting and not hopeless
        self.changes.show_changes(report.changes if report is not None and some else ())
        self.advice.show_advice(report.advice if report is not None else ())
        self.speed.show_report(report, self.model.measured)

    def _on_plan(self) -> None:
        self.form.refresh_planned()
        self.install.show_missing(self.model.missing)
        self.plan.refresh()
        self._on_changed()

    def _on_changed(self) -> None:
        if self.isVisible():
            self.install.show_missing(self.model.missing)
            self.preset.refresh()
            self.plan.refresh_age()
            self.placement.refresh()
            self.start.refresh()
            self.outcome.refresh()
            counting = self.model.watch.starting is not None
            if counting is not self._clock.isActive():
                self._clock.start() if counting else self._clock.stop()
