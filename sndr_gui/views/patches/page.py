"""Patches: the live apply summary by process, the catalogue, and the chosen patch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QSplitter, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.kit.shortcuts import keys
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.engine.choice import command_of
from sndr_gui.models.patches.page import PatchesModel
from sndr_gui.models.patches.rows import ALL, FACETS, Facets
from sndr_gui.views.engine.choice import EngineChoice
from sndr_gui.views.engine.installations import InstallationRow
from sndr_gui.views.patches.bisect import BisectCard, BisectDialog
from sndr_gui.views.patches.detail import PatchPane
from sndr_gui.views.patches.faults import FaultsDialog
from sndr_gui.views.patches.switches import SwitchMenu
from sndr_gui.views.widgets.buttons import EnterButton, button, tip
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import clear, column, row, scrolling
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.widgets.tables import Table

_FILTERS = {
    "family": tr("Filter by family"),
    "state": tr("Filter by state"),
    "kind": tr("Filter by kind"),
    "range": tr("Filter by range"),
}


class PatchesView(Page):
    """The page of the overlay's patches."""

    def __init__(self, model: PatchesModel, open_launch: Callable[[], None]) -> None:
        super().__init__(tr("Patches"))
        self.model = model
        self.filter = QLineEdit()
        self.filter.setPlaceholderText(tr("Filter patches  ({keys})", keys=keys("filter")))
        self.filter.setAccessibleName(tr("Filter patches"))
        self.filter.setClearButtonEnabled(True)
        self.filter.setFixedWidth(280)
        self.filter.setToolTip("sndr patches list")
        self.filter.textChanged.connect(self._on_filter)
        self.choice = EngineChoice(model.session.state)
        self.below_header.addWidget(self.choice)
        self.switches = button(tr("Switch…"), hint=tr("Switch a family or all patches, for the next start"))
        self.switches.setAccessibleName(tr("Switch a family or all patches"))
        self.switches.setMenu(SwitchMenu(self.switches, model))
        self.tools.addWidget(self.filter)
        self.tools.addWidget(self.switches)
        self._hint = text("", "muted", wrap=True)
        self.launch = button(tr("Open Launch"), open_launch, icon="rocket", hint=tr("Start a model"))
        self._hint_row = QWidget()
        self._hint_row.setLayout(row(self._hint, self.launch))
        self._cards = QHBoxLayout()
        self._cards.setSpacing(10)
        self._cards.setContentsMargins(0, 0, 0, 0)
        self._cards_row = QWidget()
        self._cards_row.setLayout(self._cards)
        self._shown_cards: object = None
        self.cards: list[EnterButton] = []
        self.body.addWidget(self._hint_row)
        # A small window cuts the row rather than being widened by it.
        self._cards_row.setMinimumWidth(1)
        self.body.addWidget(self._cards_row)
        self.install: InstallationRow | None = None
        self._install_place = QVBoxLayout()
        self.body.addLayout(self._install_place)
        self.choices: dict[str, ChoiceBox] = {}
        for facet in FACETS:
            box = ChoiceBox(_FILTERS[facet])
            box.setToolTip(plain_tooltip(_FILTERS[facet]))
            box.activated.connect(self._on_facet)
            self.choices[facet] = box
        self._count = text("", "muted")
        self.faults = button("", self._on_faults, kind="flat", icon="triangle-alert")
        self.faults.setToolTip(tr("Show the problems\nsndr patches list"))
        facets = Flow(*self.choices.values())
        line = row(facets, self.faults, self._count, spacing=8)
        line.setStretch(0, 1)
        self.body.addLayout(line)
        widths = {0: 216, 2: 120, 3: 76, 4: 112, 5: 84, 6: 104}
        self.table = Table(model.rows, tr("Patches"), 1, widths)  # type: ignore[arg-type]
        self.table.leave_out(6)
        self.table.setMinimumSize(260, 120)
        self.table.row_chosen.connect(self._on_chosen)
        self.pane = PatchPane(model, self._on_bisect)
        self.bisection = BisectCard(model.bisection)
        self.bisection.patch_chosen.connect(model.choose)
        canvas = QWidget()
        canvas.setObjectName("canvas")
        canvas.setLayout(column(self.bisection, self.pane, None, spacing=10))
        self.pane_area = scrolling(canvas)
        self.pane_area.setMinimumSize(250, 120)
        self.split = QSplitter(Qt.Orientation.Horizontal)
        self.split.setChildrenCollapsible(False)
        self.split.addWidget(self.table)
        self.split.addWidget(self.pane_area)
        self.split.setStretchFactor(0, 3)
        self.split.setStretchFactor(1, 2)
        self.body.addWidget(self.split, 1)
        model.changed.connect(self.refresh)
        model.rows_changed.connect(self._on_rows)
        model.detail_changed.connect(self._on_detail)
        model.revealed.connect(self._on_revealed)
        self.refresh()
        self._on_rows()
        self._on_detail()

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)
        if shown:
            self.refresh()

    def focus_filter(self) -> None:
        self.filter.setFocus()
        self.filter.selectAll()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._hide_columns()

    def _hide_columns(self) -> None:
        # Beside the pane of a patch there is room for names alone; the pane has the title.
        small = self.width() < 900
        pane = not self.pane_area.isHidden()
        beside = pane and not small and self.width() < 1300
        for place in (2, 3, 4):
            self.table.setColumnHidden(place, beside or small)
        for place in (1, 6):
            self.table.setColumnHidden(place, beside)
        self.table.stretch(0 if beside else 1)
        if not beside:
            self.table.setColumnWidth(0, 130 if small and pane else 220)
        for box in self.choices.values():
            box.setFixedWidth(128 if small else 150)
        way = Qt.Orientation.Vertical if small else Qt.Orientation.Horizontal
        if self.split.orientation() is not way:
            self.split.setOrientation(way)

    def refresh(self) -> None:
        """Show what is not in the table."""
        model = self.model
        set_text(self.subtitle, model.subtitle)
        heading, sentence = model.hint
        self._hint_row.setVisible(bool(heading))
        set_text(self._hint, f"{heading}. {sentence}")
        self._refresh_install()
        self.pane.refresh()
        self._show_pane()
        faults = len(model.page.faults) if model.page else 0
        self.faults.setVisible(faults > 0)
        self.faults.setText(tr("{folders} cannot be used", folders=formats.plural(faults, "folder")))
        self.faults.setAccessibleName(
            tr("Show the problems of {patch_folders}", patch_folders=formats.plural(faults, "patch folder"))
        )
        self.launch.setVisible(model.engine is None and model.missing is None)
        self._show_cards()
        if model.patch is not None:
            self.pane.refresh()

    def _show_cards(self) -> None:
        cards = self.model.cards()
        known = (cards, self.model.facets.pid)
        self._cards_row.setVisible(bool(cards))
        if known == self._shown_cards:
            return
        self._shown_cards = known
        if len(cards) != len(self.cards):
            clear(self._cards)
            self.cards = []
            for _card in cards:
                made = EnterButton()
                made.setCheckable(True)
                made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
                made.clicked.connect(self._on_card)
                self.cards.append(made)
                self._cards.addWidget(made)
        for card, made in zip(cards, self.cards, strict=True):
            made.setText(f"{card.title}\n{card.sentence}")
            made.setAccessibleName(f"{card.title}, {card.sentence}")
            command = command_of(self.model.session.state, self.model.engine, "patches", "status")
            made.setToolTip(tip(tr("Only the patches of this process ({pid})", pid=card.pid), "", command))
            made.setProperty("pid", card.pid)
            made.setChecked(card.pid == self.model.facets.pid)

    def _on_card(self) -> None:
        made = self.sender()
        if isinstance(made, QPushButton):
            pid = int(made.property("pid"))
            self.model.set_facets(
                replace(self.model.facets, pid=None if self.model.facets.pid == pid else pid)
            )

    def _refresh_install(self) -> None:
        missing = self.model.missing
        if self.install is None and missing is not None:
            self.install = InstallationRow(self.model.installations, missing.id, can_remove=False)
            self._install_place.addWidget(self.install)
        if self.install is not None:
            self.install.refresh()
            self.install.setVisible(missing is not None)

    def _on_faults(self) -> None:
        if self.model.page is not None:
            FaultsDialog(self, self.model.page.faults).open()

    def _on_filter(self, content: str) -> None:
        self.model.rows.set_filter(content)
        self._on_rows()

    def _on_revealed(self) -> None:
        model = self.model
        if model.patch is not None and model.rows.place_of(model.chosen) is None:
            self.filter.clear()
            model.set_facets(Facets())
        self.table.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _on_facet(self) -> None:
        chosen = {facet: box.currentData() or ALL for facet, box in self.choices.items()}
        self.model.set_facets(replace(self.model.facets, **chosen))  # type: ignore[arg-type]

    def _on_rows(self) -> None:
        model = self.model
        for facet, box in self.choices.items():
            entries = model.choices(facet)
            chosen = getattr(model.facets, facet)
            if chosen not in [value for _, value in entries]:
                entries.append((chosen, chosen))
            box.fill(entries, chosen)
        total = len(model.page.patches) if model.page else 0
        set_text(self._count, tr("{shown} of {total}", shown=len(model.rows.shown), total=total))
        place = model.rows.place_of(model.chosen)
        if place is not None and self.table.chosen != place:
            self.table.selectRow(place)
        self.refresh()

    def _on_chosen(self, place: int) -> None:
        entry = self.model.rows.row_at(place)
        if entry is not None:
            self.model.choose(entry.patch.id)

    def _on_detail(self) -> None:
        self._show_pane()
        self.pane.refresh()
        self._hide_columns()

    def _show_pane(self) -> None:
        shown = self.model.patch is not None or self.model.bisection.job is not None
        if shown is self.pane_area.isHidden():
            self.pane_area.setVisible(shown)
            self._hide_columns()

    def _on_bisect(self) -> None:
        self.model.bisection.prepare(self.model.page)
        BisectDialog(self, self.model.bisection).open()
