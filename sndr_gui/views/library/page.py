"""Library: models of this machine, one of them whole, downloads, and what was deleted."""

from __future__ import annotations

import os
from collections.abc import Callable

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QShortcut
from PySide6.QtWidgets import QLineEdit

from engine_host.protocol.language import tr
from engine_host.protocol.models import ModelFile, ModelOrigin
from sndr_gui.kit import formats
from sndr_gui.kit.shortcuts import keys
from sndr_gui.models.library.page import LibraryModel
from sndr_gui.models.library.words import belongs, mark, mark_tip
from sndr_gui.views.library.hub import HubPane
from sndr_gui.views.library.kept import KeptCard
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, set_tone, text
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.widgets.problems import ProblemBox
from sndr_gui.views.widgets.tables import Table

_HEIGHT = 240
_ONLY_BUNDLED = tr(
    "Only the program's own small model is here. Models that Hugging Face's tools, "
    "LM Studio, Ollama or llama.cpp fetched are found by themselves and used in "
    "place; others can be downloaded below, or put into a folder that the settings "
    "name."
)


class LibraryView(Page):
    """The page of the library; `start` opens Launch with a model."""

    def __init__(self, model: LibraryModel, start: Callable[[str], object]) -> None:
        super().__init__(tr("Library"), scrolls=True)
        self.model = model
        self.filter = QLineEdit()
        self.filter.setPlaceholderText(tr("Search models here  ({keys})", keys=keys("filter")))
        self.filter.setAccessibleName(tr("Search the models of this machine"))
        self.filter.setClearButtonEnabled(True)
        self.filter.setFixedWidth(220)
        self.filter.textChanged.connect(model.rows.set_filter)
        self.scan = button(tr("Look again"), model.rescan, icon="refresh-cw", command="sndr models --scan")
        self.tools.addWidget(self.filter)
        self.tools.addWidget(self.scan)
        self.problem = ProblemBox()
        self.teaching = text(_ONLY_BUNDLED, "muted", wrap=True)
        self._make_models()
        self._make_chosen(start)
        self.kept = KeptCard(model)
        self.hub = HubPane(model.hub)
        for part in (self.problem, self.here, self.one, self.kept, self.hub):
            self.body.addWidget(part)
        self.body.addStretch(1)
        model.changed.connect(self.refresh)
        self.refresh()

    def _make_models(self) -> None:
        model = self.model
        widths = {1: 90, 2: 100, 3: 100, 4: 150, 5: 150}
        self.table = Table(model.rows, tr("Models of this machine"), 0, widths)  # type: ignore[arg-type]
        self.table.fit({1: 110, 2: 120, 3: 120, 4: 190, 5: 190})
        self.table.as_tall_as_rows(_HEIGHT)
        self.table.row_chosen.connect(lambda place: model.choose(model.rows.row_at(place)))
        delete = QShortcut(keys("remove model"), self.table)
        delete.setContext(Qt.ShortcutContext.WidgetShortcut)
        delete.activated.connect(model.remove)
        self.here = Card(tr("On this machine"))
        for part in (self.teaching, self.table):
            self.here.body.addWidget(part)

    def _make_chosen(self, start: Callable[[str], object]) -> None:
        model = self.model

        def start_chosen() -> None:
            if model.chosen is not None:
                start(model.chosen.id)

        self.start = button(tr("Start…"), start_chosen, kind="primary", icon="rocket")
        self.verify = button(tr("Verify"), model.verify, icon="check")
        self.folder = button(tr("Show in folder"), self._on_folder, icon="folder-plus")
        self.remove = button(tr("Delete"), model.remove, icon="trash-2")
        self.mark = text("", wrap=True)
        self.about = text("", "muted", wrap=True)
        self.path = CopyField(what=tr("the path"), wraps=True)
        self.consent = text("", "warn", wrap=True)
        self.command = CopyField(what=tr("the command that deletes it"), wraps=True)
        self.one = Card(" ")
        for part in (
            self.mark,
            self.about,
            self.path,
            Flow(self.start, self.verify, self.folder, self.remove),
            self.consent,
            self.command,
        ):
            self.one.body.addWidget(part)

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)

    def focus_filter(self) -> None:
        """Put the cursor into the search."""
        self.filter.setFocus()

    def refresh(self) -> None:
        """Show what is known now."""
        model = self.model
        set_text(self.subtitle, model.subtitle)
        self.problem.setVisible(model.problem is not None)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        self.scan.setEnabled(model.connected)
        self.teaching.setVisible(model.connected and model.only_bundled)
        chosen = model.chosen
        self.one.setVisible(chosen is not None)
        if chosen is not None:
            self._show(chosen)
        self.kept.refresh()

    def _show(self, chosen: ModelFile) -> None:
        model = self.model
        place = model.rows.place_of(chosen.id)
        if place is not None and place != self.table.chosen:
            self.table.selectRow(place)
        set_text(self.one.title, chosen.name)
        wrong = chosen.problem is not None
        # The bundled one has no hash of its own to tell of, only the sentence on its package.
        own_mark = not wrong and chosen.origin is not ModelOrigin.BUNDLED
        set_text(self.mark, f"{mark(chosen)}. {mark_tip(chosen)}" if own_mark else mark_tip(chosen))
        set_tone(self.mark, "bad" if wrong or chosen.verified is False else "good" if chosen.verified else "")
        set_text(self.about, _about(chosen))
        self.path.set_content(chosen.path)
        self.start.setEnabled(model.connected and not wrong)
        self.start.setAccessibleName(tr("Start {name}", name=chosen.name))
        self.start.setToolTip(tip(tr("Open Launch with this model"), command=f"sndr run {chosen.id}"))
        self.verify.setEnabled(model.connected)
        self.verify.setToolTip(tip(tr("Hash its files"), command=f"sndr models verify {chosen.id}"))
        # A folder of another machine cannot be opened here.
        self.folder.setVisible(not model.session.host)
        self.folder.setToolTip(tip(tr("Open {dirname}", dirname=os.path.dirname(chosen.path))))
        own = chosen.origin is not ModelOrigin.BUNDLED
        self.remove.setVisible(own)
        said = tr("Delete all the same") if model.consent is not None else tr("Delete")
        self.remove.setText(said)
        self.remove.setAccessibleName(f"{said}: {chosen.name}")
        self.remove.setEnabled(model.connected)
        self.remove.setToolTip(tip(tr("It can come back for a day"), keys("remove model"), model.command))
        self.consent.setVisible(model.consent is not None)
        if model.consent is not None:
            set_text(self.consent, formats.strip_backticks(model.consent.sentence()))
        self.command.setVisible(own)
        self.command.set_content(model.command)

    def _on_folder(self) -> None:
        if self.model.chosen is not None:
            path = self.model.chosen.path
            folder = path if os.path.isdir(path) else os.path.dirname(path)
            QDesktopServices.openUrl(QUrl.fromLocalFile(folder))


def _about(model: ModelFile) -> str:
    parts = [belongs(model)]
    if model.repository is not None:
        parts.append(
            tr(
                "From {repository} at {commit}.",
                repository=model.repository,
                commit=(model.commit or "")[:12],
            )
        )
    if model.companions:
        names = ", ".join(os.path.basename(one) for one in model.companions)
        parts.append(tr("Beside it, for images or sound: {names}.", names=names))
    if model.mtp_layers:
        parts.append(tr("It drafts its own next tokens (MTP), so it needs no drafter."))
    if model.licence:
        parts.append(tr("Licence: {licence}.", licence=model.licence))
    return " ".join(parts)
