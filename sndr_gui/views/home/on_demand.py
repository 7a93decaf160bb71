"""The card of the models that requests load: state, how long each stays, Load or Unload, and Remove."""

from __future__ import annotations

import shlex
from functools import partial

from PySide6.QtWidgets import QGridLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit.formats import shortened
from sndr_gui.models.home.load_form import LoadForm
from sndr_gui.models.home.on_demand import OnDemandRow
from sndr_gui.models.home.page import HomeModel
from sndr_gui.views.home.load_form import LoadDialog
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.labels import ElidedLabel, set_text, set_tone, text
from sndr_gui.views.widgets.layout import clear, show_part


class OnDemandCard(Card):
    """A row for each model that a request loads; hidden while there is none."""

    def __init__(self, model: HomeModel) -> None:
        super().__init__(tr("Models loaded on demand"))
        self._model = model
        self.lines: list[_Line] = []
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(2, 1)
        self.body.addLayout(self._grid)

    def refresh(self) -> None:
        """Show the models of now."""
        rows = self._model.on_demand.rows()
        show_part(self, bool(rows))
        if [line.name for line in self.lines] != [entry.name for entry in rows]:
            clear(self._grid)
            self.lines = [_Line(entry.name, self._model) for entry in rows]
            for place, line in enumerate(self.lines):
                for across, part in enumerate(line.parts):
                    self._grid.addWidget(part, place, across)
        for line, entry in zip(self.lines, rows, strict=True):
            line.show_row(entry)


class _Line:
    """The parts of one model's row."""

    def __init__(self, name: str, model: HomeModel) -> None:
        self.name = name
        self._model = model
        self._loads = True
        self.label = text(shortened(name), name="h2")
        self.state = text("")
        self.about = ElidedLabel("", "muted")
        self.act = button(tr("Load"), self._on_act)
        self.other = button(tr("Load with…"), self._on_other)
        self.other.setAccessibleName(tr("Load {name} with other settings", name=name))
        self.other.setToolTip(
            tip(
                tr("Choose other settings, for this load alone"),
                "",
                shlex.join(["sndr", "on-demand", "load", name, "--set", "NAME=VALUE"]),
            )
        )
        self.dialog: LoadDialog | None = None
        self.remove = button(tr("Remove"), self._on_remove)
        self.remove.setAccessibleName(tr("Let no request load {name}", name=name))
        self.remove.setToolTip(
            tip(
                tr("Let no request load {name} any more", name=name),
                "",
                shlex.join(["sndr", "on-demand", "remove", name]),
            )
        )

    def _on_act(self) -> None:
        (self._model.on_demand.load if self._loads else self._model.unload)(self.name)

    @property
    def parts(self) -> tuple[QWidget, ...]:
        """The parts of the row, from the left."""
        return self.label, self.state, self.about, self.other, self.act, self.remove

    def _on_other(self) -> None:
        self._model.on_demand.ask(self.name, self._show_form)

    def _show_form(self, form: LoadForm) -> None:
        if self.other.isVisible():
            self.dialog = LoadDialog(
                self.other.window(), form, partial(self._model.on_demand.load, self.name)
            )
            self.dialog.finished.connect(self._on_closed)
            self.dialog.open()

    def _on_closed(self) -> None:
        self.dialog = None

    def _on_remove(self) -> None:
        self._model.on_demand.remove(self.name)

    def show_row(self, entry: OnDemandRow) -> None:
        """Show how the model is now."""
        self._loads = entry.load
        set_text(self.state, entry.state)
        set_tone(self.state, entry.tone)
        set_text(self.about, entry.about)
        word = tr("Load") if entry.load else tr("Unload")
        self.act.setText(word)
        self.act.setEnabled(entry.can_act)
        self.other.setVisible(entry.load)
        self.other.setEnabled(entry.can_act)
        self.act.setAccessibleName(f"{word} {entry.name}")
        what = (
            tr("Load it now, as a request would")
            if entry.load
            else tr("Finish what it answers, then stop it")
        )
        self.act.setToolTip(
            tip(what, "", shlex.join(["sndr", "on-demand", "load" if entry.load else "unload", entry.name]))
        )
